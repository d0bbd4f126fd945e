"""What a run leaves behind: every step as numbers, a picture, and a summary."""

from __future__ import annotations

import csv
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullLocator

from numpy_rnn.files import write_aside
from numpy_rnn.tasks import Score
from numpy_rnn.training import epoch_loss
from torch_rnn.curves.runs import Pair, Run, Settings
from torch_rnn.curves.snapshot import NAME
from torch_rnn.curves.verdict import Verdict
from torch_rnn.files import write_json
from torch_rnn.version import versions

FILES = ("curves.csv", "curves.png", "run.json")
COLUMNS = ("epoch", "step", "numpy_loss", "torch_loss", "numpy_grad_norm", "torch_grad_norm")
NUMPY_COLOUR, TORCH_COLOUR, ALLOWED_COLOUR, GREY = "#12355b", "#f8bd94", "#d9773a", "#666666"
DRAWN = 1e-100, 1e100  # beyond these, and for nan, matplotlib cannot lay out a log axis
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


def prepare(directory: Path) -> None:
    """Create ``directory`` and make sure that the files can be written into it; an older run's are replaced later.

    Raises ``OSError`` if they cannot.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name in (*FILES, NAME):
        if (directory / name).is_dir():
            raise IsADirectoryError(f"{directory / name} is a directory")
        for left in directory.glob(f".{name}.*.part"):  # by a process that was killed
            left.unlink()
    with TemporaryFile(dir=directory):
        pass


def write(directory: Path, run: Run, scores: Sequence[tuple[Score, Score]], verdict: Verdict) -> list[Path]:
    """Write curves.csv, curves.png and run.json; each appears whole or not at all. Return their paths.

    Raises ``OSError`` for what cannot be written.
    """
    table, picture, figures = paths = [directory / name for name in FILES]
    write_aside(table, lambda aside: _write_csv(aside, run.pairs))
    write_aside(picture, lambda aside: _draw(aside, run, verdict))
    write_json(figures, summary(run, scores, verdict))
    return paths


def epoch_losses(pairs: Sequence[Pair]) -> list[tuple[int, float, float]]:
    """Return ``(epoch, NumPy's loss, PyTorch's)`` of every epoch."""
    epochs: dict[int, list[Pair]] = {}
    for pair in pairs:
        epochs.setdefault(pair[0].epoch, []).append(pair)
    return [
        (epoch, epoch_loss(ours for ours, _ in steps), epoch_loss(theirs for _, theirs in steps))
        for epoch, steps in epochs.items()
    ]


def summary(run: Run, scores: Sequence[tuple[Score, Score]], verdict: Verdict) -> dict[str, Any]:
    """Return all settings, versions and figures; a number that is not finite becomes the string "nan" or "inf"."""

    def number(value: float) -> float | str:
        return value if math.isfinite(value) else str(value)

    return {
        "settings": asdict(run.settings),
        "versions": versions(),
        "steps": {"made": len(run.pairs), "planned": run.total},
        "verdict": {
            "outcome": verdict.outcome,
            "sentence": verdict.sentence(),
            "steps": verdict.steps,
            "statistic": None if verdict.evidence is None else number(verdict.evidence.statistic),
            "threshold": verdict.threshold,
            "separate_at": verdict.separate_at,
            "growth": verdict.growth,
            "shown_at": verdict.shown_at,
            "fault": None if verdict.fault is None else _numbers(asdict(verdict.fault), number),
            "not_finite": [asdict(place) for place in verdict.not_finite],
        },
        "measure": run.task.measure,
        "baseline": run.task.baseline,
        "scores": [
            {
                "span": ours.span,
                "numpy": number(ours.error),
                "torch": number(theirs.error),
                "baseline": number(ours.baseline),
                "target": ours.target,
            }
            for ours, theirs in scores
        ],
        "epochs": [
            {"epoch": epoch, "numpy_loss": number(ours), "torch_loss": number(theirs)}
            for epoch, ours, theirs in epoch_losses(run.pairs)
        ],
    }


def _numbers(fields: dict[str, Any], number: Callable[[float], float | str]) -> dict[str, Any]:
    return {name: number(value) if isinstance(value, float) else value for name, value in fields.items()}


def _write_csv(path: Path, pairs: Sequence[Pair]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for ours, theirs in pairs:  # the csv module writes a float with as many digits as read back to the same float
            writer.writerow([ours.epoch, ours.step, ours.loss, theirs.loss, ours.grad_norm, theirs.grad_norm])


def _draw(path: Path, run: Run, verdict: Verdict) -> None:
    figure(run, verdict).savefig(path, dpi=150, format="png")


def figure(run: Run, verdict: Verdict) -> Figure:
    """Draw both curves, and below them their difference beside what rounding does."""
    steps = np.array([ours.step for ours, _ in run.pairs])
    losses = np.array([[ours.loss, theirs.loss] for ours, theirs in run.pairs])
    size = np.abs(losses)
    losses[~((size == 0) | ((size > DRAWN[0]) & (size < DRAWN[1])))] = np.nan  # leaves a gap
    figure = Figure(figsize=(8, 6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    FigureCanvasAgg(figure)  # no display, whatever the user's matplotlib is set to
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    subtitle = textwrap.fill(_subtitle(run.settings), 108)
    upper.set_title(_title(run.task.name), **TITLE, pad=40 + 11 * subtitle.count("\n"))
    upper.annotate(subtitle, (0, 1), (0, 26), textcoords="offset points", va="bottom", **SUBTITLE)
    name = "mean squared error" if run.task.loss == "mse" else "cross entropy, nats"
    _draw_losses(upper, steps, losses, f"loss ({name})")
    _draw_difference(lower, steps, losses, verdict)
    lower.set_xlabel(f"optimizer step ({run.total // run.settings.epochs} an epoch)")
    return figure


def _title(name: str) -> str:
    """Return what is above the picture: a user's name may be long, and hold letters that the font has not, and "$"."""
    title = f"{name}: numpy_rnn and torch.nn from the same weights" if len(name) <= 24 else name
    return "".join(letter if ord(letter) < 0x500 else "?" for letter in title).replace("$", r"\$")


