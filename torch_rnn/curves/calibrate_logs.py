"""The thresholds of ``rnn-parity compare``: ``python -m torch_rnn.curves.calibrate_logs`` measures honest runs.

    python -m torch_rnn.curves.calibrate_logs                                the settings of tolerances.py
    python -m torch_rnn.curves.calibrate_logs --settings 16 --steps 1000     long runs, with one control

As ``torch_rnn.curves.calibrate`` does, but with what a user's controls are: moved once, at the start, of one side or of
both. A control that training pulls back onto its run shows less rounding than one that is moved again at every step, so
the statistic is larger here. Every run is taken with all its steps, and with every tenth. Controls of the finer side
alone, where the dtypes differ, are left out: ``compare_logs`` does not judge by them.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from numpy_rnn.typing import Array
from torch_rnn.curves.calibrate import chance_above, draw, nearer
from torch_rnn.curves.runs import Run, Settings
from torch_rnn.curves.statistic import gather
from torch_rnn.tolerances import LOGS_BUG, LOGS_ROUNDING

LONG = 300  # steps of every fifth run
EVERY = 1, 10  # steps are logged


class MovedOnce(Run):
    """A run whose controls are moved at the start alone."""

    moved = False

    def _move_controls(self) -> None:
        if not self.moved:
            super()._move_controls()
        self.moved = True


def drawn(number: int, steps: int | None = None) -> tuple[Settings, int]:
    """Return the settings with this number, and how many steps to make; with so many steps there is one control."""
    settings, own = draw(np.random.default_rng([2, number]))
    if steps is not None:
        return replace(settings, epochs=steps, controls=1), steps
    return (replace(settings, epochs=LONG), LONG) if number % 5 == 0 else (settings, own)


def measure(settings: Settings, steps: int) -> list[float]:
    """Return the statistics of all honest pairs of a run."""
    run = MovedOnce(settings)
    for _ in islice(run.train(), steps):
        pass
    return statistics(settings, run.losses(0), run.losses(1))


def statistics(settings: Settings, ours: Array, theirs: Array) -> list[float]:
    """Return the statistics of all honest pairs, for every number of controls, of one side and of both."""
    found = []
    for pair in range(settings.controls + 1):
        factor = 1.0 if pair == 0 else math.sqrt(2)  # between two controls there are two moves
        a, b = (nearer(np.roll(losses, -pair, axis=1), factor) for losses in (ours, theirs))
        for n in range(2, settings.controls + 2):
            still_a, still_b = (np.repeat(losses[:, :1], n, axis=1) for losses in (a, b))
            sides: list[tuple[Array, Array]] = [(a[:, :n], b[:, :n]), (a[:, :n], still_b)]
            if settings.dtypes[0] == settings.dtypes[1]:  # else A is the coarser
                sides.append((still_a, b[:, :n]))
            for every in EVERY:
                found += [gather(one[::every], two[::every], settings.coarser).statistic for one, two in sides]
    return found


def main(argv: list[str] | None = None) -> int:  # pragma: no cover - takes minutes; a test calls what it prints
    parser = argparse.ArgumentParser(
        prog="python -m torch_rnn.curves.calibrate_logs", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--settings", type=int, default=85, help="to draw: five pairs each (default: 85)")
    parser.add_argument("--steps", type=int, help=f"of each run (default: 8 to 120, of every fifth {LONG})")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    values = np.array([value for i in range(args.settings) for value in measure(*drawn(i, args.steps))])
    print(
        f"{len(values)} statistics of {args.settings} settings: median {np.median(values):.2f}, largest "
        f"{values.max():.2f}; above {LOGS_ROUNDING}: {(values > LOGS_ROUNDING).sum()}, above {LOGS_BUG}: "
        f"{(values > LOGS_BUG).sum()}, by the tail a share of {chance_above(values, LOGS_BUG):.0e}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
