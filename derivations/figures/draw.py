"""Draw the figures of the chapters: ``python derivations/figures/draw.py`` writes the SVG files beside this script.

The same input gives the same bytes. Each figure has a light panel of its own, so it reads on light and dark pages.
"""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

HERE = Path(__file__).parent
INK, FORWARD, BACK, CUT, PANEL, BOX = "#1f2933", "#1f6fb2", "#c2410c", "#b91c1c", "#fbfaf7", "#e6eef6"


class Sketch:
    """Boxes and arrows in units of one step's width."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(width, height), facecolor=PANEL)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(0, height)
        self.axes.axis("off")

    def box(self, x: float, y: float, text: str, w: float = 0.9, h: float = 0.52, colour: str = BOX) -> None:
        style = {"facecolor": colour, "edgecolor": INK, "linewidth": 1}
        self.axes.add_patch(matplotlib.patches.FancyBboxPatch((x - w / 2, y - h / 2), w, h, "round,pad=0.03", **style))
        self.text(x, y, text)

    def text(self, x: float, y: float, text: str, colour: str = INK, size: float = 12, **style: str) -> None:
        self.axes.text(x, y, text, color=colour, size=size, **{"ha": "center", "va": "center", **style})

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        style = {
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 1.6,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 13,
        }
        self.axes.add_patch(matplotlib.patches.FancyArrowPatch(start, end, **style))

    def save(self, name: str) -> None:
        with matplotlib.rc_context({"svg.hashsalt": name}):
            self.figure.savefig(HERE / f"{name}.svg", facecolor=PANEL, metadata={"Date": None})


def forward() -> Sketch:
    s = Sketch(9.9, 3.9)
    s.box(0.8, 1.9, "$h_0$")
    for t in (1, 2, 3):
        x = 0.8 + 2.4 * t
        s.box(x, 0.5, f"$x_{t}$")
        s.box(x, 1.9, f"$h_{t}$")
        s.arrow((x - 1.9, 1.9), (x - 0.5, 1.9), FORWARD)
        s.arrow((x, 0.8), (x, 1.58), FORWARD)
        s.arrow((x, 2.22), (x, 2.72), FORWARD)
        s.text(x - 1.2, 2.1, "$W_{hh}$", FORWARD, 11)
        s.text(x + 0.33, 1.18, "$W_{ih}$", FORWARD, 11)
        s.text(x, 2.92, "loss reads it", INK, 10)
    s.text(4.95, 3.5, r"$h_t = \tanh(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})$", INK, 13)
    s.text(1.25, 0.5, "x: (T, B, I)", INK, 10, family="monospace")
    s.text(0.8, 2.4, "h_0: (B, H)", INK, 10, family="monospace")
    s.text(9.2, 1.9, "h: (T, B, H)", INK, 10, family="monospace")
    return s


def bptt() -> Sketch:
    s = Sketch(10.2, 4.9)
    s.box(0.8, 2.3, "$h_0$")
    for t in (1, 2, 3):
        x = 0.8 + 2.7 * t
        s.box(x, 0.5, f"$x_{t}$")
        s.box(x, 2.3, f"$h_{t}$")
        s.box(x, 4.0, "loss", colour="#f1e9da")
        s.arrow((x - 2.2, 2.42), (x - 0.5, 2.42), FORWARD)
        s.arrow((x - 0.5, 2.18), (x - 2.2, 2.18), BACK)
        s.text(x - 1.35, 1.93, rf"$q_{t - 1} = W_{{hh}}^\top \delta_{t}$", BACK, 11)
        s.arrow((x - 0.12, 0.8), (x - 0.12, 1.98), FORWARD)
        s.arrow((x + 0.12, 1.98), (x + 0.12, 0.8), BACK)
        s.text(x + 0.68, 1.2, rf"$W_{{ih}}^\top \delta_{t}$", BACK, 11)
        s.arrow((x - 0.12, 2.62), (x - 0.12, 3.68), FORWARD)
        s.arrow((x + 0.12, 3.68), (x + 0.12, 2.62), BACK)
        s.text(x + 0.36, 3.2, f"$g_{t}$", BACK, 12)
    s.text(9.75, 2.3, "$q_3 = 0$", BACK, 11)
    s.text(0.55, 4.3, "forward", FORWARD, 12, ha="left")
    s.text(0.55, 3.98, "backward", BACK, 12, ha="left")
    s.text(3.6, 4.62, r"$\delta_t = (1 - h_t \odot h_t) \odot (g_t + q_t)$", BACK, 13)
    s.text(7.9, 4.62, r"$dL / dW_{hh} = \sum_t \delta_t h_{t-1}^\top$", BACK, 13)
    return s


def truncated() -> Sketch:
    s = Sketch(11.9, 3.9)
    s.box(0.5, 1.7, "$h_0$", w=0.5)
    for t in range(1, 10):
        x, window = 0.65 + 1.05 * t + 0.3 * ((t - 1) // 3), (t - 1) // 3 + 1
        first = (t - 1) % 3 == 0
        s.box(x, 1.7, f"$h_{t}$", w=0.5)
        gap = 0.72 if first and t > 1 else 0.42
        left = 0.82 if t == 1 else x - gap - 0.32
        s.arrow((left, 1.8), (x - 0.3, 1.8), FORWARD)
        if not first:
            s.arrow((x - 0.3, 1.6), (left, 1.6), BACK)
        s.arrow((x - 0.07, 2.0), (x - 0.07, 2.5), FORWARD)
        s.arrow((x + 0.07, 2.5), (x + 0.07, 2.0), BACK)
        if t % 3 == 2:
            s.box(x, 2.8, f"$L^{{({window})}}$", w=2.6, colour="#f1e9da")
            s.text(x, 0.8, f"window {window}", INK, 11)
        if first and t > 1:
            cut = x - 0.67
            s.axes.plot([cut, cut], [1.05, 3.2], color=CUT, linewidth=1.8, linestyle=(0, (4, 3)))
            s.text(cut, 3.42, "detach", CUT, 11, family="monospace")
        if t % 3 == 0:
            s.text(x + 0.68, 0.8, "update", CUT, 11)
    s.text(0.3, 0.32, "the value crosses the cut", FORWARD, 12, ha="left")
    s.text(4.2, 0.32, "the gradient stops there", BACK, 12, ha="left")
    return s


def versions(detached: bool) -> Sketch:
    """Three windows of one step, as window i = 2 goes back: the versions of W_hh and where each was saved."""
    s = Sketch(11.0, 5.0)
    s.text(0.3, 4.65, "one memory, written in place by each step():", CUT, 11, ha="left")
    s.box(1.0, 1.9, "$h_0$", w=0.7)
    s.text(1.0, 1.42, "version 0", INK, 9)
    for i in (0, 1, 2):
        x = 3.2 + 3.1 * i
        s.box(x, 3.95, f"$W_{{hh}}$  version {i + 1}", w=1.75, colour="#f6e3e0")
        s.arrow((x, 3.63), (x, 2.24), FORWARD)
        s.text(x + 0.12, 3.25, f"saved at {i + 1}", FORWARD, 10, ha="left")
        s.box(x, 1.9, f"$h_{i + 1}$", w=0.7)
        s.text(x - 0.42, 1.42, "version 0", INK, 9, ha="right")
        s.box(x, 0.5, f"loss, i = {i}", w=1.3, colour="#f1e9da")
        s.arrow((x - 0.08, 1.6), (x - 0.08, 0.82), FORWARD)
        s.arrow((x - (1.79 if i == 0 else 2.69), 2.0), (x - 0.41, 2.0), FORWARD)
        if i < 2:
            s.arrow((x + 0.95, 3.95), (x + 2.15, 3.95), CUT)
            s.text(x + 1.55, 4.15, "step()", CUT, 10, family="monospace")
    s.arrow((9.48, 0.82), (9.48, 1.6), BACK)
    if detached:
        for cut in (4.75, 7.85):
            s.axes.plot([cut, cut], [1.0, 2.8], color=CUT, linewidth=1.8, linestyle=(0, (4, 3)))
            s.text(cut, 3.0, "detach", CUT, 11, family="monospace")
        s.text(9.62, 1.32, "goes no further:", BACK, 10, ha="left")
        s.text(9.62, 1.08, "no weight read", BACK, 10, ha="left")
        return s
    for x, first, second in [
        (7.85, "reads $W_{hh}$: saved at 3,", "finds 3"),
        (4.75, "reads $W_{hh}$: saved at 2,", "finds 3: error"),
    ]:
        s.arrow((x + 1.14, 1.8), (x - 1.14, 1.8), BACK)
        s.text(x, 2.66, first, BACK, 10)
        s.text(x, 2.42, second, BACK, 10, weight="bold" if "error" in second else "normal")
    s.text(2.0, 2.66, "not asked:", INK, 10)
    s.text(2.0, 2.42, "$h_0$ needs no gradient", INK, 10)
    return s


FIGURES = {
    "01-forward": forward,
    "02-bptt": bptt,
    "03-truncated-bptt": truncated,
    "04-carried": lambda: versions(detached=False),
    "04-detached": lambda: versions(detached=True),
}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        draw().save(name)
