"""The article's training loop as an experiment: each part of it a parameter, the same loop for both libraries."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

import numpy_rnn
from numpy_rnn.modules.sequence_model import CELLS
from numpy_rnn.typing import Array
from torch_rnn.inplace.sides import Failure, NumpySide, Side

CARRIES = {
    "name": "h = h_next",
    "intermediate": "mid = h_next; h = mid",
    "clone": "h = h_next.clone()",
    "detach": "h = h_next.detach()",
    "detach dropped": "h_next.detach(); h = h_next",
    "data": "h = h_next.data",
    "reset rows": "h = h_next.detach(); h[:, 0] = 0",
    "detach h only": "h, c = h_next.detach(), c_next",
    "detach c only": "h, c = h_next, c_next.detach()",
}
LOSSES = {
    "window": "each window has a backward and an update of its own",
    "total": "the losses of some windows are added up: one backward, one update",
    "running": "the losses are added up from the start, and every window has a backward and an update",
}
UPDATES = {
    "optimizer": "optimizer.step()",
    "lr 0": "optimizer.step() with lr = 0",
    "no_grad": "with no_grad(): p.add_(p.grad, alpha=-lr)",
    "data": "p.data -= lr * p.grad, which no version counts",
    "view": "a raw array over the weight's memory is written to, which no version counts",
    "fused": "optimizer.step() with fused=True, which no version counts",
    "none": "no update",
}


@dataclass(frozen=True)
class Experiment:
    """The settings of one run; the defaults are the article's loop.

    ``updates_only`` and ``updates_but`` are beginnings of parameter names: which of them the update writes.
    """

    carry: str = "name"
    retain_graph: bool = True
    losses: str = "window"
    windows_per_step: int = 1  # for losses "total"
    update: str = "optimizer"
    optimizer: str = "adadelta"
    lr: float = 0.01
    updates_only: str = ""
    updates_but: str = ""
    window: int = 1  # T
    windows: int = 5
    cell: str = "rnn"
    num_layers: int = 1
    bidirectional: bool = False
    input_size: int = 1
    hidden_size: int = 1
    batch: int = 1
    learn_state: bool = False
    learn_input: bool = False
    head: bool = False
    loss_reads: str = "output"  # or "h_n"
    data: str = "article"  # or "random"
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        allowed = {
            "carry": CARRIES,
            "losses": LOSSES,
            "update": UPDATES,
            "cell": CELLS,
            "optimizer": ("adadelta", "sgd"),
            "loss_reads": ("output", "h_n"),
            "data": ("article", "random"),
            "dtype": ("float32", "float64"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} must be one of {', '.join(values)}, got {getattr(self, name)!r}")
        if self.carry in ("detach h only", "detach c only") and self.cell != "lstm":
            raise ValueError(f"carry must be another for cell {self.cell!r}, which has one state, got {self.carry!r}")
        if self.head and self.loss_reads == "h_n" and self.bidirectional:
            raise ValueError("loss_reads must be 'output' for a head over two directions, got 'h_n'")

    def model(self) -> numpy_rnn.SequenceModel:
        """The NumPy model, from the seed: a head is always there, and used if ``head``."""
        return numpy_rnn.SequenceModel(
            self.cell,
            self.input_size,
            self.hidden_size,
            1,
            self.num_layers,
            self.bidirectional,
            dtype=self.dtype,
            rng=self.seed,
        )

    def initial_states(self) -> list[Array]:
        """Zeros (L*D, B, H); for an LSTM two of them."""
        shape = (self.num_layers * (2 if self.bidirectional else 1), self.batch, self.hidden_size)
        return [np.zeros(shape, self.dtype) for _ in range(2 if self.cell == "lstm" else 1)]

    def arrays(self, i: int) -> tuple[Array, Array]:
        """Input (T, B, I) and target (1,), which fills the shape of the prediction, of window ``i``."""
        shape = (self.window, self.batch, self.input_size)
        if self.data == "article":
            return np.full(shape, i + 1, self.dtype), np.full(1, 2 * (i + 1), self.dtype)
        rng = np.random.default_rng([self.seed, i])
        return rng.normal(size=shape).astype(self.dtype), rng.normal(size=1).astype(self.dtype)

    def is_written(self, name: str) -> bool:
        """Whether the update writes the parameter of this name."""
        last = name.rpartition(".")[2]
        return last.startswith(self.updates_only) and not (self.updates_but and last.startswith(self.updates_but))


@dataclass(frozen=True)
class Window:
    """What one window did: its loss, gradients before the update, and versions before and after it."""

    loss: float
    gradients: dict[str, Array | None]
    weights: dict[str, Array]  # those that the window was computed with
    versions_before: dict[str, int]
    versions_after: dict[str, int]
    shares_memory: bool  # of the state that was carried on with the state that was left


@dataclass(frozen=True)
class Outcome:
    """What happened: every window that went through, and the failure, if one did not."""

    windows: list[Window] = field(default_factory=list)
    failure: Failure | None = None
    reads: list[str] = field(default_factory=list)  # by the last backward, in order, one after itself counts once

    @property
    def at(self) -> int | None:
        """The number of the window, from 0, whose backward failed."""
        return None if self.failure is None else len(self.windows)


def run(experiment: Experiment, side: Side) -> Outcome:
    """Run the loop on one library."""
    with side.recording():
        return _loop(experiment, side)


def _loop(e: Experiment, side: Side) -> Outcome:
    outcome = Outcome()
    model = side.model(e.model())
    parameters = {name: p for name, p in model.named_parameters() if e.head or name.startswith("rnn.")}
    written = [p for name, p in parameters.items() if e.is_written(name)]
    optimizer = side.optimizer(e.update, e.optimizer, written, e.lr)
    h = _packed([side.tensor(state, e.learn_state) for state in e.initial_states()])
    losses: list[Any] = []
    for i in range(e.windows):
        for parameter in parameters.values():
            parameter.grad = None
        weights = {name: side.live(p).copy() for name, p in parameters.items()}
        before = side.versions(parameters)
        loss, h_next = _forward(e, side, model, i, h)
        losses.append(loss)
        h = _carry(e.carry, h_next)
        gradients: dict[str, Array | None] = dict.fromkeys(parameters)
        if e.losses != "total" or (i + 1) % e.windows_per_step == 0:
            reads: list[str] = []
            with side.watch(parameters, reads):
                failure = side.backward(loss if e.losses == "window" else sum(losses[1:], losses[0]), e.retain_graph)
            outcome.reads[:] = [name for name, _ in groupby(reads)]  # PyTorch reads W_hh anew at each time step
            if failure is not None:
                return Outcome(outcome.windows, failure, outcome.reads)
            gradients = {name: side.gradient(p) for name, p in parameters.items()}
            side.update(e.update, optimizer, written, e.lr)
            losses = [] if e.losses == "total" else losses
        after, shared = side.versions(parameters), side.shares_memory(_states(h)[0], _states(h_next)[0])
        outcome.windows.append(Window(loss.item(), gradients, weights, before, after, shared))
    return outcome


def _forward(e: Experiment, side: Side, model: Any, i: int, h: Any) -> tuple[Any, Any]:
    """Run window ``i`` from the state ``h``: its loss, and the state that it leaves."""
    x, y = e.arrays(i)
    output, h_next = model.rnn(side.tensor(x, e.learn_input), h)
    prediction = output if e.loss_reads == "output" else _states(h_next)[0][-1]
    prediction = model.linear(prediction) if e.head else prediction
    target = np.broadcast_to(y, tuple(prediction.shape)).copy()
    return side.backend.mse_loss(prediction, side.tensor(target, False)), h_next


def true_gradients(experiment: Experiment, windows: list[Window]) -> dict[str, Array]:
    """Return what the last window's gradient would be had nothing been overwritten: (3.11), by parameter.

    Each of ``windows`` is computed again with the weights that it was computed with, in a model of its own, and the
    gradient of the last loss by all these models' weights is added up. NumPy alone.
    """
    e, side = experiment, NumpySide()
    models = [e.model() for _ in windows]
    h = _packed([side.tensor(state, False) for state in e.initial_states()])
    for i, (model, window) in enumerate(zip(models, windows, strict=True)):
        for name, p in model.named_parameters():
            p.data[...] = window.weights.get(name, p.data)
        loss, h = _forward(e, side, model, i, h)
    loss.backward()
    gradients = [{n: p.grad for n, p in model.named_parameters() if p.grad is not None} for model in models]
    names = [name for name in windows[-1].weights if any(name in g for g in gradients)]
    return {name: np.sum([g[name].data for g in gradients if name in g], axis=0) for name in names}


def _carry(carry: str, h_next: Any) -> Any:
    """What the next window starts from; each line stands in CARRIES as its reader would write it."""
    if carry in ("detach h only", "detach c only"):
        h, c = h_next
        return (h.detach(), c) if carry == "detach h only" else (h, c.detach())
    return _packed([_carried(carry, state) for state in _states(h_next)])


def _carried(carry: str, state: Any) -> Any:
    if carry == "clone":
        return state.clone()
    if carry == "detach":
        return state.detach()
    if carry == "data":
        return state.data
    if carry == "reset rows":
        state = state.detach()
        state[:, 0] = 0
    if carry == "detach dropped":
        state.detach()
    return state


def _states(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


def _packed(states: list[Any]) -> Any:
    return states[0] if len(states) == 1 else tuple(states)
