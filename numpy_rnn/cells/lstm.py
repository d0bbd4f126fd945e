"""The LSTM over one window, one layer, one direction: pure functions of arrays.

The equations are derived in derivations/06-lstm.md; a number such as ``(6.7)`` at the end of a line is the equation
which that line computes. The gates stand in PyTorch's order i, f, g, o: input, forget, candidate, output. P is H, or
the size of the projection; the other letters, dtypes and packed rows are those of ``cells/rnn.py``.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from numpy_rnn.cells.sigmoid import sigmoid
from numpy_rnn.cells.steps import Steps, steps_of
from numpy_rnn.typing import Array, MaybeArray

H_0_FOR_DW_HH_ALONE = True


class Saved(NamedTuple):
    """What the backward needs of a forward, besides the weights."""

    x: MaybeArray  # (T, B, I) the input, not a copy of it; needed for dw_ih
    h_0: MaybeArray  # (B, P) the initial state, not a copy of it; needed for dw_hh
    c_0: Array  # (B, H) the initial cell state, not a copy of it
    gates: Array  # (N, 4H) i, f, g, o of every step, after their nonlinearities
    c: Array  # (N, H) all cell states
    h: Array  # (T, B, P) all states


class Gradients(NamedTuple):
    """The derivatives of the loss with respect to each argument of ``forward``; None where not asked for."""

    dx: Array | None  # (T, B, I)
    dh_0: Array | None  # (B, P)
    dc_0: Array | None  # (B, H)
    dw_ih: Array | None  # (4H, I)
    dw_hh: Array | None  # (4H, P)
    db_ih: Array | None  # (4H,)
    db_hh: Array | None  # (4H,)
    dw_hr: Array | None  # (P, H)


def forward(
    x: Array,
    h_0: Array,
    c_0: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None = None,
    b_hh: Array | None = None,
    w_hr: Array | None = None,
    *,
    steps: Steps | None = None,
) -> tuple[Array, Array, Array, Saved]:
    """Run the LSTM over one window.

    >>> x, h_0, c_0, w = np.array([[[1.0]], [[-1.0]]]), np.array([[0.3]]), np.array([[0.5]]), np.full((4, 1), 0.5)
    >>> h, h_n, c_n, saved = forward(x, h_0, c_0, w, w)
    >>> h.ravel().round(6).tolist(), c_n.round(6).tolist()
    ([0.398781, 0.073846], [[0.175365]])

    Arguments: ``x`` (T, B, I), ``h_0`` (B, P), ``c_0`` (B, H), ``w_ih`` (4H, I), ``w_hh`` (4H, P), ``b_ih`` and
    ``b_hh`` (4H,) or None, ``w_hr`` (P, H) or None, all of one dtype; ``steps`` for an ``x`` of packed rows (N, I).
    Returns ``(h, h_n, c_n, saved)``: all states (T, B, P), the last state (B, P) and cell state (B, H), and what
    ``backward`` needs, which holds ``h`` itself, and of which ``h_n`` and ``c_n`` may be views.
    """
    steps = steps_of(x) if steps is None else steps
    H, P = c_0.shape[1], h_0.shape[1]
    gates = x.reshape(steps.N, x.shape[-1]) @ w_ih.T  # (N, 4H) (6.11)
    if b_ih is not None:
        gates += b_ih  # (N, 4H) (6.11)
    if b_hh is not None:
        gates += b_hh  # (N, 4H) (6.11)
    c, h = np.empty((steps.N, H), gates.dtype), np.empty((steps.N, P), gates.dtype)
    w_hh_t = np.ascontiguousarray(w_hh.T)  # (P, 4H) rows of a product run faster; gone when this call returns
    h_previous, c_previous = h_0, c_0
    for t, B, _ in steps.each:  # t: the rows of one step
        z = gates[t]  # (B, 4H) each gate is written over its own z
        z += h_previous[:B] @ w_hh_t  # (B, 4H) (6.12)
        i, f, g, o = (z[:, k * H : (k + 1) * H] for k in range(4))
        i[...] = sigmoid(i)  # (B, H) (6.13)
        f[...] = sigmoid(f)  # (B, H) (6.13)
        np.tanh(g, out=g)  # (B, H) (6.13)
        o[...] = sigmoid(o)  # (B, H) (6.13)
        c[t] = f * c_previous[:B] + i * g  # (B, H) (6.14)
        m = o * np.tanh(c[t])  # (B, H) (6.15)
        h[t] = m if w_hr is None else m @ w_hr.T  # (B, P) (6.16)
        h_previous, c_previous = h[t], c[t]
    h_n, c_n, h = h[steps.last], c[steps.last], h.reshape(*x.shape[:-1], P)
    return h, h_n, c_n, Saved(x, h_0, c_0, gates, c, h)


def backward(
    dh: Array | None,
    dh_n: Array | None,
    dc_n: Array | None,
    saved: Saved,
    w_ih: MaybeArray,
    w_hh: MaybeArray,
    w_hr: MaybeArray = None,
    wanted: Collection[str] = Gradients._fields,
    *,
    steps: Steps | None = None,
) -> Gradients:
    """Back-propagate through one window, from ``dh`` (T, B, P), ``dh_n`` (B, P) and ``dc_n`` (B, H), None for zero.

    The weights are the live ones; ``w_ih`` may be None where ``dx`` is not wanted, ``w_hh`` where ``dh_0`` is not and
    T = 1. Returns the ``wanted`` gradients, each a fresh array; ``dw_hr`` is None without a projection.
    """
    steps = steps_of(saved.h) if steps is None else steps
    x, h_0, c_0, gates, c, h = saved
    N, H, P = steps.N, c.shape[1], h.shape[-1]
    h, dh = h.reshape(N, P), None if dh is None else dh.reshape(N, P)
    dz, dh_all = np.empty_like(gates), np.empty_like(h)  # (N, 4H), (N, P)
    dh_waiting = np.zeros((steps.B, P), h.dtype) if dh_n is None else dh_n.astype(h.dtype)  # (B, P) (6.31)
    dc_waiting = np.zeros((steps.B, H), h.dtype) if dc_n is None else dc_n.astype(h.dtype)  # (B, H) (6.31)
    for t, B, before in reversed(steps.each):  # t: the rows of one step
        dh_t, dc_t = dh_waiting[:B], dc_waiting[:B]  # a sequence that has ended waits where it ended
        i, f, g, o = (gates[t, k * H : (k + 1) * H] for k in range(4))
        c_previous = c_0 if before is None else c[before]
        tanh_c = np.tanh(c[t])  # (B, H)
        if dh is not None:
            dh_t += dh[t]  # (B, P) (6.32)
        dh_all[t] = dh_t
        dm = dh_t if w_hr is None else dh_t @ w_hr  # (B, H) (6.33)
        dc_t += dm * o * (1 - tanh_c * tanh_c)  # (B, H) (6.34)
        dz[t, 0 * H : 1 * H] = dc_t * g * i * (1 - i)  # (B, H) (6.35)
        dz[t, 1 * H : 2 * H] = dc_t * c_previous * f * (1 - f)  # (B, H) (6.35)
        dz[t, 2 * H : 3 * H] = dc_t * i * (1 - g * g)  # (B, H) (6.35)
        dz[t, 3 * H : 4 * H] = dm * tanh_c * o * (1 - o)  # (B, H) (6.35)
        dc_t *= f  # (B, H) (6.36)
        if before is not None or "dh_0" in wanted:
            np.matmul(dz[t], w_hh, out=dh_t)  # (B, P) (6.37)
    dh_0, dc_0 = dh_waiting if "dh_0" in wanted else None, dc_waiting if "dc_0" in wanted else None
    first, later = steps.rows[0], slice(steps.B, N)
    dx = dw_ih = dw_hh = db_ih = db_hh = dw_hr = None
    if "dx" in wanted:
        dx = (dz @ w_ih).reshape(*saved.h.shape[:-1], w_ih.shape[1])  # (N, I) (6.38)
    if "dw_ih" in wanted:
        dw_ih = dz.T @ x.reshape(N, x.shape[-1])  # (4H, I) (6.39)
    if "dw_hh" in wanted:
        dw_hh = dz[first].T @ h_0 + dz[later].T @ h[steps.before]  # (4H, P) (6.40)
    if "db_ih" in wanted:
        db_ih = dz.sum(axis=0)  # (4H,) (6.41)
    if "db_hh" in wanted:
        db_hh = dz.sum(axis=0)  # (4H,) (6.41)
    if "dw_hr" in wanted and w_hr is not None:
        dw_hr = dh_all.T @ (gates[:, 3 * H :] * np.tanh(c))  # (P, H) (6.42)
    return Gradients(dx, dh_0, dc_0, dw_ih, dw_hh, db_ih, db_hh, dw_hr)
