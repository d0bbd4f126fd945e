"""The threshold of ``rnn-parity compare``: ``python -m torch_rnn.curves.calibrate_logs`` measures honest runs.

As ``torch_rnn.curves.calibrate`` does, but with what a user's controls are: moved once, at the start, and of one side
or of both. A control that training pulls back onto its run shows less rounding than one that is moved again at every
step, so the statistic is larger here. Every fifth run makes 300 steps. Controls of the finer side alone, where the
dtypes differ, are left out: ``compare_logs`` refuses them.
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
from torch_rnn.tolerances import LOGS

LONG = 300  # steps of every fifth run


class MovedOnce(Run):
    """A run whose controls are moved at the start alone."""

    moved = False

    def _move_controls(self) -> None:
        if not self.moved:
            super()._move_controls()
        self.moved = True


def drawn(number: int) -> tuple[Settings, int]:
    """Return the settings with this number, and how many steps to make."""
    settings, steps = draw(np.random.default_rng([2, number]))
    return (replace(settings, epochs=LONG), LONG) if number % 5 == 0 else (settings, steps)


def measure(settings: Settings, steps: int) -> list[float]:
    """Return the statistics of all honest pairs, for every number of controls, of one side and of both."""
    run = MovedOnce(settings)
    for _ in islice(run.train(), steps):
        pass
    statistics = []
    for pair in range(settings.controls + 1):
        factor = 1.0 if pair == 0 else math.sqrt(2)
        a, b = (nearer(np.roll(run.losses(side), -pair, axis=1), factor) for side in (0, 1))
        for n in range(2, settings.controls + 2):
            still_a, still_b = (np.repeat(losses[:, :1], n, axis=1) for losses in (a, b))
            sides: list[tuple[Array, Array]] = [(a[:, :n], b[:, :n]), (a[:, :n], still_b)]
            if settings.dtypes[0] == settings.dtypes[1]:  # else A is the coarser
                sides.append((still_a, b[:, :n]))
            statistics += [gather(*both, settings.coarser).statistic for both in sides]
    return statistics


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m torch_rnn.curves.calibrate_logs", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--settings", type=int, default=85, help="to draw: five pairs each (default: 85)")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    values = np.array([value for i in range(args.settings) for value in measure(*drawn(i))])
    print(
        f"{len(values)} statistics of {args.settings} settings: median {np.median(values):.2f}, largest "
        f"{values.max():.2f}; above {LOGS.rounding}: {(values > LOGS.rounding).sum()}, above {LOGS.bug}: "
        f"{(values > LOGS.bug).sum()}, by the tail a share of {chance_above(values, LOGS.bug):.0e}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
