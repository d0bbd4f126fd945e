"""The GRU over one window, one layer, one direction: pure functions of arrays.

The equations are derived in derivations/07-gru.md; a number such as ``(7.24)`` at the end of a line is the equation
which that line computes. The gates stand in PyTorch's order r, z, n: reset, update, candidate. As in PyTorch and cuDNN
the reset gate is applied after the product W_hn h + b_hn, so n's two biases stay apart.

The rest is as in ``cells/rnn.py``, blocks (k, F, B) as in ``cells/steps.py``. Nothing given is ever written to.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from numpy_rnn.cells.sigmoid import open_gates
from numpy_rnn.cells.steps import Steps, steps_of
from numpy_rnn.typing import Array, MaybeArray

H_0_FOR_DW_HH_ALONE = False  # the update gate's gradient needs it too (7.28)


class Saved(NamedTuple):
    """What the backward needs of a forward, besides the weights."""

    x: MaybeArray  # (T, B, I) the input, not a copy of it; needed for dw_ih
    h_0: Array  # (B, H) the initial state, not a copy of it
    gates: list[Array]  # (k, 3H, B) of each block: r, z, n of every step, after their nonlinearities
    s: list[Array]  # (k, H, B) of each block: W_hn h + b_hn of every step, which r multiplies
    h: Array  # (T, B, H) all states


class Gradients(NamedTuple):
    """The derivatives of the loss with respect to each argument of ``forward``; None where not asked for."""

    dx: Array | None  # (T, B, I)
    dh_0: Array | None  # (B, H)
    dw_ih: Array | None  # (3H, I)
    dw_hh: Array | None  # (3H, H)
    db_ih: Array | None  # (3H,)
    db_hh: Array | None  # (3H,)


@np.errstate(over="ignore")  # of exp(-z) where a gate is shut
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

    Returns ``(h, h_n, saved)``: all states (T, B, H), the last (B, H), and what ``backward`` needs, with ``h`` itself.
    """
    steps = steps_of(x) if steps is None else steps
    H, rows = h_0.shape[1], x.reshape(steps.N, x.shape[-1])
    bias, b_hn = np.zeros(3 * H, x.dtype), np.zeros((H, steps.B), x.dtype)  # (3H,), (H, B)
    bias += 0 if b_ih is None else b_ih  # (3H,) (7.16)
    if b_hh is not None:
        bias[: 2 * H] += b_hh[: 2 * H]  # (2H,) (7.17) those of r and z may join; n's is multiplied by r
        b_hn += b_hh[2 * H :, None]  # (H, B) (7.17)
    sign = np.repeat(np.array([-1, -1, 1], x.dtype), H)[:, None]  # (3H, 1) r and z are opened from minus what goes in
    w_ih, w_hh, bias = sign * w_ih, sign * w_hh, sign[:, 0] * bias
    h, h_t = np.empty((steps.N, H), x.dtype), h_0.T  # (N, H), (H, B)
    saved = Saved(x, h_0, [], [], h.reshape(*x.shape[:-1], H))
    for block in steps.blocks(3 * H * x.itemsize):
        gates = block.project(w_ih, rows, bias)  # (k, 3H, B) (7.16) each gate is written over what goes into it
        s, hs = (np.empty((block.k, H, block.B), x.dtype) for _ in range(2))
        h_t, b, a, part = h_t[:, : block.B], b_hn[:, : block.B], np.empty_like(gates[0]), np.empty_like(s[0])
        split = gates.reshape(block.k, 3, H, block.B).swapaxes(0, 1)  # r, z, n
        for rz, r, z, n, s_t, h_next in zip(gates[:, : 2 * H], *split, s, hs, strict=True):
            np.dot(w_hh, h_t, out=a)  # (3H, B) (7.17)
            rz += a[: 2 * H]  # (2H, B) (7.18)
            open_gates(rz)  # (2H, B) (7.18)
            np.add(a[2 * H :], b, out=s_t)  # (H, B) (7.17)
            n += np.multiply(r, s_t, out=part)  # (H, B) (7.18)
            np.tanh(n, out=n)  # (H, B) (7.18)
            np.subtract(h_t, n, out=part)  # (H, B) (7.19)
            part *= z  # (H, B) (7.19)
            h_t = np.add(n, part, out=h_next)  # (H, B) (7.19)
        block.columns(h)[...] = hs
        saved.gates.append(gates)
        saved.s.append(s)
    return saved.h, h[steps.last], saved


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
    """Back-propagate through one window, from ``dh`` (T, B, H) and ``dh_n`` (B, H), None for zero.

    The weights are the live ones; ``w_ih`` may be None where ``dx`` is not wanted, ``w_hh`` where ``dh_0`` is not and
    T = 1. Returns the ``wanted`` gradients, each a fresh array.
    """
    steps = steps_of(saved.h) if steps is None else steps
    N, H, dtype = steps.N, saved.h_0.shape[1], saved.h.dtype
    h, dh = saved.h.reshape(N, H), np.broadcast_to(dtype.type(0), (N, H)) if dh is None else dh.reshape(N, H)
    h_previous = steps.previous(saved.h_0, h)  # (N, H)
    da = np.empty((3 * H, N), dtype)  # by what comes from h: b_hh + W_hh h
    dn_input = np.empty((H, N), dtype)  # by what comes from x into n: the only part that differs
    dh_waiting = np.zeros((H, steps.B), dtype) if dh_n is None else dh_n.T.astype(dtype)  # (H, B) (7.20)
    w_hh_t = w_hh.T.copy("C") if steps.T > 1 or "dh_0" in wanted else None  # (H, 3H) gone when this call returns
    blocks = steps.blocks(3 * H * dtype.itemsize)
    for block, gates, s in reversed(list(zip(blocks, saved.gates, saved.s, strict=True))):
        r, z, n = gates.reshape(block.k, 3, H, block.B).swapaxes(0, 1)  # (k, H, B) each
        d = np.empty((block.k, 3, H, block.B), dtype)  # what dh is multiplied by to give da, and then da
        into_n = (1 - z) * (1 - n * n)  # (k, H, B) (7.22)
        d[:, 0] = into_n * s * r * (1 - r)  # (k, H, B) (7.22)
        d[:, 1] = (block.columns(h_previous) - n) * z * (1 - z)  # (k, H, B) (7.22)
        d[:, 2] = into_n * r  # (k, H, B) (7.23)
        dhs, dh_next = block.columns(dh).copy("C"), dh_waiting[:, : block.B].copy()
        part = np.empty_like(dh_next)
        for dh_t, da_t, z_t in zip(dhs[::-1], d[::-1], z[::-1], strict=True):
            dh_t += dh_next  # (H, B) (7.21)
            da_t *= dh_t  # (3, H, B) (7.22) (7.23)
            np.multiply(dh_t, z_t, out=dh_next)  # (H, B) (7.24)
            if w_hh_t is not None:
                dh_next += np.dot(w_hh_t, da_t.reshape(3 * H, block.B), out=part)  # (H, B) (7.24)
        dh_waiting[:, : block.B] = dh_next  # a sequence that has ended waits where it ended
        block.within(da)[...] = d.reshape(gates.shape)
        block.within(dn_input)[...] = into_n * dhs  # (k, H, B) (7.22)
    dh_0 = dh_waiting.T if "dh_0" in wanted else None
    dw_hh = steps.product(da, h_previous) if "dw_hh" in wanted else None  # (3H, H) (7.25)
    db_hh = da.sum(axis=1) if "db_hh" in wanted else None  # (3H,) (7.25)
    dz = da
    dz[2 * H :] = dn_input  # (3H, N) by what comes from x: b_ih + W_ih x (7.26)
    dx = (dz.T @ w_ih).reshape(*saved.h.shape[:-1], w_ih.shape[1]) if "dx" in wanted else None  # (N, I) (7.27)
    dw_ih = steps.product(dz, saved.x.reshape(N, saved.x.shape[-1])) if "dw_ih" in wanted else None  # (3H, I) (7.27)
    db_ih = dz.sum(axis=1) if "db_ih" in wanted else None  # (3H,) (7.27)
    return Gradients(dx, dh_0, dw_ih, dw_hh, db_ih, db_hh)
