"""The vanilla (Elman) RNN over one window, one layer, one direction: pure functions of arrays.

The equations are derived in derivations/01-forward.md and derivations/02-bptt.md; a number such as ``(2.25)`` at the
end of a line is the equation which that line computes.

T time steps, B batch, N = T*B rows of a window, I input size, H hidden size. Sequences of different lengths come as
packed rows (N, ...) with their ``Steps``; B then shrinks as sequences end. Any real dtype; tanh also complex128, for
the complex-step check. Nothing given is ever written to.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from numpy_rnn.cells.steps import Steps, steps_of, sum_of
from numpy_rnn.typing import Array, MaybeArray

H_0_FOR_DW_HH_ALONE = True


class Saved(NamedTuple):
    """What the backward needs of a forward, besides the weights."""

    x: MaybeArray  # (T, B, I) the input, not a copy of it; needed for dw_ih
    h_0: MaybeArray  # (B, H) the initial state, not a copy of it; needed for dw_hh
    h: Array  # (T, B, H) all states h_1 .. h_T: h[t] is the state after step t


class Gradients(NamedTuple):
    """The derivatives of the loss with respect to each argument of ``forward``; None where not asked for."""

    dx: Array | None  # (T, B, I)
    dh_0: Array | None  # (B, H)
    dw_ih: Array | None  # (H, I)
    dw_hh: Array | None  # (H, H)
    db_ih: Array | None  # (H,)
    db_hh: Array | None  # (H,)


def forward(
    x: Array,
    h_0: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None = None,
    b_hh: Array | None = None,
    nonlinearity: str = "tanh",
    *,
    steps: Steps | None = None,
) -> tuple[Array, Array, Saved]:
    """Run the RNN over one window.

    >>> x, h_0 = np.array([[[1.0]], [[-1.0]]]), np.array([[0.3]])
    >>> h, h_n, saved = forward(x, h_0, np.array([[0.5]]), np.array([[0.8]]), np.array([0.1]), np.array([0.0]))
    >>> h.ravel().round(9).tolist(), bool(h_n[0, 0] == h[-1, 0, 0])
    ([0.685809062, 0.147562004], True)

    Arguments: ``x`` (T, B, I), ``h_0`` (B, H), ``w_ih`` (H, I), ``w_hh`` (H, H), ``b_ih`` and ``b_hh`` (H,) or
    None, all of one dtype; ``nonlinearity`` "tanh" or "relu"; ``steps`` for an ``x`` of packed rows (N, I).

    Returns ``(h, h_n, saved)``: all states (T, B, H), the last of them (B, H), and what ``backward`` needs. ``h_n`` is
    a view of ``h``, and ``saved`` holds ``h`` itself: whoever hands ``h`` on to be written to must hand on a copy.
    """
    steps = steps_of(x) if steps is None else steps
    z = x.reshape(steps.N, x.shape[-1]) @ w_ih.T  # (N, H) (1.7)
    if b_ih is not None:
        z += b_ih  # (N, H) (1.7)
    if b_hh is not None:
        z += b_hh  # (N, H) (1.7)
    w_hh_t = np.ascontiguousarray(w_hh.T)  # (H, H) rows of a product run faster; gone when this call returns
    h, h_t = z, h_0  # each state is written over its own z
    for block in steps.blocks(z.shape[1] * z.itemsize):
        h_t, product = h_t[: block.B], np.empty((block.B, z.shape[1]), z.dtype)
        for z_t in block.steps(z):
            z_t += np.dot(h_t, w_hh_t, out=product)  # (B, H) (1.8) (5.16)
            if nonlinearity == "tanh":
                np.tanh(z_t, out=z_t)  # (B, H) (1.4)
            else:
                np.maximum(z_t, 0, out=z_t)  # (B, H) (1.5)
            h_t = z_t
    h_n, h = h[steps.last], h.reshape(*x.shape[:-1], w_hh.shape[0])  # (B, H) (5.17)
    return h, h_n, Saved(x, h_0, h)


def backward(
    dh: Array | None,
    dh_n: Array | None,
    saved: Saved,
    w_ih: MaybeArray,
    w_hh: MaybeArray,
    nonlinearity: str = "tanh",
    wanted: Collection[str] = Gradients._fields,
    *,
    steps: Steps | None = None,
) -> Gradients:
    """Back-propagate through one window.

    >>> x, h_0, w_ih, w_hh = np.array([[[1.0]], [[-1.0]]]), np.array([[0.3]]), np.array([[0.5]]), np.array([[0.8]])
    >>> h, h_n, saved = forward(x, h_0, w_ih, w_hh)
    >>> gradients = backward(np.ones_like(h), None, saved, w_ih, w_hh)
    >>> gradients.dw_hh.shape, gradients.dx.shape
    ((1, 1), (2, 1, 1))

    Arguments: ``dh`` (T, B, H) and ``dh_n`` (B, H) are the upstream gradients of what ``forward`` returned, None for
    zero; the weights are the live ones. ``wanted`` names the fields of ``Gradients`` to compute. ``w_ih`` may be None
    where ``dx`` is not wanted, ``w_hh`` where ``dh_0`` is not wanted and T = 1: no gradient flows through them then.

    Returns the gradients that were asked for, each a fresh array.
    """
    steps = steps_of(saved.h) if steps is None else steps
    x, h_0, N, H = saved.x, saved.h_0, steps.N, saved.h.shape[-1]
    h = saved.h.reshape(N, H)
    dh = np.broadcast_to(np.zeros((), h.dtype), h.shape) if dh is None else dh.reshape(N, H)
    dz = np.empty_like(h)  # (N, H)
    dh_waiting = np.zeros((steps.B, H), h.dtype) if dh_n is None else dh_n.astype(h.dtype, order="C")  # (B, H) (2.18)
    for block in reversed(steps.blocks(H * h.itemsize)):
        if nonlinearity == "tanh":
            slope = dz[block.rows]  # (k*B, H) each dz is written over its own slope
            np.subtract(1, np.square(h[block.rows], out=slope), out=slope)  # (k*B, H) (2.20)
        dh_t = dh_waiting[: block.B]  # (B, H) a sequence that has ended waits where it ended (5.18)
        for up, h_t, dz_t in zip(*(block.steps(rows)[::-1] for rows in (dh, h, dz)), strict=True):
            dh_t += up  # (B, H) (2.19)
            if nonlinearity == "tanh":
                dz_t *= dh_t  # (B, H) (2.20)
            else:
                dz_t[...] = np.where(h_t <= 0, 0, dh_t)  # (B, H) (2.21)
            if steps.T > 1 or "dh_0" in wanted:
                np.dot(dz_t, w_hh, out=dh_t)  # (B, H) (2.22)
    dh_0 = dh_waiting if "dh_0" in wanted else None

    dx = (dz @ w_ih).reshape(*saved.h.shape[:-1], w_ih.shape[1]) if "dx" in wanted else None  # (N, I) (2.23)
    dw_ih = steps.product(dz.T, x.reshape(N, x.shape[-1])) if "dw_ih" in wanted else None  # (H, I) (2.24)
    dw_hh = steps.product(dz.T, steps.previous(h_0, h)) if "dw_hh" in wanted else None  # (H, H) (2.25)
    db_ih = sum_of(dz) if "db_ih" in wanted else None  # (H,) (2.26)
    db_hh = sum_of(dz) if "db_hh" in wanted else None  # (H,) (2.26)
    return Gradients(dx, dh_0, dw_ih, dw_hh, db_ih, db_hh)
