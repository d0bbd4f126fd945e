"""The GRU over one window, one layer, one direction: pure functions of arrays.

The equations are derived in derivations/07-gru.md; a number such as ``(7.24)`` at the end of a line is the equation
which that line computes. The gates stand in PyTorch's order r, z, n: reset, update, candidate. As in PyTorch and cuDNN
the reset gate is applied after the product W_hn h + b_hn, so n's two biases stay apart.

The letters, dtypes and packed rows are those of ``cells/rnn.py``. Nothing given is ever written to.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from numpy_rnn.cells.sigmoid import sigmoid
from numpy_rnn.cells.steps import Steps, steps_of
from numpy_rnn.typing import Array, MaybeArray

H_0_FOR_DW_HH_ALONE = False  # the update gate's gradient needs it too (7.28)


class Saved(NamedTuple):
    """What the backward needs of a forward, besides the weights."""

    x: MaybeArray  # (T, B, I) the input, not a copy of it; needed for dw_ih
    h_0: Array  # (B, H) the initial state, not a copy of it
    gates: Array  # (N, 3H) r, z, n of every step, after their nonlinearities
    s: Array  # (N, H) W_hn h + b_hn of every step, which r multiplies
    h: Array  # (T, B, H) all states


class Gradients(NamedTuple):
    """The derivatives of the loss with respect to each argument of ``forward``; None where not asked for."""

    dx: Array | None  # (T, B, I)
    dh_0: Array | None  # (B, H)
    dw_ih: Array | None  # (3H, I)
    dw_hh: Array | None  # (3H, H)
    db_ih: Array | None  # (3H,)
    db_hh: Array | None  # (3H,)


def forward(
    x: Array,
    h_0: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None = None,
    b_hh: Array | None = None,
    *,
    steps: Steps | None = None,
) -> tuple[Array, Array, Saved]:
    """Run the GRU over one window.

    >>> x, h_0, w = np.array([[[1.0]], [[-1.0]]]), np.array([[0.3]]), np.full((3, 1), 0.5)
    >>> h, h_n, saved = forward(x, h_0, w, w)
    >>> h.ravel().round(6).tolist(), h_n.round(6).tolist()
    ([0.380952, -0.067408], [[-0.067408]])

    Arguments: ``x`` (T, B, I), ``h_0`` (B, H), ``w_ih`` (3H, I), ``w_hh`` (3H, H), ``b_ih`` and ``b_hh`` (3H,) or None,
    all of one dtype; ``steps`` for an ``x`` of packed rows (N, I).

    Returns ``(h, h_n, saved)``: all states (T, B, H), the last of them (B, H), and what ``backward`` needs. ``h_n`` may
    be a view of ``h``, and ``saved`` holds ``h`` itself.
    """
    steps = steps_of(x) if steps is None else steps
    H = h_0.shape[1]
    gates = x.reshape(steps.N, x.shape[-1]) @ w_ih.T  # (N, 3H) (7.16)
    if b_ih is not None:
        gates += b_ih  # (N, 3H) (7.16)
    s, h = np.empty((steps.N, H), gates.dtype), np.empty((steps.N, H), gates.dtype)
    w_hh_t = np.ascontiguousarray(w_hh.T)  # (H, 3H) rows of a product run faster; gone when this call returns
    h_previous = h_0
    for t, B, _ in steps.each:  # t: the rows of one step
        r, z, n = (gates[t, k * H : (k + 1) * H] for k in range(3))  # each is written over what goes into it
        a = h_previous[:B] @ w_hh_t  # (B, 3H) (7.17)
        if b_hh is not None:
            a += b_hh  # (B, 3H) (7.17)
        r[...] = sigmoid(r + a[:, :H])  # (B, H) (7.18)
        z[...] = sigmoid(z + a[:, H : 2 * H])  # (B, H) (7.18)
        s[t] = a[:, 2 * H :]  # (B, H) (7.18)
        n[...] = np.tanh(n + r * s[t])  # (B, H) (7.18)
        h[t] = n + z * (h_previous[:B] - n)  # (B, H) (7.19)
        h_previous = h[t]
    h_n, h = h[steps.last], h.reshape(*x.shape[:-1], H)
    return h, h_n, Saved(x, h_0, gates, s, h)


def backward(
    dh: Array | None,
    dh_n: Array | None,
    saved: Saved,
    w_ih: MaybeArray,
    w_hh: MaybeArray,
    wanted: Collection[str] = Gradients._fields,
    *,
    steps: Steps | None = None,
) -> Gradients:
    """Back-propagate through one window.

    >>> x, h_0, w = np.ones((2, 1, 1)), np.array([[0.3]]), np.full((3, 1), 0.5)
    >>> h, h_n, saved = forward(x, h_0, w, w)
    >>> backward(np.ones_like(h), None, saved, w, w).dw_hh.shape
    (3, 1)

    Arguments: ``dh`` (T, B, H) and ``dh_n`` (B, H) are the upstream gradients of what ``forward`` returned, None for
    zero; the weights are the live ones. ``wanted`` names the fields of ``Gradients`` to compute. ``w_ih`` may be None
    where ``dx`` is not wanted, ``w_hh`` where ``dh_0`` is not wanted and T = 1.

    Returns the gradients that were asked for, each a fresh array.
    """
    steps = steps_of(saved.h) if steps is None else steps
    x, h_0, gates, s, _ = saved
    N, H = s.shape
    h = saved.h.reshape(N, H)
    dh = None if dh is None else dh.reshape(N, H)
    da = np.empty_like(gates)  # (N, 3H) by what comes from h: b_hh + W_hh h
    dn_input = np.empty_like(s)  # (N, H) by what comes from x into n: the only part that differs
    dh_waiting = np.zeros((steps.B, H), h.dtype) if dh_n is None else dh_n.astype(h.dtype)  # (B, H) (7.20)
    for t, B, before in reversed(steps.each):  # t: the rows of one step
        dh_t = dh_waiting[:B]  # (B, H) a sequence that has ended waits where it ended
        r, z, n = (gates[t, k * H : (k + 1) * H] for k in range(3))
        h_previous = h_0 if before is None else h[before]
        if dh is not None:
            dh_t += dh[t]  # (B, H) (7.21)
        dn_input[t] = dh_t * (1 - z) * (1 - n * n)  # (B, H) (7.22)
        da[t, 0 * H : 1 * H] = dn_input[t] * s[t] * r * (1 - r)  # (B, H) (7.22)
        da[t, 1 * H : 2 * H] = dh_t * (h_previous - n) * z * (1 - z)  # (B, H) (7.22)
        da[t, 2 * H : 3 * H] = dn_input[t] * r  # (B, H) (7.23)
        dh_t *= z  # (B, H) (7.24)
        if before is not None or "dh_0" in wanted:
            dh_t += da[t] @ w_hh  # (B, H) (7.24)
    dh_0 = dh_waiting if "dh_0" in wanted else None

    first, later = steps.rows[0], slice(steps.B, N)
    dx = dw_ih = dw_hh = db_ih = db_hh = None
    if "dw_hh" in wanted:
        dw_hh = da[first].T @ h_0 + da[later].T @ h[steps.before]  # (3H, H) (7.25)
    if "db_hh" in wanted:
        db_hh = da.sum(axis=0)  # (3H,) (7.25)
    dz = da
    dz[:, 2 * H :] = dn_input  # (N, 3H) by what comes from x: b_ih + W_ih x (7.26)
    if "dx" in wanted:
        dx = (dz @ w_ih).reshape(*saved.h.shape[:-1], w_ih.shape[1])  # (N, I) (7.27)
    if "dw_ih" in wanted:
        dw_ih = dz.T @ x.reshape(N, x.shape[-1])  # (3H, I) (7.27)
    if "db_ih" in wanted:
        db_ih = dz.sum(axis=0)  # (3H,) (7.27)
    return Gradients(dx, dh_0, dw_ih, dw_hh, db_ih, db_hh)
