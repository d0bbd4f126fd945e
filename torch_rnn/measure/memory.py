"""Memory: what the graph keeps for backward, the least that it could keep, and the peak of a training step.

**Bytes saved.** What is alive after the forward because the graph holds it, the parameters left out: the input, if
backward needs it, the states, the gates. NumPy: the arrays of tracemalloc's NumPy domain that were made since before
the input was, once the user's own names for input and output are gone. PyTorch: every storage handed to
``torch.autograd.graph.saved_tensors_hooks``, once.

**The least possible**, for one layer and direction over N = T·B rows, is what backward needs and cannot get from the
rest without multiplying by a weight again, that is without a good part of another forward. Per row and unit:

- RNN: dW_ih needs x, and tanh′ = 1 − h² and dW_hh need h, neither of which follows from the other without W_ih x:
  I + H numbers a row, and h_0.
- LSTM: i, f, g, o, c and h are six numbers with two relations, c = f c₋₁ + i g and h = o tanh(c). Both run forward from
  c_0 element by element, so c and h follow from the four gates (the other way round, o = h / tanh(c) breaks where c is
  0): I + 4H numbers a row, h_0 and c_0.
- GRU: r, z, n, s = W_hn h₋₁ + b_hn and h, with the one relation h = n + z (h₋₁ − n): I + 4H again, and h_0. s is needed
  for dr = dn_input s, and follows from h by a product only.

Whoever multiplies again needs x and h alone, for all cells: that is another forward.

**Peak.** The most that was allocated at once during one training step above what stood there before it (parameters,
input, target, optimizer state). NumPy: tracemalloc, all of Python's and NumPy's allocations; not what the BLAS takes
for itself. PyTorch: the running sum of the profiler's memory events, all of its CPU allocator; not what oneDNN
and the BLAS take for themselves.
"""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile

from numpy_rnn.tensor import Tensor
from torch_rnn.measure import goals
from torch_rnn.measure.grid import Row
from torch_rnn.measure.sides import Data, Side, numpy_call, numpy_module, sides, torch_call
from torch_rnn.twins import twin


def least(row: Row) -> int:
    """Return the least bytes that one layer in one direction can save for backward; the docstring above derives it.

    >>> least(Row("rnn", "float64", T=7, B=4, I=3, H=5)) == 8 * (7 * 4 * (3 + 5) + 4 * 5)
    True
    """
    units = 1 if row.cell == "rnn" else 4
    states = 2 if row.cell == "lstm" else 1
    return np.dtype(row.dtype).itemsize * (sum(row.batch_sizes()) * (row.I + units * row.H) + states * row.B * row.H)


def compare(row: Row) -> dict[str, Any]:
    """Return the bytes saved and the peak of a training step on both sides."""
    saved = {"numpy": numpy_saved(row), "torch": torch_saved(row), "least": least(row)}
    both = sides(row)
    for side in both.values():
        side.step()  # makes the optimizer's state
    return {
        **row.as_json(),
        "saved": saved,
        "peak": {"numpy": allocated_at_once(both["numpy"].step), "torch": torch_peak(both["torch"])},
        "goals": [goals.judge("saved", saved["numpy"] / saved["torch"], goals.SAVED, at_most=True)],
    }


def numpy_saved(row: Row, **options: Any) -> int:
    """Return the bytes of the arrays that the graph of one forward holds; ``options`` go to the module."""
    call, x = numpy_call(numpy_module(row, **options), row), Data(row).x
    with _traced():
        before = _numpy_bytes()
        output = call(Tensor(x.copy()))
        graph = output.grad_fn
        del output
        gc.collect()
        after = _numpy_bytes()
        del graph
    return after - before


def torch_saved(row: Row) -> int:
    """Return the bytes of the storages that autograd saves in one forward."""
    module = twin(numpy_module(row))
    own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    found: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        output = torch_call(module, row)(torch.from_numpy(Data(row).x))
    del output  # alive until here, so that no address was given out twice
    return sum(found.values())


def allocated_at_once(call: Callable[[], object]) -> int:
    """Return the most bytes that Python and NumPy had allocated during ``call`` above what stood before it."""
    with _traced():
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        _, peak = tracemalloc.get_traced_memory()
    return peak - before


def torch_peak(side: Side) -> int:
    """Return the most bytes that PyTorch's CPU allocator had given out during a step above what stood before it."""
    for parameter in side.parameters:
        parameter.grad = None  # else the profiler meets blocks whose allocation it has not seen
    with TemporaryDirectory() as directory, _silenced():
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            side.step()
        trace = Path(directory, "trace.json")
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    memory = sorted((event for event in events if event.get("name") == "[memory]"), key=lambda event: event["ts"])
    return int(max(np.cumsum([event["args"]["Bytes"] for event in memory]), default=0))


@contextmanager
def _traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def _numpy_bytes() -> int:
    traces = tracemalloc.take_snapshot().traces
    return sum(trace.size for trace in traces if trace.domain == np.lib.tracemalloc_domain)


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep what the profiler's C++ prints from the terminal."""
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        yield
    finally:
        for descriptor, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(nowhere)
