"""The figures that show results: the library's own, or those of a chapter's blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import numpy_rnn
from derivations.figures.sketch import BACK, CUT, FORWARD, INK, PANEL, Sketch, page, plot_on
from numpy_rnn import tasks
from numpy_rnn.training import NUMPY, Backend, train
from numpy_rnn.typing import Array
from torch_rnn.backend import TORCH
from torch_rnn.measure.grid import Row
from torch_rnn.measure.memory import allocated_at_once, numpy_saved
from torch_rnn.measure.sides import Data, numpy_module
from torch_rnn.twins import twin


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


def pulls() -> Sketch:
    """How hard losses pull at one output: at a number, and at the logit of an answer that is right."""
    s = Sketch(9.9, 4.6)
    panels = s.axes, s.figure.add_axes((0, 0, 1, 1))
    losses = [("squared", CUT, numpy_rnn.mse_loss), ("absolute", FORWARD, numpy_rnn.l1_loss)]
    losses += [("Huber", BACK, numpy_rnn.huber_loss)]
    r, z = np.linspace(-3, 3, 601), np.linspace(-6, 6, 601)

    def slope(loss: Callable[..., Any], at: Array, target: Array) -> Array:
        output = numpy_rnn.Tensor(at, requires_grad=True)
        loss(output, target, reduction="sum").backward()
        return output.grad.numpy()

    for axes, left, xlabel in zip(panels, (0.07, 0.57), ("output minus target", "logit of yes"), strict=True):
        plot_on(axes, (left, 0.13, 0.41, 0.84), xlabel)
    panels[0].set(xlim=(-3, 3), ylim=(-3.4, 3.4))
    panels[0].set_ylabel("slope of the loss", color=INK, size=12)
    for (name, colour, loss), at in zip(losses, ((0.8, 2.8), (-2.2, -1.3), (1.5, 0.72)), strict=True):
        width = 3.5 if name == "absolute" else 1.6  # the other two lie upon it in part
        panels[0].plot(r, slope(loss, r, np.zeros_like(r)), color=colour, linewidth=width, alpha=0.9)
        panels[0].text(*at, name, color=colour, size=12, ha="center", va="center")
    panels[1].set(xlim=(-6, 6), ylim=(-1.1, 0.1))
    cross = slope(numpy_rnn.binary_cross_entropy_with_logits, z, np.ones_like(z))
    panels[1].plot(z, cross, color=FORWARD, linewidth=1.6)
    panels[1].plot(z, -4 * (1 + cross) * cross**2, color=CUT, linewidth=1.6)
    panels[1].text(2.4, -0.5, "cross entropy", color=FORWARD, size=12, ha="center", va="center")
    panels[1].text(-3.9, -0.45, "squared error\nof the\nprobabilities", color=CUT, size=12, ha="center", va="center")
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


def surface() -> Sketch:
    """The loss of one unit over its two weights, and the two paths down it that chapter 3 compares."""
    names = page("03-truncated-bptt.md")
    across, up = np.linspace(-0.05, 1.85, 96), np.linspace(-1.1, 0.35, 73)
    losses = [[names["valley"](np.array([w_x, w_h]), 60)[0] for w_x in across] for w_h in up]
    s = Sketch(9.9, 7.6)
    plot_on(s.axes, (0.1, 0.095, 0.88, 0.89), r"$w_x$")
    s.axes.set_ylabel(r"$w_h$", color=INK, size=13)
    s.axes.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
    levels = [0.046, 0.0475, 0.05, 0.055, 0.065, 0.08, 0.1, 0.13, 0.17, 0.21]
    lines = s.axes.contour(across, up, losses, levels, colors="#8a97a3", linewidths=0.9)
    s.axes.clabel(lines, levels[2::2], fontsize=10, colors=INK, inline_spacing=2)
    for window, colour, marker, text, at in (
        (60, FORWARD, "o", "full gradient", (1.41, -0.53)),
        (1, CUT, "s", "a cut after each step", (1.44, -0.79)),
    ):
        path = np.array(names["paths"][window])
        s.axes.plot(*path.T, color=colour, linewidth=1.4, marker=marker, markersize=4, markevery=[*range(12), -1])
        s.axes.plot(*path[-1], color=colour, marker=marker, markersize=9)
        s.text(*at, text, colour, 12, ha="left" if window == 60 else "right")
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
