"""A cell that saves only every k-th state, and computes the rest again during backward."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from numpy_rnn.cells.steps import Steps
from numpy_rnn.typing import Array, MaybeArray


class Segment(NamedTuple):
    """``every`` consecutive steps, at the end of the window perhaps fewer: their rows, and their own ``Steps``."""

    rows: slice
    steps: Steps


class Recomputed:
    """A cell of ``numpy_rnn.cells`` run segment by segment of ``every`` steps, with the cell's own signatures.

    The forward keeps the states that each segment begins with, and nothing else. The backward takes the segments from
    the last to the first, runs each forward again from its first state, and then backward, so that never more than one
    segment's gates exist at a time (6.45). It therefore needs all that a forward needs: the input, the states, all
    weights and both biases, live ones.
    """

    H_0_FOR_DW_HH_ALONE = False

    def __init__(self, cell: ModuleType, every: int) -> None:
        self.cell, self.every = cell, every
        self.Gradients = cell.Gradients
        self.count = sum(field.endswith("_0") for field in cell.Saved._fields)  # of states: h_0, or h_0 and c_0

    def Saved(self, x: Array, *states_and_starts: Any) -> tuple[Any, ...]:
        return (x, *states_and_starts)

    def segments(self, steps: Steps) -> Iterator[Segment]:
        start = 0
        for t in range(0, steps.T, self.every):
            part = Steps(steps.batch_sizes[t : t + self.every])
            yield Segment(slice(start, start + part.N), part)
            start += part.N

    def forward(self, x: Array, *states_and_weights: Any, steps: Steps, **options: Any) -> tuple[Any, ...]:
        """Return h, the final states and what ``backward`` needs, as the cell's own forward over rows ``x`` (N, I)."""
        now = [state.copy() for state in states_and_weights[: self.count]]  # a sequence that has ended stays there
        starts, outputs = [], []
        for rows, part in self.segments(steps):
            starts.append([state[: part.B].copy() for state in now])  # (B, P), (B, H) (6.45)
            h, *final, _ = self.cell.forward(
                x[rows], *starts[-1], *states_and_weights[self.count :], steps=part, **options
            )
            outputs.append(h)
            for state, new in zip(now, final, strict=True):
                state[: part.B] = new
        return np.concatenate(outputs), *now, (x, *states_and_weights[: self.count], starts)

    def backward(
        self,
        dh: MaybeArray,
        *given: Any,
        biases: Sequence[MaybeArray],
        wanted: Collection[str],
        steps: Steps,
        **options: Any,
    ) -> Any:
        """As the cell's own backward, which is ``given`` the gradients of the final states, what is saved, w_ih, w_hh
        and, with a projection, w_hr; besides, ``biases`` b_ih and b_hh."""
        d_final, (saved, w_ih, w_hh, *w_hr) = given[: self.count], given[self.count :]
        x, starts = saved[0], saved[-1]
        waiting = [
            np.zeros((steps.B, state.shape[1]), x.dtype) if d is None else d.copy()
            for d, state in zip(d_final, starts[0], strict=True)
        ]
        dx, rest = (np.empty_like(x) if "dx" in wanted else None), list[MaybeArray]()
        for (rows, part), start in reversed(list(zip(self.segments(steps), starts, strict=True))):
            *_, again = self.cell.forward(x[rows], *start, w_ih, w_hh, *biases, *w_hr, steps=part, **options)  # (6.45)
            dx_part, *gradients = self.cell.backward(
                None if dh is None else dh[rows],
                *(d[: part.B] for d in waiting),
                again,
                w_ih,
                w_hh,
                *w_hr,
                wanted={*wanted, "dh_0", "dc_0"},
                steps=part,
                **options,
            )
            del again, _  # before the next segment's gates are made
            for d, new in zip(waiting, gradients, strict=False):
                d[: part.B] = new
            new_rest = gradients[self.count :]
            rest = [_sum(*pair) for pair in zip(rest, new_rest, strict=True)] if rest else new_rest
            if dx is not None:
                dx[rows] = dx_part
        return self.Gradients(dx, *waiting, *rest)


def _sum(a: MaybeArray, b: MaybeArray) -> MaybeArray:
    return None if a is None else np.add(a, b, out=a)
