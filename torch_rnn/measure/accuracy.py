"""How far each library's outputs and gradients are from the truth, in units of the last place, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

import numpy_rnn
from numpy_rnn.training import NUMPY, Backend
from numpy_rnn.typing import Array
from torch_rnn.backend import TORCH
from torch_rnn.measure import machine
from torch_rnn.measure.bench import Record
from torch_rnn.measure.cases import Case, cases, draw
from torch_rnn.measure.functions import functions
from torch_rnn.measure.goals import judge
from torch_rnn.measure.truth import MOST_BY_MPMATH, Arrays, passes, widened, wider
from torch_rnn.twins import twin

FORMAT = 1  # of the record
SEEDS, SEEDS_OF_SMALL, QUICK_SEEDS = 7, 25, 9
SMALL = 5_000_000  # multiplications of a forward: a larger case has entries enough to need fewer seeds
FLOOR = 1.0  # units: less than one is not told apart, for rounding a result that is exact may cost half of one
NOWHERE, MEDIAN = 1.5, 1.0  # the goals: NumPy's error over PyTorch's, of each tensor and in the middle of all

MODULES: dict[str, Callable[..., Any]] = {
    "rnn": numpy_rnn.RNN,
    "rnn-relu": partial(numpy_rnn.RNN, nonlinearity="relu"),
    "lstm": numpy_rnn.LSTM,
    "gru": numpy_rnn.GRU,
}
PARAMETERS = {
    "weight_ih_l0": "w_ih",
    "weight_hh_l0": "w_hh",
    "bias_ih_l0": "b_ih",
    "bias_hh_l0": "b_hh",
}


@dataclass(frozen=True)
class Settings:
    """What a measurement was asked for."""

    cells: tuple[str, ...]
    dtypes: tuple[str, ...]
    quick: bool
    threads: int = 1


def measure(settings: Settings, before_each: Callable[[Case], None] = lambda case: None) -> Record:
    """Measure every case and return the record; the caller has set the threads."""
    rows = []
    for case in measured_cases(settings):
        before_each(case)
        rows.append(measure_case(case, seeds_of(case, settings.quick)))
    return {
        "format": FORMAT,
        "date": machine.today(),
        "machine": machine.machine(),
        "versions": machine.versions(),
        "settings": {**asdict(settings), "floor": FLOOR},
        "truth": {dtype: wider(dtype) for dtype in settings.dtypes},
        "rows": rows,
        "functions": [entry for dtype in settings.dtypes for entry in functions(dtype)],
        "goals": [entry for pair in _pairs(rows) for entry in summary(rows, *pair)],
    }


def measured_cases(settings: Settings) -> list[Case]:
    """Return the cases whose truth can be had: none of a dtype without a wider one, only small ones by mpmath."""
    found = cases(settings.cells, settings.dtypes, settings.quick)
    most = {"mpmath": MOST_BY_MPMATH, None: -1}
    return [case for case in found if case.multiplications <= most.get(wider(case.dtype), case.multiplications)]


def seeds_of(case: Case, quick: bool) -> int:
    """Return how many times a case is drawn."""
    return QUICK_SEEDS if quick else SEEDS_OF_SMALL if case.multiplications < SMALL else SEEDS


def measure_case(case: Case, seeds: int) -> Record:
    """Return, for every output and gradient, each library's largest error: its median and worst over the seeds."""
    errors: dict[str, dict[str, list[float]]] = {}
    for seed in range(seeds):
        arrays, upstream = draw(case, seed)
        kind = str(wider(case.dtype))
        truth = passes(case.cell, widened(arrays, kind), widened(upstream, kind))
        for library, found in run_both(case, arrays, upstream).items():
            for name, true in truth.items():
                errors.setdefault(name, {}).setdefault(library, []).append(units(found[name], true))
    tensors = {
        name: {library: {"median": float(np.median(e)), "worst": max(e)} for library, e in both.items()}
        for name, both in errors.items()
    }
    return {
        **case.as_json(),
        "seeds": seeds,
        "tensors": {name: {**t, "ratio": ratio(t)} for name, t in tensors.items()},
    }


