"""How far two loss curves are apart, in units of how far rounding alone moves either of them.

With N controls of each side, d(t) the difference of the two losses at step t, and m(·) the largest of the last
max(10, t/8) steps:

    D(t) = m(|d|)(t)                         of the two runs
    R(t) = max over the sides of rms over the controls of m(|control - its own side's run|)(t)
    excess(t) = log10(D(t) / max(R(t), 2 ε m(|loss|)(t)))

ε is that of the coarser dtype. The statistic of a run is its largest excess: one number, whatever the number of steps.
It is compared with a threshold that was calibrated on other runs, see ``torch_rnn.curves.calibrate``. A band a step
would not do: of N controls each leaves the band of the others at 3 to 42 % of the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.typing import Array

FLOOR = 2  # units in the last place of the loss, where the controls coincide with their run
SHORTEST, SHARE = 10, 8  # the largest of so many steps, or of this part of all steps so far
APART = 0.01  # of the loss: from here on two lines in one picture are seen as two


@dataclass(frozen=True, eq=False)
class Evidence:
    """The curves as the verdict sees them, one entry a step up to the last at which both losses are finite."""

    difference: Array  # D
    rounding: Array  # R with its floor
    loss: Array  # the larger of the two, in absolute value, the largest of the last steps
    controls: int  # of each side

    @property
    def excess(self) -> Array:
        """log10(D/R) of each step; -inf where the curves are equal."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log10(self.difference / self.rounding))

    @property
    def statistic(self) -> float:
        """The largest excess."""
        return float(self.excess.max(initial=-math.inf))

    def first_above(self, threshold: float) -> int | None:
        """Return the first step, counted from 1, whose excess is above the threshold."""
        above = np.flatnonzero(self.excess > threshold)
        return int(above[0]) + 1 if above.size else None

    def first_apart(self) -> int | None:
        """Return the first step, counted from 1, at which the curves are ``APART`` of the loss from each other."""
        apart = np.flatnonzero(self.difference > APART * self.loss)
        return int(apart[0]) + 1 if apart.size else None

    def growth(self, steps: Array | None = None) -> float | None:
        """Return the factor by which the difference grows a step, up to where the curves are apart; None if unknown.

        It is the slope of a straight line through log D(t); fewer than ``SHORTEST`` steps with a difference tell none.
        ``steps`` are the numbers of the steps where these are not all there are.
        """
        end = self.first_apart() or len(self.difference)
        known = np.flatnonzero(self.difference[:end] > 0)
        if len(known) < SHORTEST:
            return None
        at = known if steps is None else steps[known] - steps[known[0]]
        return float(np.exp(np.polyfit(at, np.log(self.difference[known]), 1)[0]))

    def smallest_seen(self, threshold: float) -> tuple[int, float] | None:
        """Return ``(step, share)``: where, from step 2 on, the smallest share of the loss would have been noticed.

        The first loss is that of equal weights, so no wrong gradient or update can show in it.
        """
        if len(self.loss) < 2:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.loss > 0, self.rounding * 10**threshold / self.loss, math.inf)[1:]
        best = int(share.argmin())
        return best + 2, float(share[best])


def gather(ours: Array, theirs: Array, coarser: DTypeLike) -> Evidence:
    """Lay the curves of both sides side by side.

    >>> losses = np.array([[1.0, 1.0, 1.0], [0.5, 0.5, 0.5]])  # two steps of a run and two controls
    >>> evidence = gather(losses, losses + [1e-15, 0.0, 0.0], "float64")
    >>> evidence.statistic < 1, evidence.controls
    (True, 2)

    Arguments: the losses of both sides, (steps, 1 + N), the run's own in column 0; the coarser of the two dtypes. A
    control whose loss is not finite is infinitely far off.

    Raises ``ValueError`` unless both have the same number of steps, and at least one control.
    """
    if len(ours) != len(theirs) or min(ours.shape[1], theirs.shape[1]) < 2:
        raise ValueError(f"ours and theirs must be (steps, 1 + N), N at least 1, got {ours.shape} and {theirs.shape}")
    finite = np.isfinite(ours[:, 0]) & np.isfinite(theirs[:, 0])
    end = len(finite) if finite.all() else int(finite.argmin())
    ours, theirs = ours[:end], theirs[:end]
    loss = largest_of_last(np.maximum(np.abs(ours[:, 0]), np.abs(theirs[:, 0])))
    with np.errstate(over="ignore", invalid="ignore"):
        moved = [_root_mean_square(_moved(side)) for side in (ours, theirs)]
        difference = largest_of_last(np.abs(ours[:, 0] - theirs[:, 0]))
    limits = np.finfo(coarser)
    floor = np.maximum(FLOOR * float(limits.eps) * loss, float(limits.tiny))
    return Evidence(difference, np.maximum(np.maximum(*moved), floor), loss, min(ours.shape[1], theirs.shape[1]) - 1)


def _moved(losses: Array) -> Array:
    """How far each control is from its run (steps, N)."""
    moved = np.abs(losses[:, 1:] - losses[:, :1])
    return largest_of_last(np.where(np.isfinite(moved), moved, math.inf))


def _root_mean_square(moved: Array) -> Array:
    scale = np.maximum(moved.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)  # squares of 1e-200 are 0
    with np.errstate(invalid="ignore"):
        part = np.where(np.isinf(scale), 1.0, moved / scale)
    return np.asarray(scale[:, 0] * np.sqrt(np.mean(part**2, axis=1)))


def largest_of_last(curves: Array) -> Array:
    """Return, for each step t, the largest entry of the last max(10, t/8) steps, in each column.

    >>> largest_of_last(np.array([3.0, 1.0, 2.0])).tolist()
    [3.0, 3.0, 3.0]
    """
    steps = np.arange(len(curves))
    width = np.minimum(np.maximum(SHORTEST, (steps + 1) // SHARE), steps + 1)
    result = np.empty_like(curves)
    doubled = curves  # doubled[t]: the largest of the last 2^k steps
    k = 0
    while len(curves) and 2**k <= width.max():
        chosen = np.flatnonzero((2**k <= width) & (width < 2 ** (k + 1)))
        result[chosen] = np.maximum(doubled[chosen], doubled[chosen - width[chosen] + 2**k])
        later = doubled.copy()
        later[2**k :] = np.maximum(doubled[2**k :], doubled[: -(2**k)])
        doubled, k = later, k + 1
    return result
