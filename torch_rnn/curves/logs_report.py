"""What a comparison of two logs leaves behind: every step as numbers, a picture, and a summary."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from numpy_rnn.files import write_aside
from numpy_rnn.typing import Array
from torch_rnn.curves.compare_logs import LogComparison
from torch_rnn.curves.lines import with_gaps
from torch_rnn.curves.logs import Log
from torch_rnn.curves.logs_hints import hints
from torch_rnn.curves.picture import ALLOWED_COLOUR, GREY, LEGEND, NUMPY_COLOUR, SUBTITLE, TITLE, TORCH_COLOUR
from torch_rnn.files import write_json
from torch_rnn.tolerances import LOGS_BUG, LOGS_ROUNDING, SEEDS
from torch_rnn.version import project_version

FILES = ("compare.csv", "compare.png", "compare.svg", "compare.json")
POINTS = 2000  # of a curve in the picture; of more steps each point stands for several


def write(directory: Path, found: LogComparison) -> list[Path]:
    """Write the table, the pictures and the summary; each appears whole or not at all. Return their paths.

    Raises ``OSError`` for what cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    table, *pictures, figures = paths = [directory / name for name in FILES]
    write_aside(table, lambda aside: _write_csv(aside, found))
    drawn = figure(found)
    for picture in pictures:
        kind = picture.suffix[1:]
        write_aside(picture, lambda aside, kind=kind: drawn.savefig(aside, dpi=150, format=kind))  # type: ignore[misc]
    write_json(figures, summary(found))
    return paths


def _write_csv(path: Path, found: LogComparison) -> None:
    columns = {"step": found.steps, "a_loss": found.a_loss, "b_loss": found.b_loss, "difference": found.difference}
    if found.kind == "controls":
        columns["rounding"] = found.evidence.rounding
    for side, others in (("a", found.a_others), ("b", found.b_others)):
        for i, other in enumerate(others.T, 1):
            columns[f"{side}_{found.kind.removesuffix('s')}_{i}"] = other
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([f"{row[0]:.17g}", *map(float, row[1:])])


def summary(found: LogComparison) -> dict[str, Any]:
    """Return all figures; a number that is not finite becomes the string "nan" or "inf"."""
    largest = int(found.difference.argmax()) if len(found.steps) else None
    groups = found.groups
    return {
        "a": _described(found.a),
        "b": _described(found.b),
        "matched_by": found.by,
        "steps": len(found.steps),
        "notes": list(found.notes),
        "outcome": found.outcome,
        "sentence": found.sentence(),
        "marks": hints(found),
        "first_different": found.first_different,
        "separate_at": found.separate_at,
        "growth": found.growth,
        "largest_difference": None
        if largest is None
        else {"step": float(found.steps[largest]), "value": float(found.difference[largest])},
        "controls": [found.a_others.shape[1], found.b_others.shape[1]] if found.kind == "controls" else None,
        "statistic": _number(found.evidence.statistic) if found.kind == "controls" else None,
        "thresholds": [LOGS_ROUNDING, LOGS_BUG] if found.kind == "controls" else None,
        "shown_at": found.shown_at,
        "seeds": None
        if groups is None
        else {
            "runs": list(groups.runs),
            "p": groups.p,
            "level": SEEDS,
            "smallest_p": groups.smallest,
            "exact": groups.exact,
            "times_the_spread": _number(groups.spread),
            "share_of_the_loss": _number(groups.share),
            "times_the_spread_that_would_show": groups.seen,
        },
        "versions": {"numpy": np.__version__, "rnn-parity": project_version()},
    }


def _described(log: Log) -> dict[str, Any]:
    return {
        "source": log.source,
        "column": log.column,
        "step_column": log.step_column,
        "rows": len(log.losses),
        "precision": log.precision,
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def figure(found: LogComparison) -> Figure:
    """Draw both curves, and below them their difference."""
    figure = Figure(figsize=(8, 6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    FigureCanvasAgg(figure)  # no display, whatever the user's matplotlib is set to
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    upper.set_title(f"A and B: {found.outcome}", **TITLE, pad=40)
    names = [f"{Path(log.source).name}: {log.column}" for log in (found.a, found.b)]
    upper.annotate(f"A {names[0]}, B {names[1]}", (0, 1), (0, 26), textcoords="offset points", **SUBTITLE)
    _draw_losses(upper, found)
    _draw_difference(lower, found)
    lower.set_xlabel(found.by)
    for axes in (upper, lower):
        axes.legend(**LEGEND)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure


def _draw_losses(axes: Axes, found: LogComparison) -> None:
    dot = "o" if len(found.steps) == 1 else ""  # a line needs two points
    steps = _thinned(found.steps)
    for others, colour in ((found.b_others, TORCH_COLOUR), (found.a_others, NUMPY_COLOUR)):
        axes.plot(steps, with_gaps(_thinned(others)), color=colour, linewidth=0.7, alpha=0.5)
    b, a = with_gaps(_thinned(found.b_loss)), with_gaps(_thinned(found.a_loss))
    axes.plot(steps, b, color=TORCH_COLOUR, linewidth=5, marker=dot, markersize=10, label="B")
    axes.plot(steps, a, color=NUMPY_COLOUR, linewidth=1.2, marker=dot, label="A")
    if len(a) and np.nanmin([a, b], initial=np.inf) > 0:
        axes.set_yscale("log")
    axes.set_ylabel("loss")


def _draw_difference(axes: Axes, found: LogComparison) -> None:
    steps = _thinned(found.steps)
    difference = with_gaps(_thinned(found.difference, np.maximum))
    shown = difference > 0
    axes.plot(steps[shown], difference[shown], ".", color=NUMPY_COLOUR, markersize=4, label="|A - B|")
    if found.kind == "controls":
        rounding = with_gaps(_thinned(found.evidence.rounding, np.maximum))
        axes.plot(steps, rounding, color=GREY, linewidth=1, label="rounding alone")
        axes.plot(steps, rounding * 10**LOGS_BUG, color=ALLOWED_COLOUR, linestyle="--", label="a bug from here")
    if found.unit.any():
        unit = with_gaps(_thinned(found.unit, np.maximum))
        axes.plot(steps, unit, color=GREY, linewidth=1, linestyle=":", label="last digit of the logs")
    if axes.lines and any(np.nanmax(line.get_ydata(), initial=0) > 0 for line in axes.lines):
        axes.set_yscale("log")
    axes.set_ylabel("|difference|")


def _thinned(values: Array, merge: np.ufunc | None = None) -> Array:
    """Return at most ``POINTS`` rows: the first of several neighbours, or what ``merge`` makes of them."""
    every = -(-len(values) // POINTS) or 1
    return values[::every] if merge is None else merge.reduceat(values, np.arange(0, len(values), every))