def run_both(case: Case, arrays: Arrays, upstream: Arrays) -> dict[str, Arrays]:
    """Return what each library's module makes of the same numbers, under the names of ``truth.passes``."""
    module = MODULES[case.cell](case.I, case.H, dtype=case.dtype)
    module.load_state_dict({name: arrays[short] for name, short in PARAMETERS.items()})
    sides: tuple[tuple[Backend, Any], ...] = ((NUMPY, module), (TORCH, twin(module)))
    return {backend.name: _run(backend, side, arrays, upstream) for backend, side in sides}


def _run(backend: Backend, module: Any, arrays: Arrays, upstream: Arrays) -> Arrays:
    x, *states = leaves = [backend.tensor(array) for name, array in arrays.items() if name in ("x", "h_0", "c_0")]
    for leaf in leaves:
        leaf.requires_grad_()
    states = [state[None] for state in states]  # (1, B, H)
    output, final = module(x, states[0] if len(states) == 1 else tuple(states))
    outputs = [output, *(final if isinstance(final, tuple) else (final,))]
    given = [upstream["dh"], *(upstream[name][None] for name in ("dh_n", "dc_n") if name in upstream)]
    backend.backward(outputs, [backend.tensor(d) for d in given])
    found = dict(zip(("output", "h_n", "c_n"), (backend.array(t.detach()) for t in outputs), strict=False))
    found |= dict(zip(("dx", "dh_0", "dc_0"), (backend.array(leaf.grad) for leaf in leaves), strict=False))
    found |= {f"d{short}": backend.array(getattr(module, name).grad) for name, short in PARAMETERS.items()}
    return {name: array[0] if name in ("h_n", "c_n") else array for name, array in found.items()}


def units(found: Array, true: Array) -> float:
    """Return the largest error in units of the last place, in the type of ``found``, of the largest entry of ``true``.

    >>> units(np.array([1.0, 2**-52], np.float64), np.array([1.0, 0.0], np.longdouble))
    1.0
    """
    unit = np.spacing(found.dtype.type(float(np.abs(true).max())))
    return float(np.abs(found.astype(true.dtype) - true).max() / float(unit))


def ratio(tensor: Mapping[str, Mapping[str, float]]) -> float:
    """Return NumPy's error over PyTorch's, of the medians over the seeds, neither taken for less than ``FLOOR``.

    >>> ratio({"numpy": {"median": 3.0}, "torch": {"median": 0.6}})
    3.0
    """
    ours, theirs = (max(FLOOR, tensor[library]["median"]) for library in ("numpy", "torch"))
    return ours / theirs


def summary(rows: list[Record], cell: str, dtype: str) -> list[Record]:
    """Return the goals of a cell and dtype, judged: the ratio nowhere above ``NOWHERE``, in the median not above 1."""
    chosen = [row for row in rows if (row["cell"], row["dtype"]) == (cell, dtype)]
    ratios = {(row["label"], name): t["ratio"] for row in chosen for name, t in row["tensors"].items()}
    worst = {
        library: max(t[library]["worst"] for row in chosen for t in row["tensors"].values())
        for library in ("numpy", "torch")
    }
    where = max(ratios, key=lambda key: ratios[key])
    judged = (
        {**judge("anywhere", ratios[where], NOWHERE, at_most=True), "where": list(where)},
        judge("in the median", float(np.median(list(ratios.values()))), MEDIAN, at_most=True),
        {**judge("worst of all", worst["numpy"] / worst["torch"], NOWHERE, at_most=True), "worst": worst},
    )
    return [{"cell": cell, "dtype": dtype, "tensors": len(ratios), **entry} for entry in judged]


def _pairs(rows: list[Record]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row["cell"], row["dtype"]) for row in rows))
