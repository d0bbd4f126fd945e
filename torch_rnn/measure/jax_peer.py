"""An optional third side: the same equations as ``jax.lax.scan`` under ``jit``, where jax is installed.

Forward and backward are compiled together, once, before the timing. XLA takes as many threads as it likes; there is no
option for it. Rows of one layer and direction over sequences of one length only.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from torch_rnn.measure.grid import Row
from torch_rnn.measure.sides import Data, numpy_module
from torch_rnn.measure.timing import Work


def installed() -> bool:
    """Return whether jax can be imported."""
    return find_spec("jax") is not None


def work(row: Row) -> Work | None:
    """Return a work with the phases forward and both, or None where jax is missing or the row is not plain."""
    if not installed() or not row.plain:
        return None
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    weights = tuple(parameter.data for parameter in numpy_module(row).parameters())
    data = Data(row)

    def forward(x: Any, *weights: Any) -> Any:
        return _run(jax, row, x, *weights)

    def both(upstream: Any, *arguments: Any) -> Any:
        output, back = jax.vjp(forward, *arguments)
        return output, back(upstream)

    arguments = [jax.device_put(array) for array in (data.x, *weights)]
    upstream, forward, both = jax.device_put(data.upstream), jax.jit(forward), jax.jit(both)

    def run() -> dict[str, float]:
        start = perf_counter()
        jax.block_until_ready(forward(*arguments))
        middle = perf_counter()
        jax.block_until_ready(both(upstream, *arguments))
        return {"forward": middle - start, "both": perf_counter() - middle}

    return run


def _run(jax: Any, row: Row, x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """Return all states (T, B, H)."""
    jnp, H = jax.numpy, row.H
    sigmoid, tanh = jax.nn.sigmoid, jnp.tanh

    def rnn(state: Any, z: Any) -> Any:
        h = tanh(z + state @ w_hh.T + b_hh)
        return h, h

    def lstm(state: Any, z: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(z + h @ w_hh.T + b_hh, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        return (h, c), h

    def gru(state: Any, z: Any) -> Any:
        a = state @ w_hh.T + b_hh
        r, u = jnp.split(sigmoid(z[:, : 2 * H] + a[:, : 2 * H]), 2, axis=1)
        n = tanh(z[:, 2 * H :] + r * a[:, 2 * H :])
        h = n + u * (state - n)
        return h, h

    zeros = jnp.zeros((row.B, H), row.dtype)
    step = {"rnn": rnn, "lstm": lstm, "gru": gru}[row.cell]
    return jax.lax.scan(step, (zeros, zeros) if row.cell == "lstm" else zeros, x @ w_ih.T + b_ih)[1]
