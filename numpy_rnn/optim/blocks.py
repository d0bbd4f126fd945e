"""Large arrays in blocks that stay in the cache, so that no intermediate result is as large as a parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numpy_rnn.typing import Array

# Bytes of a block of one array. A step has up to eight arrays in hand at once (parameter, gradient, three of state,
# three for intermediate results), 1 MiB together: the second-level cache of one core. Half of it costs 8 percent more
# time, since the calls become more; twice as much falls out of that cache.
BLOCK = 1 << 17

LINE = 64  # bytes of a line of the cache: a ufunc that writes past its ends takes twice as long


def blocks(first: Array, *others: Array | None, scratch: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield blocks of arrays, which have one shape and dtype, each followed by ``scratch`` arrays of its shape.

    >>> total = 0.0
    >>> for x, t in blocks(np.ones(100_000), scratch=1):
    ...     total += float(np.multiply(x, 2.0, t).sum())
    >>> total
    200000.0

    The blocks are views, whatever strides the arrays have, and together are each element once; None stays None. The
    scratch arrays are the same memory for every block; what they hold at first is not defined.
    """
    if first.nbytes <= BLOCK:
        yield first, *others, *(np.empty(first.shape, first.dtype) for _ in range(scratch))
        return
    size = BLOCK // first.itemsize
    rows = [_on_a_line(size, first.dtype) for _ in range(scratch)]
    for block, *views in _cut(_flat([first, *(array for array in others if array is not None)]), size):
        rest = iter(views)
        own = (None if array is None else next(rest) for array in others)
        yield block, *own, *(row[: block.size].reshape(block.shape) for row in rows)


def _flat(arrays: Sequence[Array]) -> list[Array]:
    """Return views of one dimension if all arrays lie alike in memory, without gaps; else of the parameter's order."""
    order = np.argsort([-abs(stride) for stride in arrays[0].strides], kind="stable")
    turned = [array.transpose(order) for array in arrays]
    return [a.reshape(-1) for a in turned] if all(a.flags.c_contiguous for a in turned) else turned


def _cut(arrays: Sequence[Array], size: int) -> Iterator[Sequence[Array]]:
    """Yield views of at most ``size`` elements, cut along the first axis, and where one step of it is more, inside."""
    length, step = len(arrays[0]), arrays[0].size // len(arrays[0])
    if step > size:
        for i in range(length):
            yield from _cut([array[i] for array in arrays], size)
        return
    many = size // step
    for start in range(0, length, many):
        yield [array[start : start + many] for array in arrays]


def _on_a_line(size: int, dtype: np.dtype[Any]) -> Array:
    """Return an empty array whose memory starts where a line of the cache does."""
    memory = np.empty(size * dtype.itemsize + LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % LINE
    return memory[start : start + size * dtype.itemsize].view(dtype)


def lerp(average: Array, new: Array, weight: float, t: Array) -> None:
    """Move ``average`` in place towards ``new`` by the fraction ``weight``, from the nearer end as PyTorch's lerp.

    ``t`` is scratch.

    >>> average = np.array([1e10])
    >>> lerp(average, np.array([0.1]), 1.0, np.empty(1))
    >>> average
    array([0.1])
    """
    distance = np.subtract(new, average, t)
    if weight < 0.5:
        average += np.multiply(weight, distance, t)
    else:
        np.subtract(new, np.multiply(1 - weight, distance, t), average)
