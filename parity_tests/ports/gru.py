"""The GRU over one sequence."""

from typing import Any

import numpy as np


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def forward(x: Any, start: Any, w: dict, relu: bool) -> tuple[list, list]:
    """Return the states, the first one included, and what backward needs of each step."""
    states, cache = [start], []
    for x_t in x:
        (h,) = states[-1]
        u_r, u_z, u_n = np.split(w["weight_ih"] @ x_t + w["bias_ih"], 3)
        a_r, a_z, a_n = np.split(w["weight_hh"] @ h + w["bias_hh"], 3)
        r, z = sigmoid(u_r + a_r), sigmoid(u_z + a_z)
        n = np.tanh(u_n + r * a_n)
        states.append(((1 - z) * n + z * h,))
        cache.append((r, z, n, a_n))
    return states, cache


def backward(x: Any, states: list, cache: list, w: dict, g: dict, dout: Any, end: Any, cuts: set) -> tuple[list, tuple]:
    """Add to the gradients ``g`` and return those of the inputs and of the first state."""
    dx: list = [None] * len(x)
    (dh_n,) = end
    dh = dh_n
    for t in reversed(range(len(x))):
        r, z, n, a_n = cache[t]
        (h_before,) = states[t]
        dh = dh + dout[t]
        d_n = dh * (1 - z) * (1 - n * n)
        d_z = dh * (h_before - n) * z * (1 - z)
        d_r = d_n * a_n * r * (1 - r)
        du = np.concatenate([d_r, d_z, d_n])
        da = np.concatenate([d_r, d_z, d_n * r])
        g["weight_ih"] += np.outer(du, x[t])
        g["weight_hh"] += np.outer(da, h_before)
        g["bias_ih"] += du
        g["bias_hh"] += da
        dx[t] = w["weight_ih"].T @ du
        dh = dh * z + w["weight_hh"].T @ da
        if t in cuts:
            dh = np.zeros_like(dh)
    return dx, (dh,)
