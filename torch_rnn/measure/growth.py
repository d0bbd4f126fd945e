"""How time and memory grow with T, B and H: exponents fitted by least squares in log-log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from torch_rnn.measure import goals
from torch_rnn.measure.grid import Row
from torch_rnn.measure.memory import numpy_saved, torch_saved
from torch_rnn.measure.sides import sides
from torch_rnn.measure.timing import Effort, interleave

BASE = (64, 16, 32, 64)  # T, B, I, H; one of T, B and H is varied at a time
SWEEPS = {"T": (32, 64, 128, 256), "B": (8, 16, 32, 64), "H": (32, 64, 128, 256)}
QUICK_BASE = (16, 4, 8, 16)
QUICK_SWEEPS = {"T": (8, 16, 32), "B": (2, 4, 8), "H": (8, 16, 32)}


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return p of the power law value = c * size**p that fits best in log-log.

    >>> round(exponent([1, 2, 4], [3, 12, 48]), 12)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def growth(cell: str, dtype: str, letter: str, effort: Effort, quick: bool) -> dict[str, Any]:
    """Return the sizes swept, the times of forward and backward, the bytes saved, and their exponents."""
    base = Row(cell, dtype, *(QUICK_BASE if quick else BASE))
    sizes = (QUICK_SWEEPS if quick else SWEEPS)[letter]
    varied: list[dict[str, Any]] = [{letter: size} for size in sizes]
    swept = [replace(base, **change) for change in varied]
    seconds: dict[str, list[float]] = {"numpy": [], "torch": []}
    for row in swept:
        works = {name: side.passes for name, side in sides(row).items()}
        for name, rounds in interleave(works, effort).items():
            seconds[name].append(float(np.median(rounds["both"])))
    saved = {"numpy": [numpy_saved(row) for row in swept], "torch": [torch_saved(row) for row in swept]}
    exponents = {name: exponent(sizes, values) for name, values in saved.items()}
    linear = goals.judge("saved exponent", exponents["numpy"], goals.LINEAR, at_most=True)
    return {
        "cell": cell,
        "dtype": dtype,
        "varied": letter,
        "base": dict(zip("TBIH", base.shape, strict=True)),
        "sizes": list(sizes),
        "seconds": seconds,
        "saved": saved,
        "time_exponent": {name: exponent(sizes, values) for name, values in seconds.items()},
        "saved_exponent": exponents,
        "goals": [linear] if letter == "T" else [],
    }
