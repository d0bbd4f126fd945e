"""The check of what stands before and behind a recurrent module: Embedding, Dropout, Linear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

import numpy_rnn
from parity_tests.mutations.judges.judge import LOOSE, TOLERANCE, Events, array_of
from torch_rnn import twin

WEAK: dict[str, dict[str, Any]] = {
    "ones": {"upstream": "ones"},
    "T=1": {"T": 1},
    "b=0": {"bias": "zero"},
    "equal": {"weights": "equal"},
    "I=H=B": {"B": 4, "E": 4, "K": 4},
    "B=1": {"B": 1},
    "1 call": {"calls": 1},
    "weights": {"compared": "weights"},
    "1e-2": {"tolerance": LOOSE},
}
WEAK["all"] = {key: value for change in WEAK.values() for key, value in change.items()} | {"E": 1}


@dataclass(frozen=True)
class Head:
    """Symbols through a table, a dropout mask and an affine map; two calls, the gradients added up."""

    T: int = 7
    B: int = 4
    K: int = 6
    E: int = 3
    upstream: str = "random"
    bias: str = "random"
    weights: str = "random"
    calls: int = 2
    compared: str = "all"
    tolerance: float = TOLERANCE

    def weakened(self, weak_test: str) -> Head | None:
        return replace(self, **WEAK[weak_test]) if weak_test in WEAK else None

    def modules(self) -> list[Any]:
        embedding = numpy_rnn.Embedding(self.K, self.E, padding_idx=0, dtype="float64", rng=0)
        linear, rng = numpy_rnn.Linear(self.E, 5, dtype="float64", rng=0), np.random.default_rng(0)
        for parameter in (embedding.weight, linear.weight, linear.bias):
            parameter.data[...] = 0.25 if self.weights == "equal" else rng.normal(size=parameter.shape)
        if self.bias == "zero":
            linear.bias.data[...] = 0
        return [embedding, linear]

    def run(self, ours: bool) -> Events:
        modules, rng = self.modules(), np.random.default_rng(1)
        embedding, linear = modules if ours else map(twin, modules)
        dropout = numpy_rnn.Dropout(0.5)
        for k in range(self.calls):
            index = rng.integers(0, self.K, (self.T, self.B))
            mask = 2.0 * (rng.uniform(size=(*index.shape, self.E)) < 0.5)
            if ours:
                output = linear(dropout(embedding(index), mask))
            else:
                output = linear(embedding(torch.from_numpy(index)) * torch.from_numpy(mask))
            shape = tuple(output.shape)
            d = np.ones(shape) if self.upstream == "ones" else rng.normal(size=shape)
            output.backward(numpy_rnn.Tensor(d) if ours else torch.from_numpy(d))
            yield f"{k}: dW of the table", array_of(embedding.weight.grad)
            yield f"{k}: dW", array_of(linear.weight.grad)
            if self.compared == "all":
                yield f"{k}: output", array_of(output)
                yield f"{k}: db", array_of(linear.bias.grad)

    def expected(self) -> Mapping[str, Any]:
        return expected(self)

    def found(self) -> Events:
        return self.run(ours=True)

    def falls(self) -> bool:
        """Ten steps of SGD on one batch."""
        embedding, linear = self.modules()
        rng, losses = np.random.default_rng(1), []
        index, target = rng.integers(0, self.K, (self.T, self.B)), rng.normal(size=(self.T, self.B, 5))
        optimizer = numpy_rnn.SGD([*embedding.parameters(), *linear.parameters()], lr=0.05)
        dropout, mask = numpy_rnn.Dropout(0.5), 2.0 * (rng.uniform(size=(self.T, self.B, self.E)) < 0.5)
        for _ in range(10):
            optimizer.zero_grad()
            loss = numpy_rnn.mse_loss(linear(dropout(embedding(index), mask)), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses[-1] < losses[0]


@cache
def expected(case: Head) -> Mapping[str, Any]:
    """PyTorch's numbers."""
    return dict(case.run(ours=False))
