"""The LSTM over one sequence."""

from typing import Any

import numpy as np


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def forward(x: Any, start: Any, w: dict, relu: bool) -> tuple[list, list]:
    """Return the states, the first one included, and what backward needs of each step."""
    states, cache = [start], []
    for x_t in x:
        h, c = states[-1]
        z_i, z_f, z_g, z_o = np.split(w["weight_ih"] @ x_t + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"], 4)
        i, f, g, o = sigmoid(z_i), sigmoid(z_f), np.tanh(z_g), sigmoid(z_o)
        c = f * c + i * g
        m = o * np.tanh(c)
        states.append((w["weight_hr"] @ m if "weight_hr" in w else m, c))
        cache.append((i, f, g, o, m))
    return states, cache


def backward(x: Any, states: list, cache: list, w: dict, g: dict, dout: Any, end: Any, cuts: set) -> tuple[list, tuple]:
    """Add to the gradients ``g`` and return those of the inputs and of the first states."""
    dx: list = [None] * len(x)
    dh_n, dc_n = end
    dh, dc = dh_n, dc_n
    for t in reversed(range(len(x))):
        i, f, n, o, m = cache[t]
        (h_before, c_before), (_, c) = states[t], states[t + 1]
        dh = dh + dout[t]
        dm = dh
        if "weight_hr" in w:
            g["weight_hr"] += np.outer(dh, m)
            dm = w["weight_hr"].T @ dh
        dc = dc + dm * o * (1 - np.tanh(c) ** 2)
        dz_i = dc * n * i * (1 - i)
        dz_f = dc * c_before * f * (1 - f)
        dz_g = dc * i * (1 - n * n)
        dz_o = dm * np.tanh(c) * o * (1 - o)
        dz = np.concatenate([dz_i, dz_f, dz_g, dz_o])
        g["weight_ih"] += np.outer(dz, x[t])
        g["weight_hh"] += np.outer(dz, h_before)
        g["bias_ih"] += dz
        g["bias_hh"] += dz
        dx[t] = w["weight_ih"].T @ dz
        dh = w["weight_hh"].T @ dz
        dc = dc * f
        if t in cuts:
            dh = np.zeros_like(dh)
            dc = np.zeros_like(dc)
    return dx, (dh, dc)
