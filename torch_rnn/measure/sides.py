"""The same network, input and upstream gradient on both libraries, and the two things that are timed on each."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import numpy_rnn
from numpy_rnn.training import NUMPY, Backend
from numpy_rnn.typing import Array
from torch_rnn.backend import TORCH
from torch_rnn.measure.grid import Row
from torch_rnn.twins import twin

OPTIMIZER = "Adam"  # of the training step
MODULES: dict[str, Any] = {"rnn": numpy_rnn.RNN, "lstm": numpy_rnn.LSTM, "gru": numpy_rnn.GRU}
Call = Callable[[Any], Any]  # from the input to the output (T, B, D*H)


class Side:
    """One library's share of a row."""

    def __init__(self, backend: Backend, call: Call, module: Any, optimizers: Any, data: Data) -> None:
        self.backend, self.call = backend, call
        self.parameters = list(module.parameters())
        self.optimizer = getattr(optimizers, OPTIMIZER)(self.parameters)
        self.x = backend.tensor(data.x)  # for ``passes``, which ask for its gradient too
        self.x.requires_grad_()
        self.inputs, self.target = backend.tensor(data.x), backend.tensor(data.target)
        self.upstream = backend.tensor(data.upstream)

    def passes(self) -> dict[str, float]:
        """Run forward, recorded, and backward to every parameter and the input."""
        for leaf in (self.x, *self.parameters):
            leaf.grad = None
        start = perf_counter()
        output = self.call(self.x)
        middle = perf_counter()
        self.backend.backward([output], [self.upstream])
        end = perf_counter()
        return {"forward": middle - start, "backward": end - middle, "both": end - start}

    def step(self) -> dict[str, float]:
        """Run a whole training step: clear gradients, forward, loss, backward, optimizer."""
        start = perf_counter()
        self.optimizer.zero_grad()
        loss = self.backend.mse_loss(self.call(self.inputs), self.target)
        loss.backward()
        self.optimizer.step()
        return {"step": perf_counter() - start}


class Data:
    """What goes into both libraries: input (T, B, I), and for the output (T, B, D*H) a target and a gradient."""

    def __init__(self, row: Row) -> None:
        rng = np.random.default_rng(1)
        width = row.H * (2 if row.bidirectional else 1)
        self.x = self._draw(rng, row, row.I)
        self.target, self.upstream = self._draw(rng, row, width), self._draw(rng, row, width)

    def _draw(self, rng: np.random.Generator, row: Row, width: int) -> Array:
        return rng.standard_normal((row.T, row.B, width)).astype(row.dtype)


def numpy_module(row: Row, **options: Any) -> Any:
    """Return the NumPy module of a row, with further ``options``."""
    return MODULES[row.cell](
        row.I, row.H, num_layers=row.layers, bidirectional=row.bidirectional, dtype=row.dtype, rng=0, **options
    )


def sides(row: Row) -> dict[str, Side]:
    """Return the row on NumPy and on PyTorch, with equal weights and data."""
    ours, data = numpy_module(row), Data(row)
    theirs = twin(ours)
    return {
        "numpy": Side(NUMPY, numpy_call(ours, row), ours, numpy_rnn.optim, data),
        "torch": Side(TORCH, torch_call(theirs, row), theirs, torch.optim, data),
    }


def numpy_call(module: Any, row: Row) -> Call:
    """Return what runs a NumPy module forward, with the row's lengths."""
    lengths = row.draw_lengths()
    if lengths is None:
        return lambda x: module(x)[0]
    return lambda x: module(x, lengths=lengths)[0]


def torch_call(module: Any, row: Row) -> Call:
    """Return what runs a PyTorch module forward; its way with lengths is to pack, run and pad."""
    lengths = row.draw_lengths()
    if lengths is None:
        return lambda x: module(x)[0]
    sizes = torch.from_numpy(lengths)

    def call(x: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(x, sizes, enforce_sorted=False)
        output, _ = pad_packed_sequence(module(packed)[0], total_length=row.T)
        return output

    return call
