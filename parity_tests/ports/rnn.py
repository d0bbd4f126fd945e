"""The vanilla RNN over one sequence."""

from typing import Any

import numpy as np


def forward(x: Any, start: Any, w: dict, relu: bool) -> tuple[list, list]:
    """Return the states, the first one included, and what backward needs of each step."""
    states, cache = [start], []
    for x_t in x:
        (h,) = states[-1]
        z = w["weight_ih"] @ x_t + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]
        states.append((np.maximum(z, 0) if relu else np.tanh(z),))
        cache.append((z, relu))
    return states, cache


def backward(x: Any, states: list, cache: list, w: dict, g: dict, dout: Any, end: Any, cuts: set) -> tuple[list, tuple]:
    """Add to the gradients ``g`` and return those of the inputs and of the first state."""
    dx: list = [None] * len(x)
    (dh_n,) = end
    dh = dh_n
    for t in reversed(range(len(x))):
        _, relu = cache[t]
        (h_before,), (h,) = states[t], states[t + 1]
        dh = dh + dout[t]
        dz = dh * (h > 0) if relu else dh * (1 - h * h)
        g["weight_ih"] += np.outer(dz, x[t])
        g["weight_hh"] += np.outer(dz, h_before)
        g["bias_ih"] += dz
        g["bias_hh"] += dz
        dx[t] = w["weight_ih"].T @ dz
        dh = w["weight_hh"].T @ dz
        if t in cuts:
            dh = np.zeros_like(dh)
    return dx, (dh,)