def _subtitle(s: Settings) -> str:
    layers = f"{s.layers} layer{'s' if s.layers > 1 else ''}"
    more = ("bidirectional, " if s.bidirectional else "") + (f"projection {s.proj_size}, " if s.proj_size else "")
    optimizer = f"{s.optimizer} lr {s.lr:g}" + ("" if s.clip is None else f" clip {s.clip:g}")
    return (
        f"{s.cell}, {s.hidden} hidden, {layers}, {more}window {s.window}, carry {s.carry}, {optimizer}, "
        f"{' and '.join(dict.fromkeys(s.dtypes))}, seed {s.seed}"
    )


def _draw_losses(axes: Axes, steps: Any, losses: Any, name: str) -> None:
    dot = "o" if len(steps) == 1 else ""  # a line needs two points
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


def _draw_difference(axes: Axes, steps: Any, losses: Any, verdict: Verdict) -> None:
    differences = np.abs(losses[:, 0] - losses[:, 1])
    positive = differences[differences > 0]
    axes.set_yscale("log")
    if verdict.evidence is not None and verdict.threshold is not None:
        rounding = verdict.evidence.rounding
        rounding = np.where((rounding > DRAWN[0]) & (rounding < DRAWN[1]), rounding, np.nan)
        known = steps[: len(rounding)]
        axes.plot(known, rounding, color=GREY, linewidth=1, label="rounding alone")
        allowed = rounding * 10**verdict.threshold
        axes.plot(known, allowed, color=ALLOWED_COLOUR, linewidth=1.2, linestyle="--", label="a bug from here")
        positive = np.concatenate([positive, rounding[rounding > 0]])
    floor = 10.0 ** (math.floor(math.log10(positive.min())) - 1) if positive.size else 1e-16
    equal = differences == 0
    axes.plot(steps[~equal], differences[~equal], ".", color=NUMPY_COLOUR, markersize=4, label="difference")
    label = "|difference|"
    if equal.any():
        axes.plot(
            steps[equal], np.full(equal.sum(), floor), "|", color=GREY, markersize=6, label="equal to the last bit"
        )
        label += f"\n(0 drawn at $10^{{{round(math.log10(floor))}}}$)"
    axes.set_ylabel(label)
    axes.set_ylim(bottom=floor / 3)
    axes.legend(**LEGEND)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
