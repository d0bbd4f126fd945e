"""What a run leaves behind: every step as numbers, pictures, a page to read, and a summary."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from numpy_rnn.files import write_aside
from numpy_rnn.tasks import Score
from numpy_rnn.training import epoch_loss
from torch_rnn.curves import picture
from torch_rnn.curves.page import page
from torch_rnn.curves.runs import Pair, Run
from torch_rnn.curves.snapshot import NAME
from torch_rnn.curves.verdict import Verdict
from torch_rnn.files import write_json, write_text
from torch_rnn.version import versions

FILES = ("report.html", "curves.csv", "curves.png", "curves.svg", "run.json")
COLUMNS = ("epoch", "step", "numpy_loss", "torch_loss", "numpy_grad_norm", "torch_grad_norm")


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


def write(
    directory: Path, run: Run, scores: Sequence[tuple[Score, Score]], verdict: Verdict, command: str
) -> list[Path]:
    """Write the files; each appears whole or not at all. Return their paths. ``command`` is what made them.

    Raises ``OSError`` for what cannot be written.
    """
    figures, drawing = summary(run, scores, verdict), picture.figure(run, verdict)
    paths = [directory / name for name in FILES]
    html, table, png, svg, numbers = paths
    write_aside(table, lambda aside: _write_csv(aside, run.pairs))
    write_json(numbers, figures)
    write_aside(png, lambda aside: picture.save(drawing, aside, "png"))
    write_aside(svg, lambda aside: picture.save(drawing, aside, "svg"))
    write_text(html, page(run, verdict, figures, command))
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
