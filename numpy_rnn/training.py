"""One training loop for both libraries: windows of a sequence, a carry between them, one record a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

import numpy_rnn
from numpy_rnn.typing import Array

CARRIES = ("detach", "reset", "full")


@dataclass(frozen=True)
class Backend:
    """The few words in which the two libraries differ; everything else in ``train`` is spoken by both."""

    name: str
    tensor: Callable[[Array], Any]
    array: Callable[[Any], Array]
    mse_loss: Callable[[Any, Any], Any]
    backward: Callable[[Any, Any], None]  # from several tensors at once, with their upstream gradients
    total_norm: Callable[[Iterable[Any]], float]  # of the parameters' gradients
    clip_grad_norm_: Callable[[Iterable[Any], float], float]
    no_grad: Callable[[], AbstractContextManager[Any]]
    optimizers: Mapping[str, Callable[..., Any]]


NUMPY = Backend(
    name="numpy",
    tensor=numpy_rnn.Tensor,
    array=lambda tensor: tensor.numpy(),
    mse_loss=numpy_rnn.mse_loss,
    backward=numpy_rnn.backward,
    total_norm=lambda parameters: numpy_rnn.get_total_norm(p.grad for p in parameters if p.grad is not None),
    clip_grad_norm_=numpy_rnn.clip_grad_norm_,
    no_grad=numpy_rnn.no_grad,
    optimizers={"adadelta": numpy_rnn.Adadelta, "sgd": numpy_rnn.SGD},
)


@dataclass(frozen=True)
class Record:
    """One optimizer step."""

    epoch: int  # from 1
    step: int  # from 1, over all epochs
    length: int  # time steps that the loss averages over
    loss: float  # before the step
    grad_norm: float  # 2-norm of all gradients together, before clipping


def train(
    model: Any,
    optimizer: Any,
    x: Array,
    y: Array,
    backend: Backend = NUMPY,
    *,
    window: int,
    carry: str = "detach",
    epochs: int = 1,
    clip: float | None = None,
) -> Iterator[Record]:
    """Train on one sequence and yield a ``Record`` for each optimizer step, as it is made.

    >>> model = numpy_rnn.SequenceModel("rnn", 1, 4, 1, dtype="float64", rng=0)
    >>> x = np.sin(np.arange(26.0)).reshape(26, 1, 1)
    >>> optimizer = numpy_rnn.SGD(model.parameters(), lr=0.1)
    >>> [record.length for record in train(model, optimizer, x[:-1], x[1:], window=10)]
    [10, 10, 5]

    Arguments: ``model(input, state)`` returns ``(output, state)``; ``x`` (T, B, I) and ``y`` (T, B, O), of the model's
    dtype, are cut into windows of ``window`` steps, and a shorter last one is kept. Each epoch starts from the zero
    state. ``carry`` says what happens to the state at a window's end: "detach" (its value goes on, the gradient stops),
    "reset" (zeros), "full" (the gradient flows on through all windows: one step and one record an epoch, and the loss
    is Σ length * loss / Σ length over the windows). ``clip`` bounds the total norm of the gradients.

    Raises ``ValueError`` for an argument out of range.
    """
    if carry not in CARRIES:
        raise ValueError(f"carry must be one of {', '.join(CARRIES)}, got {carry!r}")
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise ValueError(f"window must be a whole number of at least 1, got {window!r}")
    if len(x) != len(y) or len(x) == 0:
        raise ValueError(f"x and y must have the same number of time steps, at least 1, got {len(x)} and {len(y)}")
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise ValueError(f"epochs must be a whole number of at least 1, got {epochs!r}")
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be above 0 or None, got {clip!r}")
    starts = range(0, len(x), window)
    inputs = [backend.tensor(x[start : start + window]) for start in starts]
    targets = [backend.tensor(y[start : start + window]) for start in starts]
    return _train(model, optimizer, inputs, targets, y.dtype, backend, carry, epochs, clip)


def _train(
    model: Any,
    optimizer: Any,
    inputs: Sequence[Any],
    targets: Sequence[Any],
    dtype: Any,
    backend: Backend,
    carry: str,
    epochs: int,
    clip: float | None,
) -> Iterator[Record]:
    lengths = [len(target) for target in targets]
    groups = [list(range(len(inputs)))] if carry == "full" else [[i] for i in range(len(inputs))]
    parameters = list(model.parameters())
    step = 0
    for epoch in range(1, epochs + 1):
        state = None
        for group in groups:  # the windows between two optimizer steps
            optimizer.zero_grad()
            losses = []
            for i in group:
                output, state = model(inputs[i], state)
                losses.append(backend.mse_loss(output, targets[i]))
            total = sum(lengths[i] for i in group)
            weights = [lengths[i] / total for i in group]
            backend.backward(losses, [backend.tensor(np.array(w, dtype)) for w in weights])
            if clip is None:
                grad_norm = backend.total_norm(parameters)
            else:
                grad_norm = float(backend.clip_grad_norm_(parameters, clip))
            optimizer.step()
            state = None if carry == "reset" else _detach(state)  # (3.2) (3.3)
            step += 1
            loss = sum(w * loss.item() for loss, w in zip(losses, weights, strict=True))
            yield Record(epoch, step, total, loss, grad_norm)


def epoch_loss(records: Iterable[Record]) -> float:
    """Return Σ length * loss / Σ length."""
    records = list(records)
    return sum(r.length * r.loss for r in records) / sum(r.length for r in records)


def predict(model: Any, x: Array, backend: Backend = NUMPY) -> Array:
    """Return the model's output (T, B, O) over the whole of ``x`` from the zero state, in evaluation mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with backend.no_grad():
            output, _ = model(backend.tensor(x))
    finally:
        for module, training in modes:
            module.training = training
    return backend.array(output)


def _detach(state: Any) -> Any:
    """Detach the state, or each of a pair of states."""
    return tuple(_detach(s) for s in state) if isinstance(state, tuple) else state.detach()
