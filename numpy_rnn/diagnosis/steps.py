"""One step of each cell, forward and backward, right or with one known bug in it.

This repeats ``numpy_rnn.cells`` on purpose: a bug stands in the middle of a step, and those functions have room for
none. Nothing is computed with it but what a port with the bug would give; a test holds the right steps against the
cells. T, B, I, H, P and the equations are those of ``numpy_rnn.cells``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_rnn.cells.sigmoid import sigmoid
from numpy_rnn.typing import Array, MaybeArray

LETTERS = {"rnn": "h", "lstm": "ifgo", "gru": "rzn"}  # the gates in PyTorch's order


@dataclass
class Step:
    """One step's intermediate values, and the bug it has."""

    bug: str
    weights: Mapping[str, MaybeArray]  # w_ih, w_hh, b_ih, b_hh, w_hr
    h_before: Array  # (B, P)
    c_before: Array  # (B, H)
    before: Any = None  # the step before, None at t=0
    values: tuple[Any, ...] = ()

    def has(self, bug: str) -> bool:
        return self.bug == bug

    def sigmoid(self, z: Array) -> Array:
        return sigmoid(2 * z if self.has("sigmoid-of-2x") else z)

    def slope(self, letter: str, gate: Array) -> Array:
        """The derivative of the logistic function by what the function gave; ``letter`` is the gate's."""
        if self.bug in ("gate-derivatives-missing", f"derivative-of-{letter}-missing"):
            return np.ones_like(gate)
        twice = self.bug in ("sigmoid-applied-twice", f"sigmoid-applied-twice-in-{letter}")
        s = sigmoid(gate) if twice else gate
        slope: Array = s * (1 - s)
        return slope

    def tanh_slope(self, y: Array, z: Array, before: Array) -> Array:
        """The derivative of tanh at z by y = tanh z; ``before`` is the y of the step before."""
        if self.has("tanh-derivative-at-z"):
            return 1 - z * z
        if self.has("tanh-applied-twice"):
            return 1 - np.tanh(y) ** 2
        if self.has("tanh-derivative-inverted"):
            return 1 / (1 - y * y)
        if self.has("tanh-derivative-missing"):
            return np.ones_like(y)
        return 1 - (before if self.has("tanh-derivative-at-h-before") else y) ** 2


class RNNTanhStep(Step):
    def forward(self, a: Array, q: Array) -> tuple[Array, Array]:
        """Return the new h, and c as it was, from a = x W_ih' + b_ih and q = h W_hh' + b_hh."""
        h = np.tanh(a + q)
        self.values = (a + q, h)
        return h, self.c_before

    def backward(self, dh: Array, dc: Array) -> tuple[Array, Array, Array, Array]:
        """Return (da, dq, what reaches the former h besides through q, dc of the former c)."""
        z, h = self.values
        dz = dh * self.tanh_slope(h, z, self.h_before)
        return dz, dz, np.zeros_like(dh), dc


class RNNReluStep(Step):
    def forward(self, a: Array, q: Array) -> tuple[Array, Array]:
        self.values = (a + q,)
        return np.maximum(a + q, 0), self.c_before

    def backward(self, dh: Array, dc: Array) -> tuple[Array, Array, Array, Array]:
        (z,) = self.values
        dz = dh * (np.ones_like(z) if self.has("relu-derivative-missing") else z > 0)
        return dz, dz, np.zeros_like(dh), dc


