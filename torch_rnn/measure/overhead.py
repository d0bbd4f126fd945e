"""What the tape and the modules add to the bare cell, and what importing costs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import numpy_rnn
from torch_rnn.measure import goals
from torch_rnn.measure.grid import Row
from torch_rnn.measure.sides import Data, numpy_module
from torch_rnn.measure.timing import Effort, interleave, quartiles, ratio, timed

CALLS = 50  # that are timed together
IMPORT = "from time import perf_counter as now; start = now(); import {}; print(now() - start)"
IMPORTS = Effort(least=9, most=9, seconds=0.0, block=0.0, pause=0.0)
QUICK_IMPORTS = Effort(least=3, most=3, seconds=0.0, block=0.0, pause=0.0)


def overhead(cell: str, dtype: str, effort: Effort) -> dict[str, Any]:
    """Return what a module call, forward and backward, of one step, sequence, input and unit takes besides its cell.

    In units of one call of a NumPy ufunc on ten elements.
    """
    row = Row(cell, dtype, 1, 1, 1, 1)
    module, data = numpy_module(row), Data(row)
    x = numpy_rnn.Tensor(data.x, requires_grad=True)
    leaves, ten = [x, *module.parameters()], np.ones(10)

    def whole() -> None:
        for leaf in leaves:
            leaf.grad = None
        numpy_rnn.backward([module(x)[0]], [data.upstream])

    bare = cell_calls(module._cell, whole)
    works = {
        "whole": timed(whole, CALLS),
        "cell": timed(lambda: [call() for call in bare], CALLS),
        "ufunc": timed(partial(np.add, ten, ten), CALLS),
    }
    rounds = {name: phases["call"] for name, phases in interleave(works, effort).items()}
    added = [a - b for a, b in zip(rounds["whole"], rounds["cell"], strict=True)]
    calls = ratio(added, rounds["ufunc"])
    return {
        "cell": cell,
        "dtype": dtype,
        "seconds": {name: quartiles(values) for name, values in rounds.items()},
        "ufunc_calls": calls,
        "goals": [goals.judge("ufunc calls", calls["median"], goals.OVERHEAD, at_most=True)],
    }


def cell_calls(cell: Any, run: Callable[[], None]) -> list[Callable[[], object]]:
    """Return the calls of the cell's forward and backward that ``run`` makes, to be made again without the rest."""
    calls: list[Callable[[], object]] = []

    def watched(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: Any, **kwargs: Any) -> object:
            calls.append(partial(function, *args, **kwargs))
            return function(*args, **kwargs)

        return call

    with patch.multiple(cell, forward=watched(cell.forward), backward=watched(cell.backward)):
        run()
    if len(calls) != 2:
        raise RuntimeError(f"a module call must run its cell forward and backward once, got {len(calls)} calls")
    return calls


def imports(quick: bool) -> dict[str, Any]:
    """Return the time to import numpy_rnn over that to import numpy, each in fresh interpreters, in turn."""
    effort = QUICK_IMPORTS if quick else IMPORTS
    with (
        TemporaryDirectory() as compiled
    ):  # as where a package is installed: its files are compiled once, not each time
        works = {name: partial(_import, name, compiled) for name in ("numpy", "numpy_rnn")}
        rounds = {name: phases["call"] for name, phases in interleave(works, effort).items()}
    times = ratio(rounds["numpy_rnn"], rounds["numpy"])
    return {
        "seconds": {name: quartiles(values) for name, values in rounds.items()},
        "ratio": times,
        "goals": [goals.judge("ratio", times["median"], goals.IMPORT, at_most=True)],
    }


def _import(name: str, compiled: str) -> dict[str, float]:
    path = os.pathsep.join([str(Path(numpy_rnn.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", IMPORT.format(name)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""},
    )
    return {"call": float(done.stdout)}
