"""The vanilla (Elman) RNN over one window, one layer, one direction: pure functions of arrays.

The equations are derived in derivations/01-forward.md and derivations/02-bptt.md; a number such as ``(2.25)`` at the
end of a line is the equation which that line computes.

T time steps, B batch, I input size, H hidden size. Any real dtype; tanh also complex128, for the complex-step check.
Nothing given is ever written to.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from numpy_rnn.typing import Array, MaybeArray


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
) -> tuple[Array, Array, Saved]:
    """Run the RNN over one window.

    >>> x, h_0 = np.array([[[1.0]], [[-1.0]]]), np.array([[0.3]])
    >>> h, h_n, saved = forward(x, h_0, np.array([[0.5]]), np.array([[0.8]]), np.array([0.1]), np.array([0.0]))
    >>> h.ravel().round(9).tolist(), bool(h_n[0, 0] == h[-1, 0, 0])
    ([0.685809062, 0.147562004], True)

    Arguments: ``x`` (T, B, I), ``h_0`` (B, H), ``w_ih`` (H, I), ``w_hh`` (H, H), ``b_ih`` and ``b_hh`` (H,) or
    None, all of one dtype; ``nonlinearity`` "tanh" or "relu".

    Returns ``(h, h_n, saved)``: all states (T, B, H), the last of them (B, H), and what ``backward`` needs. ``h_n`` is
    a view of ``h``, and ``saved`` holds ``h`` itself: whoever hands ``h`` on to be written to must hand on a copy.
    """
    T, B, I = x.shape  # noqa: E741
    H = w_hh.shape[0]
    z = (x.reshape(T * B, I) @ w_ih.T).reshape(T, B, H)  # (T, B, H) (1.7)
    if b_ih is not None:
        z += b_ih  # (T, B, H) (1.7)
    if b_hh is not None:
        z += b_hh  # (T, B, H) (1.7)
    w_hh_t = np.ascontiguousarray(w_hh.T)  # (H, H) rows of a product run faster; gone when this call returns
    h, h_previous = z, h_0  # each state is written over its own z
    for t in range(T):
        z[t] += h_previous @ w_hh_t  # (B, H) (1.8)
        if nonlinearity == "tanh":
            np.tanh(z[t], out=h[t])  # (B, H) (1.4)
        else:
            np.maximum(z[t], 0, out=h[t])  # (B, H) (1.5)
        h_previous = h[t]
    return h, h[-1], Saved(x, h_0, h)


def backward(
    dh: Array | None,
    dh_n: Array | None,
    saved: Saved,
    w_ih: MaybeArray,
    w_hh: MaybeArray,
    nonlinearity: str = "tanh",
    wanted: Collection[str] = Gradients._fields,
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
    x, h_0, h = saved
    T, B, H = h.shape
    dz = np.empty_like(h)  # (T, B, H)
    dh_t = np.zeros((B, H), h.dtype) if dh_n is None else dh_n.astype(h.dtype)  # (B, H) (2.18)
    for t in reversed(range(T)):
        if dh is not None:
            dh_t += dh[t]  # (B, H) (2.19)
        if nonlinearity == "tanh":
            dz[t] = dh_t * (1 - h[t] * h[t])  # (B, H) (2.20)
        else:
            dz[t] = np.where(h[t] <= 0, 0, dh_t)  # (B, H) (2.21)
        if t > 0 or "dh_0" in wanted:
            np.matmul(dz[t], w_hh, out=dh_t)  # (B, H) (2.22)

    dz_flat = dz.reshape(T * B, H)
    dx = dw_ih = dw_hh = db_ih = db_hh = None
    if "dx" in wanted:
        dx = (dz_flat @ w_ih).reshape(T, B, w_ih.shape[1])  # (T, B, I) (2.23)
    if "dw_ih" in wanted:
        dw_ih = dz_flat.T @ x.reshape(T * B, x.shape[2])  # (H, I) (2.24)
    if "dw_hh" in wanted:
        dw_hh = dz[0].T @ h_0 + dz_flat[B:].T @ h[:-1].reshape((T - 1) * B, H)  # (H, H) (2.25)
    if "db_ih" in wanted:
        db_ih = dz_flat.sum(axis=0)  # (H,) (2.26)
    if "db_hh" in wanted:
        db_hh = dz_flat.sum(axis=0)  # (H,) (2.26)
    return Gradients(dx, dh_t if "dh_0" in wanted else None, dw_ih, dw_hh, db_ih, db_hh)
