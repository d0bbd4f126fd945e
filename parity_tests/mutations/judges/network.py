"""The check of recurrent modules, their cells, layouts and the tape."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import torch

import numpy_rnn
from numpy_rnn import packing
from numpy_rnn.cells import steps
from numpy_rnn.modules.layout import dense
from parity_tests.mutations.judges.judge import LOOSE, TOLERANCE, Events, array_of
from torch_rnn import twin
from torch_rnn.parity import call, dropout_masks

KINDS = {
    "rnn": (numpy_rnn.RNN, 1, {}),
    "rnn-relu": (numpy_rnn.RNN, 1, {"nonlinearity": "relu"}),
    "lstm": (numpy_rnn.LSTM, 4, {}),
    "gru": (numpy_rnn.GRU, 3, {}),
}
LENGTHS = (4, 7, 2, 5)  # longest first is 1, 3, 0, 2, which is not its own inverse
WEAK: dict[str, dict[str, Any]] = {
    "ones": {"upstream": "ones"},
    "sum": {"reads": "output", "upstream": "ones", "calls": 1},
    "T=1": {"T": 1},
    "h₀=0": {"state": "zero"},
    "b=0": {"bias": "zero"},
    "equal": {"weights": "equal"},
    "I=H=B": {"I": 4, "H": 4, "B": 4},
    "B=1": {"B": 1},
    "1 layer": {"layers": 1},
    "1 call": {"calls": 1},
    "weights": {"compared": "weights"},
    "1e-2": {"tolerance": LOOSE},
    "W/1000": {"recurrent": 0.001, "tolerance": LOOSE},
}
WEAK["all"] = {key: value for change in WEAK.values() for key, value in change.items()} | {"I": 1, "H": 1}
del WEAK["all"]["recurrent"]  # all parameters are one number


@dataclass(frozen=True)
class Network:
    """Two windows in one graph, back-propagated together; a write into the weights; a third from a detached state.

    The gradients come from a sum of outputs, from steps that are picked twice, and from the final states, and those of
    the second backward are added to those of the first. All sizes differ, no number is zero.
    """

    cell: str = "rnn"
    T: int = 7
    B: int = 4
    I: int = 3  # noqa: E741
    H: int = 5
    P: int = 0
    layers: int = 2
    bidirectional: bool = False
    batch_first: bool = False
    lengths: bool = False
    packed: bool = False  # the lengths by way of a PackedSequence
    dropout: float = 0
    every: int | None = None  # recompute_every
    block: int | None = None  # so many steps fit the cache, and so few rows are added one after the other
    rules: bool = False  # which errors come, too
    upstream: str = "random"
    reads: str = "all"
    state: str = "random"
    bias: str = "random"
    weights: str = "random"
    recurrent: float = 1  # what W_hh is multiplied by
    calls: int = 2
    compared: str = "all"
    tolerance: float = TOLERANCE

    def weakened(self, weak_test: str) -> Network | None:
        changed = replace(self, **WEAK[weak_test])
        if changed.P >= changed.H:
            changed = replace(changed, H=2, P=1)
        return replace(changed, dropout=0) if changed.layers == 1 else changed

    def module(self) -> Any:
        kind, _, options = KINDS[self.cell]
        options = options | {"num_layers": self.layers, "bidirectional": self.bidirectional, "dropout": self.dropout}
        options |= {"proj_size": self.P} if self.P else {}
        options |= {"recompute_every": self.every} if self.every else {}
        module: Any = kind(self.I, self.H, batch_first=self.batch_first, dtype="float64", rng=0, **options)
        rng = np.random.default_rng(0)
        for name, parameter in module.named_parameters():
            parameter.data[...] = 0.25 if self.weights == "equal" else 0.5 * rng.normal(size=parameter.shape)
            if "weight_hh" in name:
                parameter.data *= self.recurrent
            if self.bias == "zero" and "bias" in name:
                parameter.data[...] = 0
        return module

    def lengths_of(self) -> list[int] | None:
        return [min(n, self.T) for n in LENGTHS[: self.B]] if self.lengths else None

    def arrays(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Three inputs, and the initial states."""
        rng = np.random.default_rng(1)
        shape = (self.B, self.T, self.I) if self.batch_first else (self.T, self.B, self.I)
        sizes = [self.P or self.H, self.H][: 2 if self.cell == "lstm" else 1]
        parts = self.layers * (1 + self.bidirectional)
        states = [rng.normal(size=(parts, self.B, size)) for size in sizes]
        return [rng.normal(size=shape) for _ in range(3)], states if self.state == "random" else []

    def expected(self) -> dict[str, Any]:
        return expected(self)[0]

    def found(self) -> Events:
        with self.cache():
            yield from play(self, Ours(self, expected(self)[1]))

    def cache(self) -> AbstractContextManager[Any]:
        if self.block is None:
            return nullcontext()
        size = self.block * self.B * KINDS[self.cell][1] * self.H * 8
        return mock.patch.multiple(steps, CACHE=size, FEW=self.block)

    def falls(self) -> bool:
        """Ten steps of SGD on one window."""
        module = self.module()
        side = Ours(self, expected(self)[1], module)
        inputs, states = self.arrays()
        optimizer, target = numpy_rnn.SGD(module.parameters(), lr=0.05), None
        losses = []
        with self.cache():
            for _ in range(10):
                optimizer.zero_grad()
                output, _ = side.call(side.tensor(inputs[0]), [side.tensor(s) for s in states], 0)
                if target is None:
                    target = 0.5 * np.random.default_rng(2).normal(size=output.shape)
                loss = numpy_rnn.mse_loss(output, target)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return losses[-1] < losses[0]


