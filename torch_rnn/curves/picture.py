"""Both loss curves, and their difference beside what rounding does, as a picture for papers and notebooks."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullLocator

from torch_rnn.curves.lines import Lines, lines, loss_name, step_name, subtitle, title
from torch_rnn.curves.runs import Run
from torch_rnn.curves.verdict import Verdict

NUMPY_COLOUR, TORCH_COLOUR, ALLOWED_COLOUR, GREY = "#12355b", "#f8bd94", "#d9773a", "#666666"
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 12, "fontweight": "bold"}
SUBTITLE: dict[str, Any] = {"xycoords": "axes fraction", "fontsize": 8.5, "color": GREY}
LEGEND: dict[str, Any] = {  # a row above the axes, where no curve can run through it
    "loc": "lower left",
    "bbox_to_anchor": (0, 1),
    "borderaxespad": 0.2,
    "borderpad": 0,
    "frameon": False,
    "ncols": 4,
    "fontsize": 9,
}


def figure(run: Run, verdict: Verdict) -> Figure:
    """Draw both curves, and below them their difference beside what rounding does."""
    drawn = lines(run, verdict)
    figure = Figure(figsize=(8, 6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    FigureCanvasAgg(figure)  # no display, whatever the user's matplotlib is set to
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    below = textwrap.fill(subtitle(run), 108)
    upper.set_title(_title(run), **TITLE, pad=40 + 11 * below.count("\n"))
    upper.annotate(below, (0, 1), (0, 26), textcoords="offset points", va="bottom", **SUBTITLE)
    _draw_losses(upper, drawn, loss_name(run))
    _draw_difference(lower, drawn)
    lower.set_xlabel(step_name(run))
    return figure


def _title(run: Run) -> str:
    """Return what is above the picture: a user's name may be long, and hold letters that the font has not, and "$"."""
    text = title(run) if len(run.task.name) <= 24 else run.task.name
    return "".join(letter if ord(letter) < 0x500 else "?" for letter in text).replace("$", r"\$")


def save(figure: Figure, path: Path, format: str) -> None:
    """Write a figure as "png" or "svg"; the same figure gives the same bytes."""
    with matplotlib.rc_context({"svg.hashsalt": "curves"}):
        figure.savefig(path, dpi=150, format=format, metadata={"Date": None} if format == "svg" else None)
    figure.set_layout_engine("none")  # it is laid out now, and that takes half of the time


def _draw_losses(axes: Axes, drawn: Lines, name: str) -> None:
    steps, losses = drawn.steps, drawn.losses
    dot = "o" if np.isfinite(losses).all(axis=1).sum() < 2 else ""  # a line needs two points
    axes.plot(steps, losses[:, 1], color=TORCH_COLOUR, linewidth=5, marker=dot, markersize=10, label="torch.nn")
    axes.plot(steps, losses[:, 0], color=NUMPY_COLOUR, linewidth=1.2, marker=dot, label="numpy_rnn")
    finite = losses[np.isfinite(losses)]
    if finite.size and (finite > 0).all():
        axes.set_yscale("log")
        if finite.max() < 1000 * finite.min():
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(name)
    axes.legend(**LEGEND)
    _bare(axes)


def _draw_difference(axes: Axes, drawn: Lines) -> None:
    steps, differences = drawn.steps, drawn.difference
    axes.set_yscale("log")
    if np.isfinite(drawn.rounding).any():
        axes.plot(steps, drawn.rounding, color=GREY, linewidth=1, label="rounding alone")
        axes.plot(steps, drawn.allowed, color=ALLOWED_COLOUR, linewidth=1.2, linestyle="--", label="a bug from here")
    equal = differences == 0
    axes.plot(steps[~equal], differences[~equal], ".", color=NUMPY_COLOUR, markersize=4, label="difference")
    label = "|difference|"
    if equal.any():
        floor = np.full(equal.sum(), drawn.floor)
        axes.plot(steps[equal], floor, "|", color=GREY, markersize=6, label="equal to the last bit")
        label += f"\n(0 drawn at $10^{{{round(math.log10(drawn.floor))}}}$)"
    axes.set_ylabel(label)
    axes.set_ylim(bottom=drawn.floor / 3)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend(**LEGEND)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
