"""Several logs, row beside row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from numpy_rnn.typing import Array
from torch_rnn.curves.logs import STEPS, Log


@dataclass(frozen=True, eq=False)
class Aligned:
    """The losses of several logs at their common steps."""

    by: str  # what the rows are matched by: "step", or "row" where a log counts no steps
    steps: Array  # (n,)
    losses: Array  # (n, logs)
    notes: tuple[str, ...]  # what was left out, and what to beware of

    def end(self, logs: int) -> int:
        """Return how many rows there are before the first with a loss that is not finite, in so many of the logs."""
        finite = np.asarray(np.isfinite(self.losses[:, :logs]).all(axis=1))
        return len(finite) if finite.all() else int(finite.argmin())


def align(logs: Sequence[Log], names: Sequence[str]) -> Aligned:
    """Match the rows of the logs by their steps, or one by one if a log counts none.

    Raises ``ValueError`` if they have no step in common.
    """
    notes = [f"{name}: {note}" for name, log in zip(names, logs, strict=True) for note in log.notes]
    counted = [log.steps for log in logs if log.steps is not None]
    if len(counted) < len(logs):
        by, rows = "row", min(len(log.losses) for log in logs)
        steps = np.arange(1.0, rows + 1)
        losses = [log.losses[:rows] for log in logs]
    else:
        by, steps = "step", reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), counted)
        if not len(steps):
            spans = "; ".join(f"{name} {at[0]:.10g} to {at[-1]:.10g}" for name, at in zip(names, counted, strict=True))
            raise ValueError(f"the logs have no step in common: {spans}")
        losses = [log.losses[np.searchsorted(at, steps)] for log, at in zip(logs, counted, strict=True)]
        notes += _shift(*counted[:2])
    for name, log in zip(names, logs, strict=True):
        if dropped := len(log.losses) - len(steps):
            notes.append(f"{name}: {dropped} of its {len(log.losses)} rows have no partner and are left out")
    return Aligned(by, steps, np.column_stack(losses), tuple(notes))


def check_units(logs: Sequence[Log], names: Sequence[str]) -> None:
    """Raise ``ValueError`` if all logs count, and not all the same: step 3 is not epoch 3."""
    counters = [log.step_column for log in logs if log.step_column is not None]
    if len(counters) < len(logs):
        return  # rows are counted
    for name, counter in zip(names, counters, strict=True):
        if _unit(counter) != _unit(counters[0]):
            raise ValueError(
                f"the logs must count the same, got {counters[0]} in {names[0]} ({logs[0].source}) and {counter} in "
                f"{name} ({logs[names.index(name)].source}); --step-column names what to match by, or 'row'"
            )


def _unit(counter: str) -> str:
    """Return what a column counts: steps go by many names."""
    counter = counter.lower()
    return "step" if counter in STEPS and counter != "epoch" else counter


def _shift(first: Array, second: Array) -> list[str]:
    """Warn of two logs of which one seems to count from 0 and the other from 1."""
    if len(first) != len(second) or first[0] == second[0] or np.ptp(first - second) > 0:
        return []
    return [
        f"the steps of B are those of A {second[0] - first[0]:+.10g}; if they should be equal, the step column "
        "'row' matches row with row"
    ]
