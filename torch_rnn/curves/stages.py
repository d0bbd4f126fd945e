"""One step again, stage by stage, on both backends from the same weights: where do they first differ?

Two curves show *that* something is wrong, and when. Where it is wrong shows when this step and the two before, whose
updates and carry lead to it, are made again, each from one and the same start on both sides: weights, optimizer state
and carry are copied from PyTorch's run. The stages are those of ``numpy_rnn.training.STAGES``. Equal weights give an
equal loss whatever the optimizer does, so every stage is looked at, and the first that differs by more than rounding is
the place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numpy_rnn.training import STAGES, Loop
from numpy_rnn.typing import Array
from torch_rnn.curves.runs import Run, nudged

CONTROLS = 3  # of each side, from weights moved by one unit in the last place
FAR = 100  # so many times what the controls show, and a stage is looked for
FLOOR = 4  # units in the last place of a tensor's largest entry

Stages = dict[str, dict[str, Array]]


@dataclass(frozen=True)
class Row:
    """One tensor of one stage, compared; a tensor that one side has not is compared as zeros."""

    step: int
    stage: str
    tensor: str
    difference: float  # the largest, absolute
    scale: float  # the largest entry of either side
    rounding: float  # the largest difference that rounding explains, by the controls
    ulps: float  # the difference in units in the last place of the largest entry; of a change, of what it is added to
    missing_on: str | None = None  # "numpy" or "torch"

    @property
    def excess(self) -> float:
        """log10 of the difference over what rounding explains; -inf where the two are equal."""
        if self.difference == 0:
            return -math.inf
        return math.log10(self.difference / self.rounding) if self.rounding > 0 else math.inf

    def sentence(self) -> str:
        """Say where, what and how much."""
        much = f"{self.difference:.1e}"
        if self.scale > 0:
            much += f", {_share(self.difference / self.scale)} of its largest entry"
        text = f"step {self.step}, stage {self.stage}: {self.tensor} differs by {much}; rounding explains "
        text += f"{self.rounding:.1e}"
        return text + (f"; {self.missing_on} has no such tensor" if self.missing_on else "")


def _share(share: float) -> str:
    return f"{share:.2g}" if share < 0.001 else f"{100 * share:.3g} %"


def replay(run: Run, first: int, last: int, controls: int = CONTROLS) -> Iterator[list[Row]]:
    """Make the steps ``first`` to ``last`` (from 1) again from equal starts; yield the rows of each step, in order.

    The steps before are made again as they were: the same numbers come out. Without controls, which take most of the
    time, a row's ``rounding`` is its floor alone.
    """
    loops = [[run.loop(side) for _ in range(controls + 1)] for side in (0, 1)]
    for step in range(1, last + 1):
        if step < first:
            for loop in (*loops[0], *loops[1]):
                loop.step()
            continue
        start = _start(loops[1][0], run.settings.coarser)
        seen = [[_watched(loop, start, (step, side, i)) for i, loop in enumerate(loops[side])] for side in (0, 1)]
        yield _compare(step, seen, np.dtype(run.settings.coarser))


def first_fault(run: Run, shown: int, threshold: float) -> Row | None:
    """Return the first row whose excess is above the threshold, in the steps ``shown - 2`` to ``shown``.

    If there is none, every step from the first to ``shown`` is looked at: a fault may lie where the loss did not show
    it yet. Within a stage the tensor with the largest excess is returned. None if there is no fault.
    """
    for first in dict.fromkeys((max(shown - 2, 1), 1)):
        for rows in replay(run, first, shown):
            above = [row for row in rows if row.excess > threshold]
            if above:
                return max((row for row in above if row.stage == above[0].stage), key=lambda row: row.excess)
    return None


def initial_fault(run: Run) -> Row | None:
    """Return the weight that differs most between the two sides as they are built; None where all are the same."""
    ours, theirs = (run.loop(side).weights() for side in (0, 1))
    rows = _compare(1, [[{"state in": weights}] for weights in (ours, theirs)], np.dtype(run.settings.coarser))
    apart = [replace(row, rounding=0.0) for row in rows if row.difference > 0]
    return max(apart, key=lambda row: row.ulps, default=None)


def ends_apart(run: Run) -> bool:
    """Whether some weights of the two sides are ``FAR`` times as far from each other as rounding moves either."""
    ours, theirs = ([loop.weights() for loop in loops] for loops in run.loops)
    eps = float(np.finfo(run.settings.coarser).eps)
    for name in ours[0].keys() & theirs[0].keys():
        a, b = ours[0][name].astype(np.float64), theirs[0][name].astype(np.float64)
        moved = max((_largest(one[name] - side[0][name]) for side in (ours, theirs) for one in side[1:]), default=0.0)
        if a.shape == b.shape and _largest(a - b) > FAR * max(moved, FLOOR * eps * _largest(a)):
            return True
    return False


def _watched(loop: Loop, start: dict[str, Any], seed: tuple[int, int, int]) -> Stages:
    """Put the loop at ``start``, a control beside it, let it make its step, and return all it shows."""
    _align(loop, start, None if seed[2] == 0 else np.random.default_rng(seed))
    seen: Stages = {}
    with np.errstate(over="ignore", invalid="ignore"):
        loop.step(lambda stage, read: seen.update({stage: read()}))
    for name, before in seen["state in"].items():  # what an update adds is small beside what it is added to
        if name in seen["update"] and name in loop.weights():
            seen["update"][f"change of {name}"] = seen["update"].pop(name) - before
    return seen


def _start(loop: Loop, dtype: str) -> dict[str, Any]:
    """Return weights, optimizer state and carry as they are, rounded to ``dtype``."""

    def rounded(value: Any) -> Any:
        array = loop.plain(value)
        return array.astype(dtype) if array.dtype.kind == "f" else array

    parameters = list(loop.model.parameters())
    return {
        "weights": [rounded(parameter) for parameter in parameters],
        "optimizer": [{k: rounded(v) for k, v in loop.optimizer.state.get(p, {}).items()} for p in parameters],
        "carry": [rounded(part) for part in _parts(loop.state)],
    }


def _align(loop: Loop, start: dict[str, Any], rng: np.random.Generator | None) -> None:
    """Overwrite weights, optimizer state and carry, with weights moved by one unit in the last place given a ``rng``.

    Values alone are written: what is attached to a graph, or of the wrong dtype, stays so. What one side has not is
    left out.
    """
    put = loop.backend.overwrite
    for parameter, array, state in zip(loop.model.parameters(), start["weights"], start["optimizer"], strict=True):
        own = array.astype(loop.backend.array(parameter).dtype)
        put(parameter, own if rng is None else nudged(own, rng))
        mine = loop.optimizer.state.get(parameter, {})
        for key in mine.keys() & state.keys():
            if isinstance(mine[key], np.ndarray):
                mine[key][...] = state[key]
            elif hasattr(mine[key], "copy_"):
                put(mine[key], state[key])
            else:
                mine[key] = type(mine[key])(state[key])
    for part, array in zip(_parts(loop.state), start["carry"], strict=False):
        put(part, array)


def _parts(state: Any) -> tuple[Any, ...]:
    return () if state is None else state if isinstance(state, tuple) else (state,)


def _compare(step: int, seen: list[list[Stages]], coarser: np.dtype[Any]) -> list[Row]:
    rows = []
    for stage in STAGES:
        ours, theirs = (side[0].get(stage, {}) for side in seen)
        for name in dict.fromkeys((*ours, *theirs)):
            pair = ours.get(name), theirs.get(name)
            a, b = (np.zeros(1) if array is None else array.astype(np.float64) for array in pair)
            label = name
            if all(array is not None for array in pair) and a.shape != b.shape:
                label, difference = f"{name}, of shape {a.shape} against {b.shape},", math.inf
            else:
                with np.errstate(invalid="ignore"):
                    difference = _largest(a - b)
            sizes = _largest(a), _largest(b)
            finite = [size for size in sizes if math.isfinite(size)]
            scale = max(finite, default=math.inf)
            added_to = name.removeprefix("change of ")
            start = max(_largest(side[0]["state in"].get(added_to, np.zeros(1))) for side in seen)
            size = max(scale, start if added_to != name else 0.0)
            rounding = FLOOR * float(np.finfo(coarser).eps) * size
            # what is not finite on one side alone is no rounding, however far the controls of that side are
            sure = [side for side, size in zip(seen, sizes, strict=True) if math.isfinite(size)] or seen
            rounding += sum(_moved(side, stage, name) for side in sure)
            missing = "numpy" if pair[0] is None else "torch" if pair[1] is None else None
            known = math.isfinite(difference)
            ulps = difference / float(np.spacing(coarser.type(size))) if known else math.inf
            rows.append(Row(step, stage, label, difference, scale, rounding, ulps, missing))
    return rows


def _moved(side: list[Stages], stage: str, name: str) -> float:
    """Return how far the controls of a side are from its run."""
    base = side[0][stage].get(name)
    if base is None:
        return 0.0
    with np.errstate(invalid="ignore"):
        return max((_largest(control[stage][name].astype(np.float64) - base) for control in side[1:]), default=0.0)


def _largest(array: Array) -> float:
    """Return the largest absolute entry; a nan counts as infinite."""
    largest = float(np.max(np.abs(array), initial=0.0))
    return math.inf if math.isnan(largest) else largest
