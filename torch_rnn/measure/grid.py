"""What is measured: rows of cell, dtype and shape, how much work each is, and the goals set for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from numpy_rnn.packing import places
from numpy_rnn.typing import Array

CELLS = {"rnn": 1, "lstm": 4, "gru": 3}  # how many (H, ...) blocks the weights have
DTYPES = ("float32", "float64")

# (T, B, I, H)
SHAPES = (
    (5, 1, 1, 1),
    (50, 1, 64, 100),
    (50, 16, 32, 64),
    (50, 32, 64, 128),
    (100, 32, 128, 256),
    (100, 64, 256, 512),
    (200, 8, 64, 64),
    (1000, 4, 8, 32),
)
QUICK_SHAPES = ((5, 1, 1, 1), (50, 16, 32, 64), (200, 8, 64, 64))
VARIED_SHAPE = (50, 32, 64, 128)  # of the rows with two layers in both directions, and with lengths
QUICK_VARIED_SHAPE = (50, 16, 32, 64)
NEAR_THE_LIMIT = ((100, 32, 128, 256), (100, 64, 256, 512))  # where a goal is set as a fraction of the limit


@dataclass(frozen=True)
class Row:
    """One network and its input: T steps, B sequences, I inputs, H hidden units."""

    cell: str
    dtype: str
    T: int
    B: int
    I: int  # noqa: E741 the field's letter
    H: int
    layers: int = 1
    bidirectional: bool = False
    lengths: bool = False  # uniform in 1..T, else all T

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.T, self.B, self.I, self.H

    @property
    def plain(self) -> bool:
        """Whether it is one layer in one direction over sequences of one length."""
        return self.layers == 1 and not self.bidirectional and not self.lengths

    @property
    def label(self) -> str:
        """The shape, and what else there is to it."""
        words = [", ".join(map(str, self.shape))]
        if self.layers > 1:
            words.append(f"{self.layers} layers")
        if self.bidirectional:
            words.append("bidir.")
        if self.lengths:
            words.append("lengths")
        return " ".join(words)

    def draw_lengths(self) -> Array | None:
        """Return the lengths (B,), the same for every row of the shape, or None where all are T."""
        if not self.lengths:
            return None
        return np.random.default_rng(0).integers(1, self.T, self.B, endpoint=True)

    def batch_sizes(self) -> list[int]:
        """Return how many sequences each step has, longest first."""
        lengths = self.draw_lengths()
        return [self.B] * self.T if lengths is None else [int(size) for size in places(lengths).batch_sizes]

    def parts(self) -> list[int]:
        """Return the input size of each layer and direction."""
        directions = 2 if self.bidirectional else 1
        return [
            self.I if layer == 0 else directions * self.H for layer in range(self.layers) for _ in range(directions)
        ]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "label": self.label}


def rows(cells: Sequence[str], dtypes: Sequence[str], quick: bool = False) -> list[Row]:
    """Return the grid: every shape for every cell and dtype, then the two variations.

    >>> len(rows(["rnn"], ["float32"])), rows(["rnn"], ["float32"])[-1].label
    (10, '50, 32, 64, 128 lengths')
    """
    shapes, varied = (QUICK_SHAPES, QUICK_VARIED_SHAPE) if quick else (SHAPES, VARIED_SHAPE)
    found = []
    for cell in cells:
        for dtype in dtypes:
            found += [Row(cell, dtype, *shape) for shape in shapes]
            found += [Row(cell, dtype, *varied, layers=2, bidirectional=True), Row(cell, dtype, *varied, lengths=True)]
    return found
