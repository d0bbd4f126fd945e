"""What is taken for true: NumPy's own cells in a wider type, on the very numbers that the two libraries were given.

That the formulas are right is not shown here: a wrong one would stand as an error of PyTorch's, of millions of units.
float64 is the truth of float32. That of float64 is longdouble, or, where that is float64 again, mpmath's numbers in
arrays of objects, on which the same functions run, slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from numpy_rnn.cells import gru, lstm, rnn
from numpy_rnn.typing import Array

BITS = 113  # of mpmath's mantissa: as many as IEEE's quadruple precision has
MOST_BY_MPMATH = 30_000  # multiplications of a forward: it does about a million a second, of all passes and seeds

Arrays = dict[str, Array]


def wider(dtype: str) -> str | None:
    """Return the type that holds the truth of ``dtype``: "float64", "longdouble", "mpmath", or None without any."""
    if dtype == "float32":
        return "float64"
    if np.finfo(np.longdouble).nmant >= np.finfo(np.float64).nmant + 11:
        return "longdouble"
    return "mpmath" if find_spec("mpmath") else None


def widened(arrays: Mapping[str, Array], kind: str) -> Arrays:
    """Return the same numbers in the type that ``wider`` names."""
    if kind != "mpmath":
        return {name: array.astype(kind) for name, array in arrays.items()}
    number = _mpmath_number()
    return {name: np.frompyfunc(number, 1, 1)(array).astype(object) for name, array in arrays.items()}


def passes(cell: str, arrays: Mapping[str, Array], upstream: Mapping[str, Array]) -> Arrays:
    """Run one layer of ``cell`` forward and backward and return every output and gradient.

    ``arrays`` are the arguments of the cell's forward by name, ``upstream`` the gradients of what it returns: ``dh``,
    ``dh_n`` and, of an LSTM, ``dc_n``. Returns ``output``, ``h_n``, of an LSTM ``c_n``, and the cell's Gradients.
    """
    function: Any = {"lstm": lstm, "gru": gru}.get(cell, rnn)
    kind = {"nonlinearity": "relu" if cell == "rnn-relu" else "tanh"} if function is rnn else {}
    *outputs, saved = function.forward(**arrays, **kind)
    weights = {name: arrays[name] for name in ("w_ih", "w_hh", "w_hr") if name in arrays}
    gradients = function.backward(**upstream, saved=saved, **weights, **kind)
    found = {name: gradient for name, gradient in gradients._asdict().items() if gradient is not None}
    return {**dict(zip(("output", "h_n", "c_n"), outputs, strict=False)), **found}


def _mpmath_number() -> Callable[[float], Any]:
    """Return the constructor of numbers of ``BITS`` bits that know ``exp`` and ``tanh``, as NumPy asks of objects."""
    import mpmath  # type: ignore[import-untyped]

    context = mpmath.MPContext()
    context.prec = BITS
    context.mpf.exp, context.mpf.tanh = (lambda z: context.exp(z)), (lambda z: context.tanh(z))
    return lambda value: context.mpf(float(value))
