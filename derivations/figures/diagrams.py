"""The figures that show what flows where."""

import matplotlib

from derivations.figures.sketch import BACK, BOX, CUT, FORWARD, INK, Sketch


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


def window() -> Sketch:
    """A window as arrays, with shapes: three products outside the loop forward, three outside it backward."""
    s = Sketch(12.2, 6.2)

    def array(x: float, y: float, name: str, size: str, colour: str = BOX) -> None:
        s.box(x, y, "", w=1.7, h=0.86, colour=colour)
        s.text(x, y + 0.16, name, INK, 13)
        s.text(x, y - 0.22, size, INK, 10, family="monospace")

    array(1.2, 4.9, r"$\mathbf{X}$", "(T·B, I)")
    array(4.0, 4.9, r"$\mathbf{A}$", "(T·B, H)")
    array(7.6, 4.9, r"$\mathbf{H}$", "(T·B, H)")
    array(10.9, 4.9, r"$L$", "()", "#f1ead9")
    array(5.9, 3.55, r"$\mathbf{H}_0$", "(B, H)")
    s.arrow((2.1, 4.9), (3.1, 4.9), FORWARD)
    s.text(2.6, 5.2, r"$W_{ih}$, biases", FORWARD, 11)
    s.arrow((4.9, 4.9), (6.7, 4.9), FORWARD)
    s.text(5.8, 5.2, r"loop: $W_{hh}$, tanh", FORWARD, 11)
    s.arrow((5.9, 4.03), (5.9, 4.8), FORWARD)
    s.arrow((8.5, 4.9), (10.0, 4.9), FORWARD)
    array(10.9, 2.2, r"$\mathbf{G}$", "(T·B, H)")
    array(7.6, 2.2, r"$\mathbf{\Delta}$", "(T·B, H)")
    array(1.2, 2.2, r"$dL/d\mathbf{X}$", "(T·B, I)")
    array(5.9, 0.8, r"$dL/d\mathbf{H}_0$", "(B, H)")
    array(1.2, 0.8, r"$dL/dW_{ih}$", "(H, I)")
    array(8.9, 0.8, r"$dL/dW_{hh}$", "(H, H)")
    array(11.2, 0.8, r"$dL/db$", "(H,)")
    s.arrow((10.9, 4.4), (10.9, 2.7), BACK)
    s.arrow((10.0, 2.2), (8.5, 2.2), BACK)
    s.text(9.25, 2.5, r"loop back: $W_{hh}$", BACK, 11)
    s.arrow((6.7, 2.2), (2.1, 2.2), BACK)
    s.text(4.4, 2.5, r"$\mathbf{\Delta} W_{ih}$", BACK, 12)
    s.arrow((6.75, 1.95), (2.1, 0.95), BACK)
    s.text(3.9, 1.1, r"$\mathbf{\Delta}^\top \mathbf{X}$", BACK, 12)
    s.arrow((7.2, 1.72), (6.3, 1.28), BACK)
    s.text(6.25, 1.66, r"$\mathbf{\Delta}_1 W_{hh}$", BACK, 11)
    s.arrow((8.0, 1.72), (8.6, 1.28), BACK)
    s.text(7.4, 1.05, r"$\mathbf{\Delta}^\top \mathbf{H}_{prev}$", BACK, 11)
    s.arrow((8.45, 1.85), (10.45, 1.28), BACK)
    s.text(9.6, 1.75, r"$\mathbf{\Delta}^\top \mathbf{1}$", BACK, 11)
    s.arrow((7.6, 4.4), (7.6, 2.7), INK)
    s.text(7.75, 3.55, "kept for the slopes and for dW", INK, 10.5, ha="left")
    s.text(0.35, 5.75, "forward", FORWARD, 12, ha="left")
    s.text(0.35, 3.1, "backward", BACK, 12, ha="left")
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
