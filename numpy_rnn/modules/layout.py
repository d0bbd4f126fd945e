"""From the layout of a recurrent module's arguments to the rows that its cells work on, and back."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from numpy_rnn.cells.steps import Steps
from numpy_rnn.packing import Places
from numpy_rnn.typing import Array


class Layout:
    """Packed rows (N, ...), as they are; the base of the others.

    ``rows`` leads from the layout of the input and output to rows (N, ...), ``back`` from rows to that layout: each is
    the other's transpose, so the gradients go through them the other way. The same for states (L*D, B, H) with
    ``states`` and ``states_back``.
    """

    def __init__(self, steps: Steps, order: Array | None = None) -> None:
        self.steps, self.order = steps, order

    def rows(self, array: Array) -> Array:
        return array

    def back(self, rows: Array) -> Array:
        return rows

    def states(self, array: Array) -> Array:
        return array if self.order is None else array[:, self.order]  # (L*D, B, H) (5.22)

    def states_back(self, array: Array) -> Array:
        if self.order is None:
            return array
        unordered = np.empty_like(array)
        unordered[:, self.order] = array  # (L*D, B, H) (5.22)
        return unordered


class Dense(Layout):
    """(T, B, ...), with ``batch_first`` (B, T, ...), all sequences of one length."""

    def __init__(self, T: int, B: int, batch_first: bool) -> None:
        self.batch_first = batch_first
        super().__init__(Steps([B] * T))

    def rows(self, array: Array) -> Array:
        array = array.swapaxes(0, 1) if self.batch_first else array
        return np.ascontiguousarray(array).reshape(self.steps.N, array.shape[2])

    def back(self, rows: Array) -> Array:
        array = rows.reshape(self.steps.T, self.steps.B, rows.shape[1])
        return array.swapaxes(0, 1) if self.batch_first else array


dense = lru_cache(maxsize=16)(Dense)  # windows mostly have the shape of the one before


class Unbatched(Layout):
    """(T, ...): one sequence, whose states are (L*D, H)."""

    def __init__(self, T: int) -> None:
        super().__init__(Steps([1] * T))

    def rows(self, array: Array) -> Array:
        return np.ascontiguousarray(array)

    def states(self, array: Array) -> Array:
        return array[:, None]

    def states_back(self, array: Array) -> Array:
        return array[:, 0]


class Padded(Layout):
    """(T, B, ...), with ``batch_first`` (B, T, ...), each sequence only up to its length: the rest is zeros, unread."""

    def __init__(self, shape: tuple[int, ...], batch_first: bool, places: Places) -> None:
        self.shape = shape[:2]
        self.index = (places.b, places.t) if batch_first else (places.t, places.b)
        super().__init__(Steps(places.batch_sizes.tolist()), places.order)

    def rows(self, array: Array) -> Array:
        rows: Array = array[self.index]  # (N, ...) (5.20)
        return rows

    def back(self, rows: Array) -> Array:
        array = np.zeros((*self.shape, *rows.shape[1:]), rows.dtype)
        array[self.index] = rows  # (T, B, ...) (5.20)
        return array
