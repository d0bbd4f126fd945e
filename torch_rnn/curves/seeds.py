"""Whether two programs learn alike, from several runs of each that differ by their seeds: a permutation test.

Each step is put in units of its spread over all runs, so that every step counts alike. The distance of the two groups
is the mean over the steps of the squared difference of their means. If the programs are alike, the labels mean nothing:
every other way to deal the same runs into two groups of these sizes is then as likely as the one at hand, and p is the
share of them whose groups are at least as far apart. One number a curve, so neighbouring steps need not be independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from numpy_rnn.typing import Array
from torch_rnn.curves.verdict import OPEN
from torch_rnn.tolerances import SEEDS

ALIKE, DIFFERENT = "not different", "different"
ENUMERATED = 50_000  # ways to deal; of more,
DRAWN = 10_000


@dataclass(frozen=True)
class Groups:
    """What ``compare_groups`` found."""

    runs: tuple[int, int]
    p: float
    smallest: float  # that p can be with so many runs
    exact: bool  # every way to deal was tried
    spread: float  # difference of the means over the spread of the seeds, at the middle step
    share: float  # difference of the means over their mean, at the middle step
    seen: float | None  # if alike: so many times the spread between the means, at every step, would have shown

    @property
    def outcome(self) -> str:
        """ALIKE or DIFFERENT; OPEN if no difference could have a p of ``SEEDS``."""
        if self.smallest > SEEDS:
            return OPEN
        return DIFFERENT if self.p <= SEEDS else ALIKE

    def sentence(self) -> str:
        """Say whether the groups differ, and by how much."""
        apart = (
            f"at the middle step their means are {self.share:.2g} of the loss apart, {self.spread:.2g} times the "
            f"spread of the seeds; p = {self.p:.2g}{'' if self.exact else ', from drawn ways to deal'}"
        )
        if self.outcome == OPEN:
            return (
                f"Cannot tell: with {self.runs[0]} and {self.runs[1]} runs p cannot be below {self.smallest:.2g}, and "
                f"at most {SEEDS} is called different; {runs_needed()} runs a side would decide ({apart})."
            )
        if self.outcome == DIFFERENT:
            return f"Different: the two groups of runs differ by more than their seeds explain ({apart})."
        seen = "" if self.seen is None else f" {self.seen:.2g} times the spread at every step would have been seen."
        return f"Not different: the seeds explain by what the two groups of runs differ ({apart}).{seen}"


def compare_groups(a: Array, b: Array) -> Groups:
    """Compare two groups of loss curves.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(100, 5)), rng.normal(size=(100, 5))  # 100 steps, 5 seeds a side
    >>> compare_groups(a, b).p > 0.01, compare_groups(a, b + 3).p == 2 / math.comb(10, 5)
    (True, True)

    Arguments: the losses of each group, (steps, runs).
    """
    runs = a.shape[1], b.shape[1]
    dealt, exact = _deals(*runs)
    both = np.hstack([a, b])
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(a.mean(axis=1) - b.mean(axis=1))
        within = _spread_within(a, b)
        spread = np.where(apart > 0, apart / within, 0.0)
        share = np.where(apart > 0, apart / np.abs(both.mean(axis=1)), 0.0)
    ways = math.comb(sum(runs), runs[0])
    smallest = min((2 if runs[0] == runs[1] else 1) / ways, 1.0) if exact else 1 / (len(dealt) + 1)
    p = _p(both, runs[0], dealt, exact)
    return Groups(
        runs=runs,
        p=p,
        smallest=smallest,
        exact=exact,
        spread=float(np.median(spread)),
        share=float(np.median(share)),
        seen=_smallest_seen(a, b, dealt, exact) if smallest <= SEEDS < p and within.any() else None,
    )


def runs_needed() -> int:
    """Return how many runs a side can have a p of ``SEEDS``; of equal groups a deal and its mirror image are one.

    >>> runs_needed()
    5
    """
    return next(n for n in range(1, 99) if 2 / math.comb(2 * n, n) <= SEEDS)


def _deals(first: int, second: int) -> tuple[Array, bool]:
    """Return ways to deal runs into two groups, (ways, runs), True for the first group; and whether it is all of them.

    The first of all ways is the one at hand.
    """
    runs = first + second
    if exact := math.comb(runs, first) <= ENUMERATED:
        chosen = np.array(list(combinations(range(runs), first)))
    else:
        chosen = np.random.default_rng(0).random((DRAWN, runs)).argsort(axis=1)[:, :first]
    dealt = np.zeros((len(chosen), runs), bool)
    np.put_along_axis(dealt, chosen, True, axis=1)
    return dealt, exact


def _p(losses: Array, first: int, dealt: Array, exact: bool) -> float:
    """Return the share of the ways to deal whose groups are at least as far apart as the first ``first`` runs."""
    centred = losses - losses.mean(axis=1, keepdims=True)
    largest = np.abs(centred).max(axis=1, keepdims=True)  # squares of 1e-200 are 0
    centred = np.divide(centred, largest, out=np.zeros_like(centred), where=largest > 0)
    spread = np.sqrt(np.mean(centred**2, axis=1, keepdims=True))
    z = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    products = z.T @ z / len(z)  # (runs, runs): all that the distances need of the curves

    def distances(groups: Array) -> Array:
        weights = np.where(groups, 1 / first, -1 / (groups.shape[1] - first))
        return np.asarray(((weights @ products) * weights).sum(axis=1))

    ours = distances(np.arange(losses.shape[1])[None] < first)[0]
    least = ours * (1 - 1e-9) - 1e-12  # the same groups in another order are a tie
    as_far = int((distances(dealt) >= least).sum())
    return as_far / len(dealt) if exact else (as_far + 1) / (len(dealt) + 1)


def _spread_within(a: Array, b: Array) -> Array:
    """Return the standard deviation of the runs about their own group's mean (steps,)."""
    squares = sum(((group - group.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for group in (a, b))
    return np.asarray(np.sqrt(squares / max(a.shape[1] + b.shape[1] - 2, 1)))


def _smallest_seen(a: Array, b: Array, dealt: Array, exact: bool) -> float:
    """Return how many times the spread of the seeds must lie between the means to be called different.

    Measured on the runs at hand: their means are moved onto each other, and apart again.
    """
    within = _spread_within(a, b)[:, None]
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    low, high = 0.0, 100.0
    while high - low > 0.05 * high:
        middle = (low + high) / 2
        if _p(np.hstack([a, b + middle * within]), a.shape[1], dealt, exact) <= SEEDS:
            high = middle
        else:
            low = middle
    return high