class LSTMStep(Step):
    def forward(self, a: Array, q: Array) -> tuple[Array, Array]:
        z = np.split(a + q, 4, axis=1)
        i, f, g, o = self.sigmoid(z[0]), self.sigmoid(z[1]), np.tanh(z[2]), self.sigmoid(z[3])
        c = f * self.c_before + i * g
        tanh_c = c if self.has("no-tanh-on-c") else np.tanh(c)
        m = o * tanh_c
        self.values = (z[2], i, f, g, o, c, tanh_c, m)
        w_hr = self.weights["w_hr"]
        return m if w_hr is None else m @ w_hr.T, c

    def backward(self, dh: Array, dc: Array) -> tuple[Array, Array, Array, Array]:
        z_g, i, f, g, o, c, tanh_c, _ = self.values
        w_hr = self.weights["w_hr"]
        dm = dh if w_hr is None else dh @ w_hr
        slope = np.ones_like(c) if self.has("no-tanh-on-c") else 1 - tanh_c**2
        if self.has("no-derivative-of-tanh-c"):
            slope = np.ones_like(c)
        if self.has("derivative-of-tanh-at-c"):
            slope = 1 - c**2
        through_h = np.zeros_like(c) if self.has("c-gets-nothing-from-h") else dm * o * slope
        dc = through_h if self.has("dc-assigned-not-added") else dc + through_h
        d_i = dc * g * self.slope("i", i)
        c_before = c if self.has("c-for-c-before") else self.c_before
        d_f = dc * c_before * self.slope("f", f)
        d_g = dc * i * self.tanh_slope(g, z_g, g)
        d_o = dm * (c if self.has("c-for-tanh-c-in-do") else tanh_c) * self.slope("o", o)
        if self.has("c-carried-with-f-before") and self.before is not None:
            f = self.before.values[2]
        dc_before = dc if self.has("c-carried-without-f") else dc * f
        dz = np.concatenate([d_i, d_f, d_g, d_o], axis=1)
        return dz, dz, np.zeros_like(dh), dc_before

    def dw_hr(self, dh: Array, local: Array) -> Array:
        """The step's part of the gradient of the projection; ``local`` is ``dh`` without what was carried."""
        *_, o, c, tanh_c, m = self.values
        if self.has("dw-hr-of-the-loss-alone"):
            dh = local
        if self.has("dw-hr-with-c-for-tanh-c"):
            m = o * c
        if self.has("dw-hr-without-o"):
            m = tanh_c
        part: Array = dh.T @ m
        return part


class GRUStep(Step):
    def forward(self, a: Array, q: Array) -> tuple[Array, Array]:
        a_r, a_z, a_n = np.split(a, 3, axis=1)
        q_r, q_z, s = np.split(q, 3, axis=1)
        r, z = self.sigmoid(a_r + q_r), self.sigmoid(a_z + q_z)
        b_hh = self.weights["b_hh"]
        b_hn = np.zeros_like(s[0]) if b_hh is None else b_hh[2 * s.shape[1] :]
        if self.has("reset-before-the-product"):
            s = (r * self.h_before) @ self._w_hn().T + b_hn
            n = np.tanh(a_n + s)
        elif self.has("b-hn-outside-the-reset"):
            s = s - b_hn
            n = np.tanh(a_n + r * s + b_hn)
        else:
            n = np.tanh(a_n + r * s)
        keep = 1 - z if self.has("z-for-1-minus-z") else z
        self.values = (r, z, n, s, a_n + r * s)
        return n + keep * (self.h_before - n), self.c_before

    def _w_hn(self) -> Array:
        w_hh: Array = self.weights["w_hh"]
        return w_hh[2 * len(w_hh) // 3 :]

    def backward(self, dh: Array, dc: Array) -> tuple[Array, Array, Array, Array]:
        r, z, n, s, z_n = self.values
        swapped = self.has("z-for-1-minus-z") or self.has("z-for-1-minus-z-in-backward")
        keep, sign = (1 - z, -1) if swapped else (z, 1)
        d_n = dh * (1 - keep) * self.tanh_slope(n, z_n, n)
        before = n + keep * (self.h_before - n) if self.has("h-for-h-before-in-dz") else self.h_before
        d_z = sign * dh * (before - n) * self.slope("z", z)
        direct = np.zeros_like(dh) if self.has("no-direct-path") else dh * keep
        if self.has("reset-before-the-product") or self.has("reset-before-in-backward"):
            d_reset = d_n @ self._w_hn()  # by r * h
            d_r, d_s = d_reset * self.h_before * self.slope("r", r), d_n
            da = np.concatenate([d_r, d_z, d_n], axis=1)
            # q's third block is the product of r * h: its carry is added here, and not by who multiplies by W_hh.
            return da, np.concatenate([d_r, d_z, d_s], axis=1), direct + d_reset * r - d_s @ self._w_hn(), dc
        d_r = d_n * (self.h_before if self.has("h-for-s-in-dr") else s) * self.slope("r", r)
        d_s = d_n if self.has("one-delta-for-both-sides") else d_n * r
        return np.concatenate([d_r, d_z, d_n], axis=1), np.concatenate([d_r, d_z, d_s], axis=1), direct, dc

    def dw_hh(self, dq: Array, h_before: Array) -> Array:
        """The step's part of the gradient of W_hh where the reset came before the product."""
        r, H = self.values[0], h_before.shape[1]
        return np.concatenate([dq[:, : 2 * H].T @ h_before, dq[:, 2 * H :].T @ (r * h_before)])


STEPS: dict[str, Any] = {"rnn-tanh": RNNTanhStep, "rnn-relu": RNNReluStep, "lstm": LSTMStep, "gru": GRUStep}
