"""Whether two loss curves agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.training import Record
from torch_rnn.tolerances import CURVES

Pair = tuple[Record, Record]  # of one step: NumPy's, PyTorch's


@dataclass(frozen=True)
class Verdict:
    """What ``judge`` found over the steps before the first loss that is not finite."""

    steps: int
    tolerance: float
    worst: Pair | None  # where the relative difference is largest
    first: Pair | None  # where it first passes the tolerance
    not_finite: Pair | None  # where a loss is first nan or infinite

    @property
    def agree(self) -> bool:
        """Whether every loss is finite and within the tolerance of PyTorch's."""
        return self.outcome == "agree"

    @property
    def outcome(self) -> str:
        """Return "agree", "differ" or "not finite"."""
        if self.first is not None:
            return "differ"
        return "agree" if self.not_finite is None else "not finite"

    def sentence(self) -> str:
        """Say in one sentence what was found, at which step, and how much."""
        if self.outcome == "agree":
            verdict = f"The curves agree within {self.tolerance:.0e} of the loss at each of {self.steps} steps"
        elif self.first is not None:
            verdict = (
                f"The curves do not agree: they part {_place(self.first)}, "
                f"by {difference(*self.first):.1e} of the loss where {self.tolerance:.0e} is allowed"
            )
        else:
            verdict = "The curves cannot be said to agree"
        if self.not_finite is not None:
            ours, theirs = self.not_finite
            verdict += f"; {_place(self.not_finite)} NumPy's loss is {ours.loss} and PyTorch's {theirs.loss}"
        before = "before that " if self.not_finite is not None else ""
        if self.worst is not None and (size := difference(*self.worst)):
            verdict += f"; {before}the largest difference is {size:.1e} of the loss, {_place(self.worst)}"
        elif self.worst is not None:
            verdict += f"; {before}they are equal to the last bit"
        return verdict + "."


def judge(pairs: Sequence[Pair], dtype: DTypeLike) -> Verdict:
    """Compare the losses of every step: |numpy - torch| <= tolerance * |torch|, with the tolerance of ``dtype``.

    >>> from numpy_rnn.training import Record
    >>> ours, theirs = Record(1, 1, 20, 0.5 + 1e-9, 1.0), Record(1, 1, 20, 0.5, 1.0)
    >>> judge([(ours, theirs)], "float64").agree
    False

    A nan or infinite loss agrees with nothing, itself included, and what follows it is not looked at.

    Raises ``ValueError`` if there is no step.
    """
    if not pairs:
        raise ValueError("pairs must hold at least one step, got none")
    tolerance = CURVES[np.dtype(dtype)]
    end = next((i for i, pair in enumerate(pairs) if not all(math.isfinite(record.loss) for record in pair)), None)
    finite = pairs[:end]
    return Verdict(
        steps=len(pairs),
        tolerance=tolerance,
        worst=max(finite, key=lambda pair: difference(*pair), default=None),
        first=next((pair for pair in finite if difference(*pair) > tolerance), None),
        not_finite=None if end is None else pairs[end],
    )


def difference(ours: Record, theirs: Record) -> float:
    """Return |numpy - torch| / |torch| of two finite losses: 0 where equal, infinite where only PyTorch's is 0."""
    if ours.loss == theirs.loss:
        return 0.0
    return abs(ours.loss - theirs.loss) / abs(theirs.loss) if theirs.loss != 0 else math.inf


def _place(pair: Pair) -> str:
    return f"at step {pair[1].step} (epoch {pair[1].epoch})"