class Ours:
    """The words of NumPy's side."""

    def __init__(self, case: Network, masks: list[Any], module: Any = None) -> None:
        self.case, self.masks, self.module = case, masks, case.module() if module is None else module
        self.no_grad, self.backward = numpy_rnn.no_grad, numpy_rnn.backward
        dense.cache_clear()  # a layout may remember what a property of it was before the mistake

    def tensor(self, array: np.ndarray, requires_grad: bool = False) -> Any:
        return numpy_rnn.Tensor(array.copy(), requires_grad=requires_grad)

    def call(self, x: Any, state: Sequence[Any], k: int) -> tuple[Any, list[Any]]:
        case, lengths = self.case, self.case.lengths_of()
        hx = None if not state else state[0] if len(state) == 1 else tuple(state)
        if case.packed:
            packed = packing.pack_padded_sequence(x, lengths, case.batch_first, enforce_sorted=False)
            output, final = self.module(packed, hx)
            output, _ = packing.pad_packed_sequence(output, case.batch_first, total_length=case.T)
        else:
            masks = {"dropout_masks": self.masks[k]} if self.masks[k] else {}
            output, final = self.module(x, hx, lengths=lengths, **masks)
        return output, list(final) if isinstance(final, tuple) else [final]

    def write(self) -> None:
        with numpy_rnn.no_grad():
            for parameter in self.module.parameters():
                parameter.copy_(0.9 * parameter.data)

    def step(self) -> None:
        numpy_rnn.SGD(self.module.parameters(), lr=0.01).step()

    def error(self, error: Exception) -> str:
        if isinstance(error, numpy_rnn.InPlaceModificationError):
            return "written"
        return "freed" if isinstance(error, numpy_rnn.GraphFreedError) else repr(error)


class Theirs:
    """The words of PyTorch's side; keeps the dropout masks that it drew."""

    def __init__(self, case: Network) -> None:
        self.case, self.module, self.masks = case, twin(case.module()), list[Any]()
        self.no_grad = torch.no_grad

    def tensor(self, array: np.ndarray, requires_grad: bool = False) -> Any:
        return torch.from_numpy(array.copy()).requires_grad_(requires_grad)

    def backward(self, tensors: list[Any], upstream: list[np.ndarray], retain_graph: bool = False) -> None:
        torch.autograd.backward(tensors, [torch.from_numpy(d.copy()) for d in upstream], retain_graph)

    def call(self, x: Any, state: Sequence[Any], k: int) -> tuple[Any, list[Any]]:
        self.masks.append(dropout_masks(self.module, x.shape, self.case.lengths_of()))
        hx = [] if not state else [state[0] if len(state) == 1 else tuple(state)]
        output, final = call(self.module, [x, *hx], self.case.lengths_of())
        return output, list(final) if isinstance(final, tuple) else [final]

    def write(self) -> None:
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.mul_(0.9)

    def step(self) -> None:
        torch.optim.SGD(self.module.parameters(), lr=0.01).step()

    def error(self, error: Exception) -> str:
        known = {"modified by an inplace operation": "written", "backward through the graph a second time": "freed"}
        return next((name for text, name in known.items() if text in str(error)), repr(error))


