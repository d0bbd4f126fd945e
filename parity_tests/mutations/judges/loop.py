"""The checks of the training loop and of the modules of single steps, each against PyTorch, written out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

import numpy_rnn
from numpy_rnn.training import Loop, epoch_loss
from parity_tests.mutations.judges.judge import LOOSE, TOLERANCE, Events, array_of
from torch_rnn import twin

CELLS = {
    "rnn": (numpy_rnn.RNNCell, torch.nn.RNNCell, {}),
    "rnn-relu": (numpy_rnn.RNNCell, torch.nn.RNNCell, {"nonlinearity": "relu"}),
    "lstm": (numpy_rnn.LSTMCell, torch.nn.LSTMCell, {}),
    "gru": (numpy_rnn.GRUCell, torch.nn.GRUCell, {}),
}


@dataclass(frozen=True)
class Training:
    """Two epochs of an LSTM over a sequence of two windows and a shorter third."""

    carry: str = "detach"
    T: int = 12
    window: int = 5
    B: int = 4
    epochs: int = 2
    compared: str = "all"
    tolerance: float = TOLERANCE

    def weakened(self, weak_test: str) -> Training | None:
        changes: dict[str, dict[str, Any]] = {
            "T=1": {"window": 1},
            "B=1": {"B": 1},
            "1 call": {"T": self.window, "epochs": 1},
            "weights": {"compared": "weights"},
            "1e-2": {"tolerance": LOOSE},
        }
        changes["all"] = {k: v for change in changes.values() for k, v in change.items()} | {"T": 1}
        return replace(self, **changes[weak_test]) if weak_test in changes else None

    def model(self) -> numpy_rnn.SequenceModel:
        return numpy_rnn.SequenceModel("lstm", 3, 5, 2, dtype="float64", rng=0)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(1)
        return rng.normal(size=(self.T, self.B, 3)), rng.normal(size=(self.T, self.B, 2))

    def told(self, model: Any, number: int, loss: float, state: Any) -> Events:
        if self.compared == "all":
            yield f"loss {number}", loss
            yield from [(f"state {i} after {number}", array_of(s)) for i, s in enumerate(state)]
        yield from [(f"{name} after {number}", array_of(p)) for name, p in model.named_parameters()]

    def found(self) -> Events:
        model = self.model()
        optimizer = numpy_rnn.SGD(model.parameters(), lr=0.5)
        options: dict[str, Any] = {"window": self.window, "carry": self.carry, "epochs": self.epochs}
        loop = Loop(model, optimizer, *self.arrays(), **options)
        for record in loop:
            yield from self.told(model, record.step, record.loss, loop.state)

    def expected(self) -> dict[str, Any]:
        return dict(by_hand(self))

    def falls(self) -> bool:
        model = self.model()
        optimizer = numpy_rnn.SGD(model.parameters(), lr=0.05)
        records = list(Loop(model, optimizer, *self.arrays(), window=self.window, carry=self.carry, epochs=10))
        each = len(records) // 10
        return epoch_loss(records[-each:]) < epoch_loss(records[:each])


@cache
def by_hand(case: Training) -> tuple[tuple[str, Any], ...]:
    """The loop as one would write it in PyTorch."""
    model: Any = twin(case.model())
    optimizer, events, number = torch.optim.SGD(model.parameters(), lr=0.5), list[tuple[str, Any]](), 0
    x, y = (torch.from_numpy(array).split(case.window) for array in case.arrays())
    for _ in range(case.epochs):
        state, total = None, torch.zeros((), dtype=torch.float64)
        for i, (inputs, targets) in enumerate(zip(x, y, strict=True)):
            output, state = model(inputs, None if case.carry == "reset" else state)
            loss = torch.nn.functional.mse_loss(output, targets)
            if case.carry == "full":
                loss = total = total + loss * len(inputs) / case.T
                if i + 1 < len(x):
                    continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = tuple(s.detach() for s in state)
            number += 1
            events += case.told(model, number, loss.item(), state)
    return tuple(events)


@dataclass(frozen=True)
class Chain:
    """A cell called once a step, all states read, back-propagated through the chain; twice, the gradients added."""

    cell: str
    T: int = 4
    B: int = 4
    I: int = 3  # noqa: E741
    H: int = 5
    upstream: str = "random"
    state: str = "random"
    bias: str = "random"
    weights: str = "random"
    calls: int = 2
    compared: str = "all"
    tolerance: float = TOLERANCE

    def weakened(self, weak_test: str) -> Chain | None:
        changes: dict[str, dict[str, Any]] = {
            "ones": {"upstream": "ones"},
            "T=1": {"T": 1},
            "h₀=0": {"state": "zero"},
            "b=0": {"bias": "zero"},
            "equal": {"weights": "equal"},
            "I=H=B": {"I": 4, "H": 4, "B": 4},
            "B=1": {"B": 1},
            "1 call": {"calls": 1},
            "weights": {"compared": "weights"},
            "1e-2": {"tolerance": LOOSE},
        }
        changes["all"] = {k: v for change in changes.values() for k, v in change.items()} | {"I": 1, "H": 1}
        return replace(self, **changes[weak_test]) if weak_test in changes else None

    def parameters(self) -> dict[str, np.ndarray]:
        kind, _, options = CELLS[self.cell]
        rng, state_dict = np.random.default_rng(0), kind(self.I, self.H, **options).state_dict()
        for name, array in state_dict.items():
            zero = self.bias == "zero" and "bias" in name
            drawn = np.full(array.shape, 0.25) if self.weights == "equal" else 0.5 * rng.normal(size=array.shape)
            state_dict[name] = 0 * drawn if zero else drawn
        return state_dict

    def run(self, ours: bool) -> Events:
        kind, theirs, options = CELLS[self.cell]
        module: Any = kind(self.I, self.H, dtype="float64", **options)
        module.load_state_dict(self.parameters())
        module = module if ours else twin(module)
        assert ours or isinstance(module, theirs)
        rng = np.random.default_rng(1)

        def leaf(*shape: int) -> Any:
            array = rng.normal(size=shape)
            return numpy_rnn.Tensor(array, True) if ours else torch.from_numpy(array).requires_grad_()

        for k in range(self.calls):
            x = [leaf(self.B, self.I) for _ in range(self.T)]
            states = [leaf(self.B, self.H) for _ in range(2 if self.cell == "lstm" else 1)]
            state: Any = None if self.state == "zero" else states[0] if len(states) == 1 else tuple(states)
            read = []
            for x_t in x:
                state = module(x_t, state)
                read += state if isinstance(state, tuple) else (state,)
            up = [np.ones(s.shape) if self.upstream == "ones" else rng.normal(size=tuple(s.shape)) for s in read]
            if ours:
                numpy_rnn.backward(read, up)
            else:
                torch.autograd.backward(read, [torch.from_numpy(d) for d in up])
            if self.compared == "all":
                yield from [(f"state {i} of call {k}", array_of(s)) for i, s in enumerate(read)]
                leaves = {"x": x, "state": states if self.state == "random" else []}
                yield from [
                    (f"d{n} {i} of {k}", array_of(t.grad)) for n, ts in leaves.items() for i, t in enumerate(ts)
                ]
            named = [(name, p) for name, p in module.named_parameters() if self.compared == "all" or "weight" in name]
            yield from [(f"d{name} after {k}", array_of(p.grad)) for name, p in named]

    def expected(self) -> dict[str, Any]:
        return in_torch(self)

    def found(self) -> Events:
        return self.run(ours=True)

    def falls(self) -> bool:
        """Ten steps of SGD towards a target for the last state."""
        kind, _, options = CELLS[self.cell]
        module: Any = kind(self.I, self.H, dtype="float64", **options)
        module.load_state_dict(self.parameters())
        rng, optimizer, losses = np.random.default_rng(2), numpy_rnn.SGD(module.parameters(), lr=0.05), []
        x, target = rng.normal(size=(self.T, self.B, self.I)), 0.5 * rng.normal(size=(self.B, self.H))
        for _ in range(10):
            state: Any = None
            optimizer.zero_grad()
            for x_t in x:
                state = module(x_t, state)
            loss = numpy_rnn.mse_loss(state[0] if isinstance(state, tuple) else state, target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses[-1] < losses[0]


@cache
def in_torch(case: Chain) -> dict[str, Any]:
    """PyTorch's numbers."""
    return dict(case.run(ours=False))
