"""The limit: how long the matrix products of a window take alone, in NumPy, in the fastest layout found.

Every forward has to multiply each input by W_ih and each state by W_hh, the states one step after another; every
backward has to multiply each step's gradient by W_hhᵀ, one step after another, and the gradients of all steps by the
inputs, the states and W_ihᵀ. The limit is these products and nothing else: no nonlinearity, no bias, no
allocation (the outputs are there already), no rearrangement from the layout of one product to that of the next. Each
product comes in several layouts, and each time the fastest is taken, so no hand-written NumPy is expected to reach it.

A product is a triple ``(a, b, out)`` for ``np.dot``. N rows are the steps of all sequences one below the other.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from time import perf_counter

import numpy as np

from numpy_rnn.typing import Array
from torch_rnn.measure.grid import CELLS, Row
from torch_rnn.measure.timing import Effort, Work, interleave, timed

Products = list[tuple[Array, Array, Array]]
PROBE = Effort(least=3, most=9, seconds=0.2, block=0.002, pause=0.0)


class Part:
    """The products of one layer in one direction, each in its layouts."""

    def __init__(self, gates: int, I: int, H: int, batch_sizes: list[int], dtype: str) -> None:  # noqa: E741
        rng = np.random.default_rng(0)
        self.gates, self.I, self.H, self.GH = gates, I, H, gates * H
        self.ends = list(accumulate(batch_sizes))
        self.starts = [0, *self.ends[:-1]]
        self.N, self.B = self.ends[-1], batch_sizes[0]

        def draw(size: int) -> Array:
            return rng.uniform(-1, 1, size).astype(dtype)

        self.x, self.h, self.z = draw(self.N * I), draw(self.N * H), draw(self.N * self.GH)
        self.w_ih, self.w_hh = draw(self.GH * I), draw(self.GH * H)
        self.stack, self.w = draw(self.N * (I + H)), draw(self.GH * (I + H))  # x over h; W_ih beside W_hh
        self.out = np.empty(max(self.N * self.GH, self.N * I), dtype)
        self.dw = np.empty(self.GH * (I + H), dtype)
        self.dh = np.empty(self.B * H, dtype)

    def forward(self) -> Products:
        """The input projection and the recurrence, apart or as one product a step over the stacked [x; h]."""
        apart = fastest(self._once(self.x, self.w_ih, self.I)) + fastest(
            self._each(self.h, self.w_hh, self.H, 0, self.GH)
        )
        return fastest([apart, self._stacked()])

    def back(self) -> Products:
        """The recurrence backward, and the gradients of both weights."""
        steps = fastest(self._each(self.z, self.w_hh, self.GH, None, self.H))
        return steps + fastest(self._weights())

    def dx(self) -> Products:
        return fastest(self._once(self.z, self.w_ih, self.GH, self.I))

    def _once(self, rows: Array, w: Array, K: int, M: int | None = None) -> list[Products]:
        """One product of all rows (N, K) with a weight (K, M): rows as rows, or as columns; M is G*H if not given."""
        M = self.GH if M is None else M
        out = self.out[: self.N * M]
        return [
            [(rows.reshape(self.N, K), weight, out.reshape(self.N, M))]
            for weight in (w.reshape(K, M), w.reshape(M, K).T)
        ] + [[(w.reshape(M, K), rows.reshape(K, self.N), out.reshape(M, self.N))]]

    def _each(self, rows: Array, w: Array, K: int, out_start: int | None, M: int) -> list[Products]:
        """One product a step, of its rows (B, K) with a weight (K, M); outputs side by side, or (None) one buffer."""
        as_rows, as_columns = Products(), Products()
        for start, end in zip(self.starts, self.ends, strict=True):
            B = end - start
            block = rows[start * K : end * K]
            out = self.dh[: B * M] if out_start is None else self.out[start * M : end * M]
            as_rows.append((block.reshape(B, K), w.reshape(K, M), out.reshape(B, M)))
            as_columns.append((w.reshape(M, K), block.reshape(K, B), out.reshape(M, B)))
        return [as_rows, as_columns]

    def _stacked(self) -> Products:
        """W [x; h] as one product a step; the GRU's candidate keeps its two halves apart, for r multiplies one only."""
        I, H, K = self.I, self.H, self.I + self.H  # noqa: E741
        both = self.GH if self.gates != 3 else 2 * H  # rows of W that need only the sum of the two halves
        products = Products()
        for start, end in zip(self.starts, self.ends, strict=True):
            B = end - start
            block = self.stack[start * K : end * K].reshape(K, B)
            out = self.out[start * self.GH : end * self.GH].reshape(self.GH, B)
            products.append((self.w[: both * K].reshape(both, K), block, out[:both]))
            if both < self.GH:
                products.append((self.w_ih[: H * I].reshape(H, I), block[:I], out[both:]))
                products.append((self.w_hh[: H * H].reshape(H, H), block[I:], out[both:]))
        return products

    def _weights(self) -> list[Products]:
        """dW_ih and dW_hh over the whole window, apart or side by side, from rows, columns or one of each."""
        N, GH, I, H, K = self.N, self.GH, self.I, self.H, self.I + self.H  # noqa: E741
        found = []
        for z in (self.z.reshape(N, GH).T, self.z.reshape(GH, N)):
            for turned in (False, True):

                def operand(rows: Array, width: int, turned: bool = turned) -> Array:
                    return rows.reshape(width, N).T if turned else rows.reshape(N, width)

                dw_ih, dw_hh = self.dw[: GH * I].reshape(GH, I), self.dw[GH * I :].reshape(GH, H)
                found.append([(z, operand(self.x, I), dw_ih), (z, operand(self.h, H), dw_hh)])
                found.append([(z, operand(self.stack, K), self.dw.reshape(GH, K))])
        return found


def fastest(candidates: list[Products]) -> Products:
    """Return the products that take the least time."""
    works = {str(i): timed(partial(_run, products)) for i, products in enumerate(candidates)}
    rounds = interleave(works, PROBE)
    return candidates[int(min(rounds, key=lambda name: float(np.median(rounds[name]["call"]))))]


def limit(row: Row) -> Work:
    """Return a work with the phases forward, backward, both and step; a step asks for no gradient of the input."""
    sizes, directions = row.batch_sizes(), 2 if row.bidirectional else 1
    forward, back, dx_0 = Products(), Products(), Products()
    found: dict[int, tuple[Products, Products, Products]] = {}  # equal parts are looked at once
    for k, I in enumerate(row.parts()):  # noqa: E741
        if I not in found:
            part = Part(CELLS[row.cell], I, row.H, sizes, row.dtype)
            found[I] = part.forward(), part.back(), part.dx()
        part_forward, part_back, part_dx = found[I]
        forward += part_forward
        back += part_back
        if k < directions:
            dx_0 += part_dx
        else:
            back += part_dx

    def work() -> dict[str, float]:
        start = perf_counter()
        _run(forward)
        middle = perf_counter()
        _run(back)
        before_dx = perf_counter()
        _run(dx_0)
        end = perf_counter()
        return {
            "forward": middle - start,
            "backward": end - middle,
            "both": end - start,
            "step": before_dx - start,
        }

    return work


def _run(products: Products) -> None:
    dot = np.dot
    for a, b, out in products:
        dot(a, b, out)
