"""Draw the figures of the chapters: ``python derivations/figures/draw.py`` writes the SVG files beside this script.

The same input gives the same bytes. Each figure has a light panel of its own, so it reads on light and dark pages.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import numpy_rnn
from numpy_rnn import tasks
from numpy_rnn.training import NUMPY, Backend, train
from numpy_rnn.typing import Array
from torch_rnn.backend import TORCH
from torch_rnn.measure.grid import Row
from torch_rnn.measure.memory import allocated_at_once, numpy_saved
from torch_rnn.measure.sides import Data, numpy_module
from torch_rnn.twins import twin

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


def lstm() -> Sketch:
    """One LSTM step without projection: values in one colour, and beside each arrow the gradient that comes back."""
    s = Sketch(12.6, 6.7)

    def node(x: float, y: float, text: str) -> None:
        s.axes.add_patch(matplotlib.patches.Circle((x, y), 0.22, facecolor="#ffffff", edgecolor=INK, linewidth=1))
        s.text(x, y, text, INK, 13)

    def both(start: tuple[float, float], end: tuple[float, float]) -> None:
        """The value's arrow, and beside it the gradient's, the other way round."""
        along = end[0] - start[0], end[1] - start[1]
        length = (along[0] ** 2 + along[1] ** 2) ** 0.5
        dx, dy = -0.09 * along[1] / length, 0.09 * along[0] / length
        s.arrow((start[0] + dx, start[1] + dy), (end[0] + dx, end[1] + dy), FORWARD)
        s.arrow((end[0] - dx, end[1] - dy), (start[0] - dx, start[1] - dy), BACK)

    s.box(0.9, 5.3, "$c_{t-1}$", w=0.8)
    s.box(10.9, 5.3, "$c_t$", w=0.8)
    s.box(0.9, 1.3, "$h_{t-1}$", w=0.8)
    s.box(10.9, 2.7, "$h_t$", w=0.8)
    s.box(5.6, 0.4, "$x_t$", w=0.8, h=0.4)
    s.box(5.6, 1.3, "$z_t = W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh}$", w=6.6)
    gates = {"f": (3.0, "f_t", r"\sigma"), "i": (4.5, "i_t", r"\sigma")}
    gates |= {"g": (6.5, r"\tilde c_t", r"\tanh"), "o": (8.2, "o_t", r"\sigma")}
    for gate, (x, name, bend) in gates.items():
        s.box(x, 2.7, f"${name}$", w=0.7)
        both((x, 1.6), (x, 2.4))
        s.text(x - 0.36, 2.02, f"${bend}$", FORWARD, 11)
        s.text(x + 0.36, 2.02, rf"$\delta_t^{gate}$", BACK, 13)
    for x, y, sign in [(3.0, 5.3, r"$\odot$"), (5.5, 5.3, "$+$"), (5.5, 3.9, r"$\odot$"), (9.3, 2.7, r"$\odot$")]:
        node(x, y, sign)
    s.box(9.3, 4.0, r"$\tanh$", w=0.8)
    both((1.35, 5.3), (2.75, 5.3))
    both((3.25, 5.3), (5.25, 5.3))
    both((5.75, 5.3), (10.45, 5.3))
    both((3.0, 3.0), (3.0, 5.05))
    both((5.5, 4.15), (5.5, 5.05))
    both((4.55, 3.02), (5.34, 3.74))
    both((6.45, 3.02), (5.66, 3.74))
    s.arrow((9.39, 5.39), (9.39, 4.3), FORWARD)
    s.arrow((9.21, 4.3), (9.21, 5.21), BACK)
    both((9.3, 3.7), (9.3, 2.95))
    both((8.58, 2.7), (9.05, 2.7))
    both((9.55, 2.7), (10.45, 2.7))
    both((1.35, 1.3), (2.25, 1.3))
    both((5.6, 0.64), (5.6, 1.02))
    s.arrow((12.3, 5.3), (11.36, 5.3), BACK)
    s.arrow((12.3, 2.7), (11.36, 2.7), BACK)
    s.arrow((10.9, 1.6), (10.9, 2.4), BACK)
    s.text(11.85, 5.58, "$q_t^c$", BACK, 13)
    s.text(11.85, 2.98, "$q_t^h$", BACK, 13)
    s.text(10.9, 1.35, "$g_t$ from the loss", BACK, 12)
    s.text(7.4, 4.98, "$dL/dc_t$: the sum of both branches", BACK, 11)
    s.text(1.95, 4.9, r"$q_{t-1}^c = f_t \odot dL/dc_t$", BACK, 12)
    s.text(1.35, 0.82, r"$q_{t-1}^h = W_{hh}^\top \delta_t$", BACK, 12)
    s.text(7.0, 0.72, r"$dL/dx_t = W_{ih}^\top \delta_t$", BACK, 12)
    s.text(0.5, 6.3, "forward", FORWARD, 12, ha="left")
    s.text(1.6, 6.3, "backward", BACK, 12, ha="left")
    s.text(4.6, 6.3, r"$c_t = f_t \odot c_{t-1} + i_t \odot \tilde c_t$", FORWARD, 13)
    s.text(8.2, 6.3, r"$h_t = o_t \odot \tanh(c_t)$", FORWARD, 13)
    return s


def recomputed() -> Sketch:
    """What an LSTM that keeps every k-th state allocates, measured, in numbers for each sequence and unit."""
    row = Row("lstm", "float32", T=1024, B=8, I=32, H=64)
    data, number = Data(row), 4 * row.B * row.H  # bytes

    def measured(every: int | None) -> tuple[float, float]:
        """Return what the graph keeps besides its input, and the most at once in forward and backward."""
        module = numpy_module(row, recompute_every=every)
        peak = allocated_at_once(lambda: numpy_rnn.backward([module(data.x)[0]], [data.upstream]))
        return round(numpy_saved(row, recompute_every=every) / number - row.T * row.I / row.H), round(peak / number)

    measured(None)  # what the first call makes once and keeps is not drawn
    k = 2 ** np.arange(11)
    kept, peak = np.array([measured(int(every)) for every in k]).T
    kept_without, peak_without = measured(None)
    s = Sketch(9.9, 6.2)
    s.axes.set_position((0.09, 0.11, 0.88, 0.86))
    s.axes.axis("on")
    s.axes.set(facecolor=PANEL, xscale="log", yscale="log", xlim=(0.85, 1250), ylim=(1.6, 30000))
    s.axes.set_xticks(k, [str(every) for every in k])
    s.axes.set_yticks([10, 100, 1000, 10000], ["10", "100", "1000", "10 000"])
    s.axes.minorticks_off()
    s.axes.tick_params(colors=INK, labelsize=11)
    s.axes.spines[["top", "right"]].set_visible(False)
    s.axes.set_xlabel("k", color=INK, size=12)
    s.axes.set_ylabel("numbers for each sequence and unit", color=INK, size=12)
    for level, colour in [(peak_without, BACK), (kept_without, FORWARD), (2 * row.T, INK)]:
        s.axes.axhline(level, color=colour, linewidth=1, linestyle=(0, (1, 2)))
    smooth = np.geomspace(1, row.T, 200)
    s.axes.plot(smooth, 2 * row.T / smooth + 6 * smooth, color=INK, linewidth=1.6, linestyle=(0, (5, 3)))
    s.axes.plot(k, peak, color=BACK, linewidth=1.6, marker="s", markersize=7)
    s.axes.plot(k, kept, color=FORWARD, linewidth=1.6, marker="o", markersize=7)
    without = "without recompute_every"
    s.text(1.0, peak_without * 1.28, f"the most at once, {without}", BACK, 11, ha="left")
    s.text(1.0, kept_without * 1.28, f"kept by the forward, {without}", FORWARD, 11, ha="left")
    s.text(12, 4250, "the most at once, in forward and backward", BACK, 11)
    s.text(5.5, 2 * row.T * 0.79, "output and its gradient, 2T", INK, 11, ha="left")
    s.text(52, 205, "$M(k) = 2T/k + 6k$", INK, 13, ha="left")
    s.text(12.5, 110, "kept by the forward", FORWARD, 11, ha="right")
    return s


def gru() -> Sketch:
    """One step of a GRU: the four readers of the state before, and what each sends back to it."""
    s = Sketch(11.6, 6.1)
    s.box(0.75, 3.1, "$h_{t-1}$", w=0.8, h=4.6)
    s.box(9.75, 3.1, "$h_t$", w=0.8, h=4.6)
    s.box(3.6, 4.05, "$z_t$")
    s.box(3.6, 2.7, "$r_t$")
    s.box(3.6, 1.35, "$s_t$")
    s.box(6.6, 2.05, "$n_t$")

    def both(left: tuple[float, float], right: tuple[float, float]) -> None:
        """Forward from left to right and, below it, back."""
        s.arrow((left[0], left[1] + 0.09), (right[0], right[1] + 0.09), FORWARD)
        s.arrow((right[0], right[1] - 0.09), (left[0], left[1] - 0.09), BACK)

    both((1.2, 5.15), (9.3, 5.15))
    s.text(5.2, 4.83, r"$z_t \odot dL/dh_t$", BACK, 11)
    for y, gate, back in [
        (4.05, "hz", r"\delta_{z,t}"),
        (2.7, "hr", r"\delta_{r,t}"),
        (1.35, "hn", r"(r_t \odot \delta_{n,t})"),
    ]:
        both((1.2, y), (3.1, y))
        s.text(2.15, y + 0.27, f"$W_{{{gate}}}$", FORWARD, 11)
        s.text(2.15, y - 0.32, rf"$W_{{{gate}}}^\top {back}$", BACK, 11)
    for x, y, gate in [(3.6, 4.05, "iz"), (3.6, 2.7, "ir"), (6.6, 2.05, "in")]:
        s.text(x, y + 0.8, "$x_t$", FORWARD, 12)
        s.arrow((x - 0.09, y + 0.66), (x - 0.09, y + 0.32), FORWARD)
        s.arrow((x + 0.09, y + 0.32), (x + 0.09, y + 0.66), BACK)
        s.text(x + 0.62, y + 0.53, rf"$W_{{{gate}}}^\top \delta_{{{gate[1]},t}}$", BACK, 10)
    both((4.1, 4.05), (9.3, 4.05))
    s.text(6.9, 3.72, r"$(h_{t-1} - n_t) \odot dL/dh_t$", BACK, 11)
    both((4.1, 2.65), (6.1, 2.2))
    s.text(5.3, 2.72, r"$s_t \odot \delta_{n,t}$", BACK, 11)
    both((4.1, 1.4), (6.1, 1.95))
    s.text(5.3, 1.3, r"$r_t \odot \delta_{n,t}$", BACK, 11)
    both((7.1, 2.05), (9.3, 2.05))
    s.text(8.2, 1.73, r"$(1 - z_t) \odot dL/dh_t$", BACK, 11)
    s.arrow((10.2, 3.3), (11.2, 3.3), FORWARD)
    s.arrow((11.2, 3.1), (10.2, 3.1), BACK)
    s.text(10.85, 2.82, "$g_t + q_t$", BACK, 12)
    s.text(0.35, 0.35, "forward", FORWARD, 12, ha="left")
    s.text(1.45, 0.35, "backward", BACK, 12, ha="left")
    s.text(6.4, 0.35, r"$h_t = n_t + z_t \odot (h_{t-1} - n_t)$", FORWARD, 13)
    s.text(5.2, 5.75, r"$q_{t-1}$ is the sum of what reaches $h_{t-1}$ along four paths", BACK, 13)
    return s


def layers() -> Sketch:
    """Two layers in two directions over three steps, with the way of the gradient."""
    s = Sketch(11.6, 7.0)
    right, left = ([rf"\over{way}arrow{{h}}_{t}" for t in range(4)] for way in ("right", "left"))
    for k, y in ((1, 1.55), (2, 4.55)):
        s.text(0.15, y + 0.42, f"layer {k}", INK, 12, ha="left")
        for t in (1, 2, 3):
            x = 0.3 + 2.9 * t
            s.box(x - 0.5, y, f"${right[t]}$", w=0.7)
            s.box(x + 0.5, y + 0.85, f"${left[t]}$", w=0.7)
            bottom, top = y - 0.7, y + 1.42
            s.arrow((x - 0.5, bottom), (x - 0.5, y - 0.3), FORWARD)
            s.arrow((x + 0.5, bottom), (x + 0.5, y + 0.54), FORWARD)
            s.arrow((x + 0.68, y + 0.54), (x + 0.68, bottom), BACK)
            s.arrow((x - 0.32, y - 0.3), (x - 0.32, bottom), BACK)
            s.arrow((x - 0.5, y + 0.3), (x - 0.5, top), FORWARD)
            s.arrow((x - 0.32, top), (x - 0.32, y + 0.3), BACK)
            s.arrow((x + 0.5, y + 1.16), (x + 0.5, top), FORWARD)
            s.arrow((x + 0.68, top), (x + 0.68, y + 1.16), BACK)
            s.arrow((x - 2.9 + (1.05 if t == 1 else -0.12), y), (x - 0.88, y), FORWARD)
            s.arrow((x + (1.6 if t == 3 else 2.98), y + 0.85), (x + 0.9, y + 0.85), FORWARD)
        s.text(1.2, y, f"${right[0]}$", INK, 12)
        s.text(10.85, y + 0.85, f"${left[0]}$", INK, 12)
        s.text(10.55, y, f"its final state: ${right[3]}$", INK, 10)
        s.text(1.35, y + 1.2, f"its final state: ${left[1]}$", INK, 10)
    for t in (1, 2, 3):
        x = 0.3 + 2.9 * t
        s.box(x, 0.5, f"$x_{t}$", w=1.6, h=0.42)
        s.box(
            x,
            3.4,
            rf"$m_{t} \odot ( {right[t]}, {left[t]} )$",
            w=2.0,
            h=0.5,
            colour="#f6e3e0",
        )
        s.box(x, 6.3, f"$( {right[t]}, {left[t]} )$", w=2.0, h=0.5, colour="#f1e9da")
    s.text(0.15, 6.3, "output", INK, 12, ha="left")
    s.text(0.15, 3.4, "dropout mask", CUT, 11, ha="left")
    s.text(0.15, 0.5, "input", INK, 12, ha="left")
    s.text(10.55, 6.42, "forward", FORWARD, 12, ha="left")
    s.text(10.55, 6.12, "backward", BACK, 12, ha="left")
    return s


def lengths() -> Sketch:
    """Three sequences of 1, 4 and 2 steps: as given, longest first, and as packed rows."""
    s = Sketch(11.6, 5.0)
    names, size, colours = "abc", {"a": 1, "b": 4, "c": 2}, {"a": "#d9ead3", "b": "#e6eef6", "c": "#f6e3e0"}

    def grid(x_0: float, order: str, title: str) -> None:
        s.text(x_0 + 1.05, 4.55, title, INK, 12)
        for t in (1, 2, 3, 4):
            s.text(x_0 + 0.7 * (t - 1), 4.05, f"t = {t}", INK, 10)
        for row, name in enumerate(order):
            y = 3.5 - 0.75 * row
            for t in (1, 2, 3, 4):
                x = x_0 + 0.7 * (t - 1)
                if t <= size[name]:
                    s.box(x, y, f"${name}_{t}$", w=0.46, h=0.4, colour=colours[name])
                else:
                    s.text(x, y, "0", "#9aa5b1", 11)

    grid(0.6, names, "padded, as given")
    s.arrow((3.3, 2.75), (4.0, 2.75), INK)
    s.text(3.65, 3.0, "sort", INK, 11)
    grid(4.6, "bca", "longest first")
    s.text(3.6, 1.4, "batch sizes", INK, 11)
    for t, B in enumerate((3, 2, 1, 1)):
        s.text(4.6 + 0.7 * t, 1.4, f"{B}", INK, 12)
    s.arrow((7.3, 2.75), (8.0, 2.75), INK)
    s.text(7.65, 3.0, "pack", INK, 11)
    s.text(9.2, 4.75, "rows", INK, 12)
    rows = ["b1", "c1", "a1", "b2", "c2", "b3", "b4"]
    for n, row in enumerate(rows):
        y = 4.4 - 0.52 * n - 0.14 * (int(row[1]) - 1)
        s.box(8.7, y, f"${row[0]}_{row[1]}$", w=0.46, h=0.34, colour=colours[row[0]])
        if int(row[1]) == size[row[0]]:
            s.text(9.1, y, f"{row[0]} ends here: final state,", FORWARD, 10, ha="left")
            s.text(9.1, y - 0.2, "start of its gradient", BACK, 10, ha="left")
    s.text(0.25, 0.75, "forward direction: each row from its step 1 to its own end", FORWARD, 12, ha="left")
    s.text(
        0.25,
        0.35,
        "reverse direction: each row from its own end to its step 1, never through the zeros",
        FORWARD,
        12,
        ha="left",
    )
    return s


def optimizers() -> Sketch:
    """Paths of 40 steps down a valley that is 25 times steeper across than along."""
    kinds = [
        ("gradient descent", BACK, lambda p: numpy_rnn.SGD(p, lr=0.072)),
        ("with momentum", FORWARD, lambda p: numpy_rnn.SGD(p, lr=0.036, momentum=0.75)),
        ("Adam", CUT, lambda p: numpy_rnn.Adam(p, lr=0.25, betas=(0.8, 0.95))),
    ]
    s = Sketch(9.9, 5.2)
    for row, (name, colour, make) in enumerate(kinds):
        y = 4.05 - 1.65 * row
        angle = np.linspace(0, 2 * np.pi, 200)
        for level in (0.25, 1, 2.25, 4, 6.25):
            x = np.sqrt(level) * np.cos(angle) * 1.35
            s.axes.plot(6.3 + x, y + 0.18 * np.sqrt(level) * np.sin(angle) * 1.35, color="#c9d3dc", linewidth=0.8)
        p = numpy_rnn.Parameter(np.array([-3.0, 0.55]))
        optimizer, path = make([p]), [p.numpy().copy()]
        for _ in range(40):
            p.grad = numpy_rnn.Tensor(np.array([1.0, 25.0]) * p.numpy())
            optimizer.step()
            path.append(p.numpy().copy())
        at = np.array(path)
        x, across = 6.3 + 1.35 * at[:, 0], y + 1.35 * at[:, 1] * 0.9
        s.axes.plot(x, across, color=colour, linewidth=1.4, marker="o", markersize=3)
        s.axes.plot([6.3], [y], marker="+", color=INK, markersize=9)
        s.text(0.2, y + 0.75, name, colour, 12, ha="left")
    return s


@cache
def page(name: str) -> dict[str, Any]:
    """Run the blocks of a chapter and return its names: a figure then shows the very numbers that the page asserts."""
    text = (HERE.parent / name).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(block, names)
    return names


def plot_on(axes: Axes, position: tuple[float, float, float, float], xlabel: str) -> None:
    """Make a plot with two axes of it."""
    axes.set_position(position)
    axes.axis("on")
    axes.set_facecolor(PANEL)
    axes.tick_params(colors=INK, labelsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(xlabel, color=INK, size=12)


def gradients() -> Sketch:
    """How far gradients reach, as chapter 10 measures it: a new and a trained RNN, the cell state of two new LSTMs."""
    names, n = page("10-vanishing-exploding.md"), np.arange(12)
    s = Sketch(11.2, 5.2)
    panels = s.axes, s.figure.add_axes((0, 0, 1, 1))
    curves = [("fade_new", "table_new", BACK, "o"), ("fade_trained", "table_trained", FORWARD, "s")]
    curves += [("fade_lstm", None, BACK, "o"), ("fade_lstm_open", None, FORWARD, "s")]
    for axes, left, pair in zip(panels, (0.085, 0.56), (curves[:2], curves[2:]), strict=True):
        plot_on(axes, (left, 0.125, 0.43, 0.84), "steps back")
        axes.set(yscale="log", xlim=(-0.3, 11.3), ylim=(2e-4, 40), xticks=n)
        axes.set_yticks(10.0 ** np.arange(-3, 2), ["0.001", "0.01", "0.1", "1", "10"])
        axes.minorticks_off()
        for curve, bound, colour, marker in pair:
            axes.plot(n, names[curve], color=colour, linewidth=1.6, marker=marker, markersize=6)
            if bound is not None:
                axes.plot(n, names[bound][1] ** n, color=colour, linewidth=1.4, linestyle=(0, (5, 3)))
    s.axes.set_ylabel("norm of the gradient, relative to its start", color=INK, size=12)
    s.text(5.6, 0.016, "RNN, new", BACK, 12, ha="right")
    s.text(6, 0.5, "RNN, trained", FORWARD, 12)
    s.text(8.6, 1.6, "bound for the new RNN", BACK, 11)
    s.text(4.6, 20, "bound for the trained RNN\n(6000 at 11 steps)", FORWARD, 11, ha="left")
    style = {"ha": "center", "va": "center", "size": 12}
    panels[1].text(6, 0.5, "LSTM, new, forget gate bias 3", color=FORWARD, **style)
    panels[1].text(6, 0.016, "LSTM, new", color=BACK, **{**style, "ha": "right"})
    panels[1].text(5.5, 20, "the cell state", color=INK, **style)
    return s


def cliff() -> Sketch:
    """The loss of the scalar network over its weight, and two steps from its wall, from the blocks of chapter 10."""
    names = page("10-vanishing-exploding.md")
    loss = np.vectorize(lambda w: names["Cliff"](w).gradient()[0])
    s = Sketch(9.9, 4.6)
    plot_on(s.axes, (0.08, 0.13, 0.89, 0.84), "w")
    s.axes.set_ylabel("L", color=INK, size=12)
    s.axes.set(xlim=(1.0, 2.02), ylim=(-0.35, 2.9))
    w = np.sort(np.concatenate([np.linspace(1, 2, 101), np.linspace(1.305, 1.315, 101)]))
    s.axes.plot(w, loss(w), color=INK, linewidth=1.8)
    wall = names["wall"]
    s.arrow((wall, 0.16), (2.01, 0.16), CUT)
    s.text(1.72, 0.3, f"without clipping: to w = {names['far'][1]:.1f}", CUT, 12)
    dots = np.array([names["near"][step] for step in (1, 2, 4, 8, 16, 32, 64, 128, 201)])
    s.axes.plot(dots, loss(dots), "o", color=FORWARD, markersize=6)
    s.text(1.31, -0.17, "clipped: after 1, 2, 4, 8, ... 128 and 201 steps", FORWARD, 12, ha="left")
    s.axes.plot([wall], [0.16], marker="D", color=BACK, markersize=8)
    s.text(wall - 0.018, 0.16, f"gradient −{-names['geometric']:.0f}", BACK, 12, ha="right")
    return s


def sunspot_losses(
    dtype: str, optimizer: Callable[[Any], Any], backend: Backend = NUMPY, control: int | None = None
) -> Array:
    """The default run of ``rnn-parity curves`` with another optimizer; a control starts one ulp away in each weight."""
    task = tasks.load("sunspots")
    model: Any = task.model("rnn", 16, dtype=dtype, rng=0)
    if control is not None:
        rng = np.random.default_rng(control)
        for p in model.parameters():
            p.data[...] = np.nextafter(p.data, np.where(rng.integers(0, 2, p.shape), np.inf, -np.inf).astype(dtype))
    model = model if backend is NUMPY else twin(model)
    x, y = task.x.astype(dtype), task.y.astype(dtype)
    records = train(model, optimizer(model.parameters()), x, y, backend, window=20, epochs=30)
    return np.array([record.loss for record in records])


def rounding() -> Sketch:
    """Two training runs, NumPy against PyTorch and against itself from weights one ulp away, in both dtypes."""
    s = Sketch(11.6, 5.4)
    runs: list[tuple[str, Any, Any, Any]] = [
        (
            "the default run: rounding is forgotten",
            lambda p: numpy_rnn.Adadelta(p, lr=1.0),
            lambda p: torch.optim.Adadelta(p, lr=1.0),
            lambda p: numpy_rnn.Adadelta(p, lr=1.0, eps=1.001e-6),
        ),
        (
            "Adam with the rate 0.1: rounding is multiplied",
            lambda p: numpy_rnn.Adam(p, lr=0.1),
            lambda p: torch.optim.Adam(p, lr=0.1),
            None,
        ),
    ]
    steps = np.arange(1, 331)

    def apart(losses: Array, base: Array, dtype: str) -> Array:
        """The largest difference over the ten steps up to each; equal losses are drawn a quarter of an ulp apart."""
        difference = np.maximum(np.abs(losses - base), np.finfo(dtype).eps / 4 * base)
        return np.array([difference[max(0, k - 10) : k].max() for k in steps])

    for column, (title, ours, theirs, wrong) in enumerate(runs):
        axes = s.figure.add_axes((0.075 + 0.485 * column, 0.125, 0.425, 0.79), facecolor=PANEL)
        axes.set(yscale="log", xlim=(1, 330), ylim=(3e-18, 8))
        axes.set_yticks([1e-16, 1e-12, 1e-8, 1e-4, 1])
        axes.minorticks_off()
        axes.tick_params(colors=INK, labelsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title, color=INK, size=13)
        axes.set_xlabel("optimizer step", color=INK, size=12)
        for dtype, colour, width in [("float32", BACK, 2.2), ("float64", FORWARD, 1.1)]:
            base = sunspot_losses(dtype, ours)
            band = np.array([apart(sunspot_losses(dtype, ours, control=c), base, dtype) for c in range(8)])
            axes.fill_between(steps, band.min(axis=0), band.max(axis=0), color=colour, alpha=0.3, linewidth=0)
            axes.plot(steps, apart(sunspot_losses(dtype, theirs, TORCH), base, dtype), color=colour, linewidth=width)
            if wrong is not None:
                bug = apart(sunspot_losses(dtype, wrong), base, dtype)
                axes.plot(steps, bug, color=INK, linewidth=1.4, linestyle=(0, (5, 3) if dtype == "float32" else (1, 2)))
        if wrong is not None:
            axes.set_ylabel("|difference of the loss|", color=INK, size=12)
            for y, text, colour in [
                (4e-3, "a bug: eps = 1.001e-6 for 1e-6, the same in both dtypes", INK),
                (2e-6, "float32", BACK),
                (4e-15, "float64", FORWARD),
            ]:
                axes.text(322, y, text, color=colour, size=11, ha="right")
        else:
            axes.text(322, 2.2, "float32", color=BACK, size=11, ha="right")
            axes.text(322, 1e-4, "float64", color=FORWARD, size=11, ha="right")
    return s


FIGURES = {
    "01-forward": forward,
    "02-bptt": bptt,
    "03-truncated-bptt": truncated,
    "04-carried": lambda: versions(detached=False),
    "04-detached": lambda: versions(detached=True),
    "05-layers-directions": layers,
    "05-lengths": lengths,
    "06-lstm": lstm,
    "06-recompute": recomputed,
    "07-gru": gru,
    "09-optimizers": optimizers,
    "10-gradients": gradients,
    "10-cliff": cliff,
    "11-rounding": rounding,
}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        draw().save(name)
