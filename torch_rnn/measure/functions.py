"""The error of each library's tanh, logistic function and exponential: what a cell made of them cannot fall below."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from numpy_rnn.cells.sigmoid import sigmoid
from numpy_rnn.typing import Array
from torch_rnn.measure.truth import widened, wider

POINTS = 20_000
RANGES = {"from -4 to 4": (-4.0, 4.0), "near -20": (-21.0, -19.0)}
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "tanh": (np.tanh, torch.tanh),
    "sigmoid": (sigmoid, torch.sigmoid),
    "exp": (np.exp, torch.exp),
}


def functions(dtype: str, points: int = POINTS) -> list[dict[str, Any]]:
    """Return the mean and worst error of every function on every range, in units of the last place of its value."""
    kind = wider(dtype)
    if kind is None:
        return []
    points = points // 100 if kind == "mpmath" else points
    found = []
    for where, (low, high) in RANGES.items():
        z = np.random.default_rng(0).uniform(low, high, points).astype(dtype)
        wide = widened({"z": z}, kind)["z"]
        for name, (ours, theirs) in FUNCTIONS.items():
            true = 1 / (1 + np.exp(-wide)) if name == "sigmoid" else FUNCTIONS[name][0](wide)
            values = {"numpy": ours(z), "torch": theirs(torch.from_numpy(z)).numpy()}
            entry = {library: _errors(value, true) for library, value in values.items()}
            found.append({"name": name, "range": where, "dtype": dtype, **entry})
    return found


def _errors(value: Array, true: Array) -> dict[str, float]:
    """The value's own last place is the unit, so that a small one shows what it has lost."""
    units = (np.abs(value.astype(true.dtype) - true) / np.spacing(np.abs(value))).astype(float)
    return {"mean": float(units.mean()), "worst": float(units.max())}
