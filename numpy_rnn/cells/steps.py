"""Which rows of a window belong to which time step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from numpy_rnn.typing import Array


class Steps:
    """The rows of a window: one for each sequence and step, the steps one below the other.

    >>> steps = Steps([3, 3, 1])  # three sequences, of 3, 2 and 2 steps
    >>> steps.T, steps.B, steps.N, steps.rows[2], steps.before.tolist(), steps.last.tolist()
    (3, 3, 7, slice(6, 7, None), [0, 1, 2, 3], [6, 4, 5])

    Sequences are ordered longest first, so step t has the first ``batch_sizes[t]`` of them. ``T`` steps, ``B``
    sequences, ``N`` rows. ``rows[t]`` are the rows of step t; ``each`` has for every step its rows, its batch size, and
    the rows of the same sequences one step earlier (None for the first). ``before`` has those of all later steps
    together, ``last`` is where each sequence ends; both are slices where all sequences are of one length, so that
    nothing is copied.
    """

    def __init__(self, batch_sizes: Sequence[int]) -> None:
        self.batch_sizes = [int(size) for size in batch_sizes]
        self.T, self.B, self.N = len(self.batch_sizes), self.batch_sizes[0], sum(self.batch_sizes)
        ends = np.cumsum(self.batch_sizes).tolist()
        self.rows = [slice(end - size, end) for end, size in zip(ends, self.batch_sizes, strict=True)]  # (5.15)
        earlier = [None, *(slice(r.start, r.start + b) for r, b in zip(self.rows, self.batch_sizes[1:], strict=False))]
        self.each = list(zip(self.rows, self.batch_sizes, earlier, strict=True))
        self.equal = self.batch_sizes[-1] == self.B

    @cached_property
    def before(self) -> slice | Array:
        if self.equal:
            return slice(0, self.N - self.B)
        return np.concatenate([np.arange(e.start, e.stop) for _, _, e in self.each if e is not None])  # (N - B,) (5.19)

    @cached_property
    def lengths(self) -> Array:
        """How many steps each sequence has (B,)."""
        lengths: Array = (np.array(self.batch_sizes)[:, None] > np.arange(self.B)).sum(axis=0)
        return lengths

    @cached_property
    def starts(self) -> Array:
        """Where each step's rows begin (T,)."""
        return np.array([rows.start for rows in self.rows])

    @cached_property
    def last(self) -> slice | Array:
        if self.equal:
            return slice(self.N - self.B, self.N)
        return np.asarray(self.starts[self.lengths - 1] + np.arange(self.B))  # (B,) (5.17)

    def flipped(self, rows: Array) -> Array:
        """Return ``rows`` (N, ...) with each sequence turned round within its own length."""
        if self.equal:
            return rows.reshape(self.T, self.B, *rows.shape[1:])[::-1].reshape(rows.shape)  # (N, ...) (5.6)
        t = np.repeat(np.arange(self.T), self.batch_sizes)
        b = np.arange(self.N) - self.starts[t]
        return np.asarray(rows[self.starts[self.lengths[b] - 1 - t] + b])  # (N, ...) (5.21)


def steps_of(array: Array) -> Steps:
    """Return the steps of a window (T, B, ...) whose sequences are all of one length."""
    T, B = array.shape[:2]
    return Steps([B] * T)
