"""Which rows of a window belong to which time step, and how a cell takes them a block of steps at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import numpy as np

from numpy_rnn.typing import Array

CACHE = 2**20  # bytes: a block's largest array; the handful of them that a cell works on then stay near the core
FEW = 64  # terms: so many may be added one after the other


class Block(NamedTuple):
    """``k`` consecutive steps of ``B`` sequences each, whose rows are ``rows``.

    Inside a block an array of F features is (k, F, B): as in the equations, a step's features stand one below the
    other, each sequence is a column, and every gate lies in one piece.
    """

    rows: slice
    k: int
    B: int

    def steps(self, rows: Array) -> Array:
        """Return the block's part of ``rows`` (N, F) as a view (k, B, F)."""
        return rows[self.rows].reshape(self.k, self.B, rows.shape[1])

    def columns(self, rows: Array) -> Array:
        """Return the block's part of ``rows`` (N, F) as a view (k, F, B)."""
        return self.steps(rows).swapaxes(1, 2)

    def within(self, columns: Array) -> Array:
        """Return the block's part of ``columns`` (F, N) as a view (k, F, B)."""
        return columns[:, self.rows].reshape(len(columns), self.k, self.B).swapaxes(0, 1)

    def project(self, w: Array, rows: Array, bias: Array) -> Array:
        """Return ``w`` (G, F) times the block's part of ``rows`` (N, F) plus ``bias`` (G,), as (k, G, B)."""
        if self.B == 1:  # rows and columns are the same numbers
            return np.asarray(rows[self.rows] @ w.T + bias)[:, :, None]
        z = w @ rows[self.rows].T  # (G, k*B) one product for all steps of the block
        biased: Array = np.add(z.reshape(len(w), self.k, self.B).swapaxes(0, 1), bias[:, None], order="C")
        return biased


class Steps:
    """The rows of a window: one for each sequence and step, the steps one below the other.

    >>> steps = Steps([3, 3, 1])  # three sequences, of 3, 2 and 2 steps
    >>> steps.T, steps.B, steps.N, steps.before.tolist(), steps.last.tolist()
    (3, 3, 7, [0, 1, 2, 3], [6, 4, 5])
    >>> steps.blocks(8)
    [Block(rows=slice(0, 6, None), k=2, B=3), Block(rows=slice(6, 7, None), k=1, B=1)]

    Sequences are ordered longest first, so step t has the first ``batch_sizes[t]`` of them. ``T`` steps, ``B``
    sequences, ``N`` rows. ``before`` are the rows of the same sequences one step before all later steps, ``last`` is
    where each sequence ends; both are slices where all sequences are of one length, so that nothing is copied.
    """

    def __init__(self, batch_sizes: Sequence[int]) -> None:
        self.batch_sizes = batch_sizes
        self.T, self.B, self.N = len(batch_sizes), batch_sizes[0], sum(batch_sizes)  # (5.15)
        self.equal = batch_sizes[-1] == self.B

    def blocks(self, size: int) -> list[Block]:
        """Return the window as blocks of equal batch size, which fit the cache where a row takes ``size`` bytes."""
        blocks, start = [], 0
        for B, run in groupby(self.batch_sizes):
            left = len(list(run))
            most = max(1, CACHE // max(1, B * size))
            while left:
                k = min(left, most)
                blocks.append(Block(slice(start, start + k * B), k, B))
                start, left = start + k * B, left - k
        return blocks

    def previous(self, h_0: Array, h: Array) -> Array:
        """Return for every row the state one step earlier, from ``h_0`` (B, H) and all states ``h`` (N, H)."""
        return np.concatenate([h_0, h[self.before]])  # (N, H) (5.19)

    def product(self, columns: Array, rows: Array) -> Array:
        """Return ``columns`` (G, N) times ``rows`` (N, F) as (G, F), the last steps first, in some eight runs of rows.

        One product of all rows would add N terms one after the other, and from the first step on, whose state may be
        larger than any after it: what comes later is then rounded to the last place of a large number.
        """
        if self.N <= FEW:
            return np.asarray(columns @ rows)
        total = np.zeros((len(columns), rows.shape[1]), rows.dtype)
        part, k = np.empty_like(total), max(FEW, self.N // 8)
        for stop, start in pairwise([*range(self.N, self.B, -k), self.B, 0]):
            total += np.dot(columns[:, start:stop], rows[start:stop], out=part)
        return total

    @cached_property
    def before(self) -> slice | Array:
        if self.equal:
            return slice(0, self.N - self.B)
        sizes = self.batch_sizes
        return np.concatenate([s + np.arange(b) for s, b in zip(self.starts, sizes[1:], strict=False)])  # (5.19)

    @cached_property
    def lengths(self) -> Array:
        """How many steps each sequence has (B,)."""
        lengths: Array = (np.array(self.batch_sizes)[:, None] > np.arange(self.B)).sum(axis=0)
        return lengths

    @cached_property
    def starts(self) -> Array:
        """Where each step's rows begin (T,)."""
        return np.array([0, *accumulate(self.batch_sizes)][:-1])

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


def sum_of(rows: Array) -> Array:
    """Return the sum of ``rows`` (N, F) over the rows (F,), in pairs: the longest run of additions is of log₂ N.

    NumPy adds row after row, which loses as many digits as N rows can. Along contiguous memory it adds in pairs.
    """
    while len(rows) > 16:
        half = len(rows) // 2
        rows, odd = rows[:half] + rows[half : 2 * half], rows[2 * half :]
        rows[: len(odd)] += odd
    total: Array = rows.sum(axis=0)
    return total


def steps_of(array: Array) -> Steps:
    """Return the steps of a window (T, B, ...) whose sequences are all of one length."""
    T, B = array.shape[:2]
    return Steps([B] * T)
