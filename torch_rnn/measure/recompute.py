"""What ``recompute_every=k`` saves and what it costs: bytes and time of a long window for several k."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy_rnn
from torch_rnn.measure.grid import Row
from torch_rnn.measure.memory import allocated_at_once, numpy_saved
from torch_rnn.measure.sides import Data, numpy_module
from torch_rnn.measure.timing import Effort, Work, interleave, ratio, timed

CELLS = ("lstm", "gru")  # the RNN saves nothing but its output: there is nothing to compute again
SHAPE, EVERY = (1024, 8, 32, 64), (2, 8, 16, 32, 64, 128, 512)  # T, B, I, H
QUICK_SHAPE, QUICK_EVERY = (64, 4, 8, 16), (4, 8, 16)


def curve(cell: str, dtype: str, effort: Effort, quick: bool) -> dict[str, Any]:
    """Return for every k, and for none, the bytes saved, the most bytes allocated at once, and the time over none."""
    row = Row(cell, dtype, *(QUICK_SHAPE if quick else SHAPE))
    choices = (None, *(QUICK_EVERY if quick else EVERY))
    data, works = Data(row), dict[str, Work]()
    points: list[dict[str, Any]] = []
    for every in choices:
        passes = partial(_passes, numpy_module(row, recompute_every=every), data)
        works[str(every)] = timed(passes)
        saved = numpy_saved(row, recompute_every=every)
        points.append({"every": every, "saved": saved, "peak": allocated_at_once(passes)})
    rounds = interleave(works, effort)
    for point in points:
        point["time"] = ratio(rounds[str(point["every"])]["call"], rounds["None"]["call"])
    return {**row.as_json(), "points": points}


def _passes(module: Any, data: Data) -> None:
    module.zero_grad()
    numpy_rnn.backward([module(data.x)[0]], [data.upstream])
