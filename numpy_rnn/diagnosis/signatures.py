"""What a wrong array shows by itself: a constant factor, an axis turned round, another array's values.

Nothing needs to be known of where the arrays come from. Numbers that only rounding tells apart agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations

import numpy as np

from numpy_rnn.typing import Array

# Factors that mean something by themselves; the others need what they belong to, such as {"1/B": 0.25}.
FACTORS = {"-1": -1.0, "2": 2.0, "1/2": 0.5}
MEANINGS = {
    "-1": "the sign is wrong",
    "2": "the gradient is doubled: added twice, or a buffer that was not cleared",
    "1/2": "the gradient is halved",
}

SINGLE = 1e-5  # of the scale: what a float32 backward over hundreds of steps is off


def close(got: Array, expected: Array, tolerance: float) -> bool:
    """Whether two arrays of one shape agree within ``tolerance`` of the larger one's largest entry.

    >>> close(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-13]), 1e-12)
    True
    """
    if got.shape != expected.shape or not np.isfinite(got).all() or not np.isfinite(expected).all():
        return False
    scale = max(np.abs(got).max(initial=0), np.abs(expected).max(initial=0))
    return bool(np.abs(got - expected).max(initial=0) <= tolerance * scale)


def signatures(
    name: str,
    theirs: Array,
    ours: Mapping[str, Array],
    tolerance: float,
    factors: Mapping[str, float] | None = None,
    blocks: Mapping[int, str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield a name and a sentence for each pattern that leads from the right arrays to ``theirs``.

    >>> right = {"dw": np.array([[1.0, 2.0], [3.0, 5.0]])}
    >>> [bug for bug, _ in signatures("dw", right["dw"].T, right, 1e-12)]
    ['transposed']

    Arguments: the ``name`` of the wrong array among ``ours``, the right ones; ``factors`` that would mean something
    here, ``blocks`` the letters of the gates by their number. An array of one entry shows only zero and a factor that
    has a meaning: any other is a multiple of anything.
    """
    right = ours[name]
    if theirs.shape != right.shape:
        yield from _axes(theirs, right, tolerance)
        return
    if not np.isfinite(theirs).all() or not right.any():
        return
    if not theirs.any():
        yield "zero", "it is zero: never computed, or overwritten"
        return
    yield from _factor(theirs, right, tolerance, factors or {})
    if right.size < 3:
        return
    if _is_single(theirs) and not _is_single(right) and close(theirs, right, SINGLE):
        yield "rounded-to-float32", "its numbers are float32: rounded to that, or computed in it"
    if theirs.ndim == 2 and theirs.shape[0] == theirs.shape[1] and close(theirs, right.T, tolerance):
        yield "transposed", "it is transposed"
    yield from _blocks(theirs, right, tolerance, blocks or {3: "", 4: ""})
    for axis in range(right.ndim):
        if right.shape[axis] < 2:
            continue
        where = "time steps" if axis == 0 and right.ndim == 3 else f"axis {axis}"
        if close(theirs, np.flip(right, axis), tolerance):
            yield f"reversed-along-{axis}", f"{where}: in reverse order"
        yield from _shift(np.moveaxis(theirs, axis, 0), np.moveaxis(right, axis, 0), axis, where, tolerance)
    others = {n: a for n, a in ours.items() if n != name and a.shape == right.shape and a.any()}
    for other, array in others.items():
        if close(theirs, array, tolerance) and not close(right, array, 10 * tolerance):
            yield f"has-{other}", f"it has the values of {other}"
        elif close(theirs, right + array, tolerance):
            yield f"plus-{other}", f"{other} is added to it"


def _is_single(array: Array) -> bool:
    """Whether float32 holds every entry: of others, one in 2**29 is so by chance."""
    with np.errstate(over="ignore"):
        return np.array_equal(array.astype(np.float32), array)


def _axes(theirs: Array, right: Array, tolerance: float) -> Iterator[tuple[str, str]]:
    if theirs.ndim == right.ndim and right.size > 2:
        for order in list(permutations(range(right.ndim)))[1:]:
            if close(theirs, right.transpose(order), tolerance):
                text = "it is transposed" if right.ndim == 2 else f"its axes are in the order {order}"
                yield "transposed", f"{text}: {theirs.shape} for {right.shape}"
    elif theirs.size == right.size and close(theirs.reshape(right.shape), right, tolerance):
        yield "reshaped", f"its values are right and its shape is {theirs.shape} for {right.shape}"


def _factor(theirs: Array, right: Array, tolerance: float, factors: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    scale = np.abs(right).max()
    factor = float(np.vdot(right / scale, theirs / scale) / np.vdot(right / scale, right / scale))
    if factor == 0 or not close(theirs, right * factor, tolerance):
        return
    meant = [
        label
        for label, known in {**FACTORS, **factors}.items()
        if known != 1 and abs(factor - known) <= 10 * tolerance * abs(known)
    ]
    for label in meant:  # several where B is 2: other cases may tell them apart
        yield f"factor-{label}", MEANINGS.get(label, f"it is the right one times {label}")
    if not meant and right.size > 2 and abs(factor - 1) > 10 * tolerance:
        yield f"factor-{factor:.6g}", f"it is the right one times {factor:.6g}"


def _blocks(theirs: Array, right: Array, tolerance: float, blocks: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    for count, letters in blocks.items():
        if count < 2 or right.ndim > 2 or right.shape[0] % count or right.shape[0] // count == 0:
            continue
        parts = np.split(right, count)
        for order in list(permutations(range(count)))[1:]:
            if close(theirs, np.concatenate([parts[k] for k in order]), tolerance):
                names = ", ".join(letters[k] if letters else str(k) for k in order)
                yield (
                    "blocks-" + names.replace(", ", ""),
                    f"its {count} blocks (gates) are permuted: they stand in the order {names}",
                )
                return


def _shift(theirs: Array, right: Array, axis: int, where: str, tolerance: float) -> Iterator[tuple[str, str]]:
    """Moved by one along the first axis, whatever stands at the end that became free."""
    if len(right) < 3 or right[0].size * (len(right) - 1) < 4:
        return
    if close(theirs[1:], right[:-1], tolerance):
        yield f"shifted-along-{axis}", f"{where}: shifted by one, entry t holds what belongs to t-1"
    elif close(theirs[:-1], right[1:], tolerance):
        yield f"shifted-along-{axis}", f"{where}: shifted by one, entry t holds what belongs to t+1"