@cache
def expected(case: Network) -> tuple[dict[str, Any], list[Any]]:
    """PyTorch's numbers, and the dropout masks of each call."""
    torch.manual_seed(0)
    side = Theirs(case)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
        numbers = dict(play(case, side))
    return numbers, [*side.masks, *[[] for _ in range(3)]]


def play(case: Network, side: Any) -> Events:
    """Run the case on one side and tell each number as it is there."""
    inputs, states = case.arrays()
    weights_alone = case.compared == "weights"
    parameters = [(n, p) for n, p in side.module.named_parameters() if n.startswith("weight") or not weights_alone]
    rng = np.random.default_rng(2)

    def upstream_of(tensors: list[Any]) -> list[np.ndarray]:
        shapes = [tuple(tensor.shape) for tensor in tensors]
        return [np.ones(shape) if case.upstream == "ones" else rng.normal(size=shape) for shape in shapes]

    def read(*tensors: Any) -> list[Any]:
        return [t for t in tensors if case.reads == "all" or t is output]

    def tell(kind: str, tensors: list[Any], leaves: list[Any]) -> Events:
        yield from [(f"{kind}: d{name}", array_of(parameter.grad)) for name, parameter in parameters]
        if not weights_alone:
            yield from [(f"{kind}: output {i}", array_of(tensor)) for i, tensor in enumerate(tensors)]
            yield from [(f"{kind}: d of input {i}", array_of(leaf.grad)) for i, leaf in enumerate(leaves)]

    x, hx = side.tensor(inputs[0], True), [side.tensor(s, True) for s in states]
    output, state = side.call(x, hx, 0)
    if case.calls == 1:
        tensors = read(output, *state)
        side.backward(tensors, upstream_of(tensors))
        yield from tell("the only window", tensors, [x, *hx])
        return
    y = side.tensor(inputs[1], True)
    again, state = side.call(y, state if states else [], 1)
    parts = [again.clone()[[0, 0, -1]], again[0]]
    tensors = [again + output, *parts, *read(*state)]
    upstream = upstream_of(tensors)
    side.backward(tensors, upstream)
    yield from tell("two windows", tensors, [x, *hx, y])
    side.write()
    z = side.tensor(inputs[2], True)
    output, state = side.call(z, [s.detach() for s in state] if states else [], 2)
    tensors = read(output, *state)
    upstream = [upstream[0], *upstream[3:]]  # the same arrays again: nobody has written into them
    side.backward(tensors, upstream)
    yield from tell("after a write", tensors, [z, x, *hx])
    if case.rules:
        yield from rules(side, inputs, states, tensors, upstream)


def rules(side: Any, inputs: list[Any], states: list[Any], tensors: list[Any], upstream: list[Any]) -> Events:
    """Which backward is refused, and why."""

    def outcome(tensors: list[Any], upstream: list[Any], **options: Any) -> str:
        try:
            side.backward(tensors, upstream, **options)
        except RuntimeError as error:
            return str(side.error(error))
        return "nothing"

    def run(x: np.ndarray, learnt: bool) -> tuple[list[Any], list[Any]]:
        hx = [side.tensor(s, learnt) for s in states]
        output, state = side.call(side.tensor(x, learnt), hx, 3)
        return [output, *state][: len(upstream)], hx

    yield "a second time", outcome(tensors, upstream)
    tensors, hx = run(inputs[0][:1], True)
    side.backward(tensors, [u[: len(t)] for u, t in zip(upstream, tensors, strict=True)])
    yield from [("d of the state before a step", array_of(state.grad)) for state in hx]
    tensors, _ = run(inputs[0], True)
    yield "kept", outcome(tensors, upstream, retain_graph=True)
    yield "a second time, kept", outcome(tensors, upstream)
    for name, write in (("written", side.write), ("stepped", side.step)):
        for x, length in ((inputs[0], "a window"), (inputs[0][:1], "a step")):
            for learnt in (True, False):
                tensors, _ = run(x, learnt)
                write()
                yield (
                    f"{name} after {length}, {learnt}",
                    outcome(tensors, [u[: len(t)] for u, t in zip(upstream, tensors, strict=True)]),
                )
    tensors, hx = run(inputs[0], False)
    for state in hx:
        with side.no_grad():
            state.detach().copy_(state + state)
    yield "the state written", outcome(tensors, upstream)
    with side.no_grad():
        tensors, _ = run(inputs[0], True)
    yield "without recording", str(tensors[0].requires_grad)
