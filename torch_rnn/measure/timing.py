"""How times are taken: in blocks, in turn, and summed up by their quartiles.

A *work* does something once and returns how long its phases took, in seconds. Works are run in turn, A B A B, a block
of calls each, so that what else the machine does falls on all of them alike. Before a block there is a pause, and one
call that is not counted: both libraries' worker threads go on spinning for some milliseconds after their last product,
and would take the cores from the other side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, sleep

import numpy as np

Work = Callable[[], Mapping[str, float]]  # seconds of each phase
Rounds = dict[str, list[float]]  # for each phase, the median of each round's block


@dataclass(frozen=True)
class Effort:
    """How long to go on: ``least`` rounds, then up to ``most`` while the whole takes less than ``seconds``."""

    least: int
    most: int
    seconds: float
    block: float  # seconds that a block of calls takes, if more than one fits
    pause: float  # seconds before each block


ROW = Effort(least=7, most=41, seconds=8.0, block=0.02, pause=0.04)
SMALL = Effort(least=7, most=15, seconds=1.0, block=0.01, pause=0.04)
QUICK = Effort(least=3, most=5, seconds=0.3, block=0.005, pause=0.04)
MOST_CALLS = 500  # in a block
LONG = 0.25  # seconds of a call, from which on waking the threads does not count


def interleave(works: Mapping[str, Work], effort: Effort) -> dict[str, Rounds]:
    """Run every work in turn, round after round, and return the medians of each round."""
    calls = {name: _warm_up(work, effort.block) for name, work in works.items()}
    found: dict[str, Rounds] = {name: {} for name in works}
    start = perf_counter()
    for done in range(effort.most):
        if done >= effort.least and perf_counter() - start > effort.seconds:
            break
        for name, work in works.items():
            sleep(effort.pause)
            for phase, seconds in _block(work, calls[name]).items():
                found[name].setdefault(phase, []).append(seconds)
    return found


def _warm_up(work: Work, block: float) -> int:
    """Run ``work`` until it is warm, and return how many calls fill a block."""
    work()
    start = perf_counter()
    work()
    return max(1, min(MOST_CALLS, round(block / max(perf_counter() - start, 1e-9))))


def _block(work: Work, calls: int) -> dict[str, float]:
    """Return the median of each phase over some calls, after one that is not counted unless it is long."""
    start = perf_counter()
    taken = [work()]
    if perf_counter() - start < LONG:
        taken = [work() for _ in range(calls)]
    return {phase: float(np.median([phases[phase] for phases in taken])) for phase in taken[0]}


def quartiles(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the quartiles around it.

    >>> quartiles([4.0, 1.0, 2.0, 3.0, 5.0])
    {'q1': 2.0, 'median': 3.0, 'q3': 4.0}
    """
    q1, median, q3 = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    return {"q1": q1, "median": median, "q3": q3}


def ratio(over: Sequence[float], under: Sequence[float]) -> dict[str, float]:
    """Return the ratio of the medians of two series of rounds, with the quartiles of the rounds' own ratios.

    >>> ratio([2.0, 4.0, 6.0], [1.0, 2.0, 2.0])
    {'q1': 2.0, 'median': 2.0, 'q3': 2.5}
    """
    spread = quartiles([a / b for a, b in zip(over, under, strict=True)])
    return {**spread, "median": float(np.median(over) / np.median(under))}


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean: a ratio and its inverse cancel.

    >>> round(geometric_mean([4.0, 0.25, 8.0]), 12)
    2.0
    """
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def timed(call: Callable[[], object], times: int = 1) -> Work:
    """Return a work of one phase, "call": the mean of ``times`` calls, more than one where a call is too short."""

    def work() -> dict[str, float]:
        start = perf_counter()
        for _ in range(times):
            call()
        return {"call": (perf_counter() - start) / times}

    return work
