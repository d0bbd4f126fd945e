"""The LSTM over one window, one layer, one direction: pure functions of arrays.

A number such as ``(6.7)`` at the end of a line is the equation of derivations/06-lstm.md that the line computes. P is
H, or the size of the projection; the rest is as in ``cells/rnn.py``. In the weights the gates stand as in PyTorch: i,
f, g, o; inside, in the blocks of ``cells/steps.py``: o, i, f, g, the logistic gates together, and those whose gradient
is that of c. Weights of logistic gates enter with their sign turned, for these gates are opened from -z.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from numpy_rnn.cells.sigmoid import open_gates
from numpy_rnn.cells.steps import Steps, steps_of
from numpy_rnn.typing import Array, MaybeArray

H_0_FOR_DW_HH_ALONE = True


class Saved(NamedTuple):
    """What the backward needs of a forward, besides the weights."""

    x: MaybeArray  # (T, B, I) the input, not a copy of it; needed for dw_ih
    h_0: MaybeArray  # (B, P) the initial state, not a copy of it; needed for dw_hh
    c_0: Array  # (B, H) the initial cell state, not a copy of it
    gates: list[Array]  # (k, 4H, B) of each block: o, i, f, g of every step, after their nonlinearities
    c: list[Array]  # (k, H, B) of each block: all cell states
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


@np.errstate(over="ignore")  # of exp(-z) where a gate is shut
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
    Returns all states (T, B, P), the last (B, P) and last cell state (B, H), and what ``backward`` needs, with ``h``.
    """
    steps = steps_of(x) if steps is None else steps
    H, rows = c_0.shape[1], x.reshape(steps.N, x.shape[-1])
    bias = sum((b for b in (b_ih, b_hh) if b is not None), np.zeros(4 * H, x.dtype))  # (4H,) (6.11)
    w_ih, w_hh, bias = (np.concatenate([-w[3 * H :], -w[: 2 * H], w[2 * H : 3 * H]]) for w in (w_ih, w_hh, bias))
    h, h_t, c_n = np.empty((steps.N, h_0.shape[1]), x.dtype), h_0.T, c_0.T.copy()  # (N, P), (P, B), (H, B)
    saved = Saved(x, h_0, c_0, [], [], h.reshape(*x.shape[:-1], h.shape[1]))
    for block in steps.blocks(4 * H * x.itemsize):
        gates = block.project(w_ih, rows, bias)  # (k, 4H, B) (6.11) each gate is written over its own z
        c, hs = np.empty((block.k, H, block.B), x.dtype), np.empty((block.k, len(h_t), block.B), x.dtype)
        h_t, c_t, product, ig = h_t[:, : block.B], c_n[:, : block.B], np.empty_like(gates[0]), np.empty_like(c[0])
        split = gates.reshape(block.k, 4, H, block.B).swapaxes(0, 1)  # o, i, f, g
        for z, z_oif, o, i, f, g, c_next, h_next in zip(gates, gates[:, : 3 * H], *split, c, hs, strict=True):
            z += np.dot(w_hh, h_t, out=product)  # (4H, B) (6.12)
            open_gates(z_oif)  # (3H, B) (6.13)
            np.tanh(g, out=g)  # (H, B) (6.13)
            c_t = np.multiply(f, c_t, out=c_next)  # (H, B) (6.14)
            c_t += np.multiply(i, g, out=ig)  # (H, B) (6.14)
            m = np.multiply(o, np.tanh(c_t, out=ig), out=h_next if w_hr is None else ig)  # (H, B) (6.15)
            h_t = m if w_hr is None else np.dot(w_hr, m, out=h_next)  # (P, B) (6.16)
        block.columns(h)[...], c_n[:, : block.B] = hs, c_t
        saved.gates.append(gates)
        saved.c.append(c)
    return saved.h, h[steps.last], c_n.T, saved


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
    N, P, H, dtype = steps.N, saved.h.shape[-1], saved.c_0.shape[1], saved.h.dtype
    h, dh = saved.h.reshape(N, P), np.broadcast_to(dtype.type(0), (N, P)) if dh is None else dh.reshape(N, P)
    dh_waiting = np.zeros((P, steps.B), dtype) if dh_n is None else dh_n.T.astype(dtype)  # (P, B) (6.31)
    dc_waiting = np.zeros((H, steps.B), dtype) if dc_n is None else dc_n.T.astype(dtype)  # (H, B) (6.31)
    w_back = np.concatenate([w_hh[3 * H :], w_hh[: 3 * H]]).T.copy("C") if steps.T > 1 or "dh_0" in wanted else None
    dz, dw_hr = np.empty((4 * H, N), dtype), np.zeros_like(w_hr) if w_hr is not None and "dw_hr" in wanted else None
    before, blocks = [saved.c_0.T, *(c[-1] for c in saved.c)], steps.blocks(4 * H * dtype.itemsize)
    for block, gates, c, c_before in reversed(list(zip(blocks, saved.gates, saved.c, before, strict=False))):
        B, split, tanh_c, d = block.B, (block.k, 4, H, block.B), np.tanh(c), 1 - gates  # d: slopes, then dz
        o, i, f, g = gates.reshape(split).swapaxes(0, 1)  # (k, H, B) each
        d_o, d_i, d_f, d_g = d.reshape(split).swapaxes(0, 1)
        d[:, : 3 * H] *= gates[:, : 3 * H]  # (k, 3H, B) (6.35)
        d_o *= tanh_c  # (k, H, B) (6.35)
        d_i *= g  # (k, H, B) (6.35)
        d_f[0] *= c_before[:, :B]  # (H, B) (6.35)
        d_f[1:] *= c[:-1]  # (k-1, H, B) (6.35)
        d_g *= (1 + g) * i  # (k, H, B) (6.35)
        dm_to_dc = (1 - tanh_c * tanh_c) * o  # (k, H, B) (6.34)
        dhs, dh_next, dc = block.columns(dh).copy("C"), dh_waiting[:, :B].copy(), dc_waiting[:, :B].copy()
        arrays = (a[::-1] for a in (dhs, dm_to_dc, d, d_o, d.reshape(split)[:, 1:], f))  # by_c_t (3, H, B) is i, f, g
        for dh_t, factor, dz_t, d_o_t, by_c_t, f_t in zip(*arrays, strict=True):
            dh_t += dh_next  # (P, B) (6.32)
            dm = dh_t if w_hr is None else np.dot(w_hr.T, dh_t)  # (H, B) (6.33)
            dc += np.multiply(factor, dm, out=factor)  # (H, B) (6.34)
            by_c_t *= dc  # (3, H, B) (6.35)
            d_o_t *= dm  # (H, B) (6.35)
            dc *= f_t  # (H, B) (6.36)
            if w_back is not None:
                np.dot(w_back, dz_t, out=dh_next)  # (P, B) (6.37)
        dh_waiting[:, :B], dc_waiting[:, :B] = dh_next, dc  # a sequence that has ended waits where it ended
        block.within(dz)[:, : 3 * H], block.within(dz)[:, 3 * H :] = d[:, H:], d[:, :H]  # i, f, g, o again
        if dw_hr is not None:
            dw_hr += np.tensordot(dhs, o * tanh_c, axes=((0, 2), (0, 2)))  # (P, H) (6.42)
    dx = (dz.T @ w_ih).reshape(*saved.h.shape[:-1], w_ih.shape[1]) if "dx" in wanted else None  # (N, I) (6.38)
    dw_ih = steps.product(dz, saved.x.reshape(N, saved.x.shape[-1])) if "dw_ih" in wanted else None  # (4H, I) (6.39)
    dw_hh = steps.product(dz, steps.previous(saved.h_0, h)) if "dw_hh" in wanted else None  # (4H, P) (6.40)
    db_ih, db_hh = (dz.sum(axis=1) if name in wanted else None for name in ("db_ih", "db_hh"))  # (4H,) (6.41)
    dh_0, dc_0 = dh_waiting.T if "dh_0" in wanted else None, dc_waiting.T if "dc_0" in wanted else None
    return Gradients(dx, dh_0, dc_0, dw_ih, dw_hh, db_ih, db_hh, dw_hr)
