"""One training loop for both libraries: windows of a sequence, a carry between them, one record a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import numpy_rnn
from numpy_rnn.tensor import record
from numpy_rnn.typing import Array

PART = 2**14  # time steps times sequences of one forward call where no window is asked for
CARRIES = ("detach", "reset", "full")
STAGES = ("state in", "forward", "loss", "gradients", "clip", "update", "state out")


@dataclass(frozen=True)
class Backend:
    """The few words in which the two libraries differ; everything else in ``Loop`` is spoken by both."""

    name: str
    tensor: Callable[[Array], Any]
    array: Callable[[Any], Array]
    overwrite: Callable[[Any, Array], None]  # a tensor's memory, behind the back of its version and graph
    mse_loss: Callable[[Any, Any], Any]
    cross_entropy: Callable[[Any, Any], Any]  # of logits (T, B, K) and classes (T, B)
    backward: Callable[[Any, Any], None]  # from several tensors at once, with their upstream gradients
    total_norm: Callable[[Iterable[Any]], float]  # of the parameters' gradients
    clip_grad_norm_: Callable[[Iterable[Any], float], float]
    no_grad: Callable[[], AbstractContextManager[Any]]
    optimizers: Mapping[str, Callable[..., Any]]
    schedules: Mapping[str, Callable[..., Any]]

    def loss(self, name: str) -> Callable[[Any, Any], Any]:
        """Return the loss "mse" or "cross_entropy"."""
        return {"mse": self.mse_loss, "cross_entropy": self.cross_entropy}[name]


def _overwrite(tensor: numpy_rnn.Tensor, array: Array) -> None:
    tensor.data[...] = array


def _cross_entropy(logits: numpy_rnn.Tensor, classes: numpy_rnn.Tensor) -> numpy_rnn.Tensor:
    rows = [logits.data.reshape(-1, logits.shape[-1])]  # (T*B, K)
    (flat,) = record("flatten", rows, [logits], lambda d_output: [d_output.reshape(logits.shape)])
    return numpy_rnn.cross_entropy(flat, classes.data.reshape(-1))


def named(library: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the classes of these names, by their names in small letters."""
    return {name.lower(): getattr(library, name) for name in names}


OPTIMIZERS = ("Adadelta", "SGD", "Adagrad", "RMSprop", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD")
SCHEDULES = ("StepLR", "ExponentialLR", "CosineAnnealingLR", "ReduceLROnPlateau")

NUMPY = Backend(
    name="numpy",
    tensor=numpy_rnn.Tensor,
    array=lambda tensor: tensor.numpy(),
    overwrite=_overwrite,
    mse_loss=numpy_rnn.mse_loss,
    cross_entropy=_cross_entropy,
    backward=numpy_rnn.backward,
    total_norm=lambda parameters: numpy_rnn.get_total_norm(p.grad for p in parameters if p.grad is not None),
    clip_grad_norm_=numpy_rnn.clip_grad_norm_,
    no_grad=numpy_rnn.no_grad,
    optimizers=named(numpy_rnn, OPTIMIZERS),
    schedules=named(numpy_rnn.lr_scheduler, SCHEDULES),
)


@dataclass(frozen=True)
class Record:
    """One optimizer step."""

    epoch: int  # from 1
    step: int  # from 1, over all epochs
    length: int  # time steps that the loss averages over
    loss: float  # before the step
    grad_norm: float  # 2-norm of all gradients together, before clipping


Watch = Callable[[str, Callable[[], dict[str, Array]]], None]  # is told a stage, and how to read its tensors


def plain_call(model: Any, input: Any, state: Any, place: tuple[int, int]) -> tuple[Any, Any]:
    """Call the model as it is."""
    return model(input, state)  # type: ignore[no-any-return]


class Loop:
    """A training run that goes on one optimizer step at a time; all it knows between two steps is in its attributes.

    >>> model = numpy_rnn.SequenceModel("rnn", 1, 4, 1, dtype="float64", rng=0)
    >>> x = np.sin(np.arange(26.0)).reshape(26, 1, 1)
    >>> loop = Loop(model, numpy_rnn.SGD(model.parameters(), lr=0.1), x[:-1], x[1:], window=10, epochs=2)
    >>> loop.step().length, loop.position, loop.total
    (10, 1, 6)

    Arguments and errors as in ``train``. ``position`` counts the optimizer steps made, ``state`` is the carry between
    windows, None before the first. The methods without underscore are the rules of the loop, one each.
    """

    def __init__(
        self,
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
        loss: str = "mse",
        answer: int | None = None,
        scheduler: Any = None,
        call: Callable[[Any, Any, Any, tuple[int, int]], tuple[Any, Any]] = plain_call,
    ) -> None:
        _check(x, y, window, carry, epochs, clip)
        self.model, self.optimizer, self.backend, self.scheduler, self.call = model, optimizer, backend, scheduler, call
        self.carry, self.clip, self.answer, self.loss = carry, clip, answer, backend.loss(loss)
        self.x, self.y, self.window, self.windows = x, y, window, -(-len(x) // window)
        self.groups = 1 if carry == "full" else self.windows  # optimizer steps an epoch
        self.total = epochs * self.groups
        self.position = 0
        self.state: Any = None
        self.epoch_loss, self.epoch_length = 0.0, 0  # Σ length * loss and Σ length since the epoch began

    def __iter__(self) -> Iterator[Record]:
        while self.position < self.total:
            yield self.step()

    def step(self, watch: Watch | None = None) -> Record:
        """Make one optimizer step; ``watch`` is told every stage in the order of ``STAGES``."""
        tell: Watch = watch or (lambda stage, read: None)
        epoch, group = divmod(self.position, self.groups)
        self.optimizer.zero_grad()
        state = self.enter(group)
        tell("state in", lambda: {**self.weights(), **self._optimizer_state(), **self._carried(state)})
        windows = range(self.windows) if self.carry == "full" else range(group, group + 1)
        outputs, losses, lengths = [], [], []
        for i in windows:
            input, target = self.read(i)
            output, state = self.call(self.model, input, state, (epoch, i))
            outputs.append(output if self.answer is None else output[-self.answer :])
            losses.append(self.loss(outputs[-1], target))
            lengths.append(len(target))
        tell("forward", lambda: self._numbered("output", windows, outputs))
        shares = self.shares(lengths)
        loss = sum(share * loss.item() for share, loss in zip(shares, losses, strict=True))
        tell(
            "loss", lambda: {**(self._numbered("loss", windows, losses) if windows[1:] else {}), "loss": np.array(loss)}
        )
        dtype = self.backend.array(losses[0]).dtype
        self.backend.backward(losses, [self.backend.tensor(np.array(share, dtype)) for share in shares])
        tell("gradients", self._gradients)
        grad_norm = self.clip_gradients()
        tell("clip", lambda: {"total norm": np.array(grad_norm), **self._gradients()})
        self.optimizer.step()
        tell("update", lambda: {**self._rates(), **self._optimizer_state(), **self.weights()})
        self.state = self.leave(state)
        tell("state out", lambda: self._carried(self.state))
        self.position += 1
        self._count(sum(lengths), loss)
        return Record(epoch + 1, self.position, sum(lengths), loss, grad_norm)

    def read(self, window: int) -> tuple[Any, Any]:
        """Return the inputs and the targets of a window."""
        steps = slice(window * self.window, (window + 1) * self.window)
        targets = self.y[steps] if self.answer is None else self.y[steps][-self.answer :]
        return self.backend.tensor(_wide(self.x[steps])), self.backend.tensor(_wide(targets))

    def enter(self, group: int) -> Any:
        """Return the state that the first window of a group starts from: None, which is zeros, or what was left."""
        return None if group == 0 or self.carry == "reset" else self.state  # (3.3)

    def leave(self, state: Any) -> Any:
        """Return what is left of the state at a group's end."""
        return _detach(state)  # (3.2)

    def shares(self, lengths: Sequence[int]) -> list[float]:
        """Return how much the loss of each window of a group counts."""
        return [length / sum(lengths) for length in lengths]

    def clip_gradients(self) -> float:
        """Bound the total norm of the gradients; return what it was."""
        parameters = list(self.model.parameters())
        if self.clip is None:
            return self.backend.total_norm(parameters)
        return float(self.backend.clip_grad_norm_(parameters, self.clip))

    def _count(self, length: int, loss: float) -> None:
        """Add to the epoch's loss; at its end let the schedule set the learning rate."""
        self.epoch_loss, self.epoch_length = self.epoch_loss + length * loss, self.epoch_length + length
        if self.position % self.groups == 0:
            if self.scheduler is not None:
                mean = self.epoch_loss / self.epoch_length
                self.scheduler.step(*([mean] if type(self.scheduler).__name__ == "ReduceLROnPlateau" else []))
            self.epoch_loss, self.epoch_length = 0.0, 0

    def plain(self, value: Any) -> Array:
        """Return an entry of an optimizer's state, tensor, array or number, as an array of its own."""
        return self._array(value) if hasattr(value, "requires_grad") else np.array(value)

    def _array(self, tensor: Any) -> Array:
        return np.array(self.backend.array(tensor))

    def _numbered(self, name: str, windows: Sequence[int], tensors: Sequence[Any]) -> dict[str, Array]:
        return {f"{name} of window {i + 1}": self._array(tensor) for i, tensor in zip(windows, tensors, strict=True)}

    def weights(self) -> dict[str, Array]:
        """Return copies of the weights, by name."""
        return {name: self._array(parameter) for name, parameter in self.model.named_parameters()}

    def _gradients(self) -> dict[str, Array]:
        """Return the gradients that there are."""
        named = self.model.named_parameters()
        return {f"d {name}": self._array(p.grad) for name, p in named if p.grad is not None}

    def _rates(self) -> dict[str, Array]:
        return {f"lr of group {i}": np.array(float(g["lr"])) for i, g in enumerate(self.optimizer.param_groups)}

    def _optimizer_state(self) -> dict[str, Array]:
        names = [name for name, _ in self.model.named_parameters()]
        entries = self.optimizer.state_dict()["state"].items()
        return {
            f"{key} of {names[number]}": self.plain(value)
            for number, state in entries
            for key, value in state.items()
            if value is not None
        }

    def _carried(self, state: Any) -> dict[str, Array]:
        """Return the parts of the state, and for each whether a gradient would flow on through it."""
        parts = () if state is None else state if isinstance(state, tuple) else (state,)
        named = dict(zip(("h", "c"), parts, strict=False))
        flows = {f"{name}.requires_grad": np.array(float(part.requires_grad)) for name, part in named.items()}
        return {name: self._array(part) for name, part in named.items()} | flows


def train(model: Any, optimizer: Any, x: Array, y: Array, backend: Backend = NUMPY, **options: Any) -> Iterator[Record]:
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
    is Σ length * loss / Σ length over the windows). ``clip`` bounds the total norm of the gradients. ``loss`` is "mse",
    or "cross_entropy" of logits and classes ``y`` (T, B); with ``answer`` it reads only that many last steps of each
    window. ``scheduler`` is stepped after each epoch. ``call(model, input, state, (epoch, window))`` stands in for the
    plain call of the model, both counted from 0.

    Raises ``ValueError`` for an argument out of range.
    """
    return iter(Loop(model, optimizer, x, y, backend, **options))


def _check(x: Array, y: Array, window: int, carry: str, epochs: int, clip: float | None) -> None:
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


def epoch_loss(records: Iterable[Record]) -> float:
    """Return Σ length * loss / Σ length."""
    records = list(records)
    return sum(r.length * r.loss for r in records) / sum(r.length for r in records)


def predict(model: Any, x: Array, backend: Backend = NUMPY, window: int | None = None) -> Array:
    """Return the model's output (T, B, O) over the whole of ``x`` from the zero state, in evaluation mode.

    With ``window`` the state is zero again every so many steps.
    """
    return np.concatenate(list(predictions(model, x, backend, window)))


def predictions(model: Any, x: Array, backend: Backend = NUMPY, window: int | None = None) -> Iterator[Array]:
    """Yield what ``predict`` returns in parts, so that a long series needs no more memory than a short one.

    >>> model = numpy_rnn.SequenceModel("rnn", 1, 4, 1, rng=0)
    >>> [part.shape for part in predictions(model, np.ones((3 * PART, 1, 1), np.float32))] == 3 * [(PART, 1, 1)]
    True
    """
    steps = max(PART // x.shape[1], 1) if window is None else window
    state = None
    for start in range(0, len(x), steps):
        with _evaluating(model, backend):
            output, state = model(backend.tensor(_wide(x[start : start + steps])), None if window else state)
        yield backend.array(output)


def sample(model: Any, start: Array, draws: Array, backend: Backend = NUMPY) -> list[int]:
    """Return symbols that the model, whose outputs are logits, draws one after the other, each its next input.

    >>> model = numpy_rnn.SequenceModel("gru", 4, 8, 5, vocabulary=5, rng=0)
    >>> sample(model, np.array([0, 1, 2]), np.array([0.0, 0.5, 0.999]))
    [0, 2, 4]

    Arguments: ``start`` (T,), the symbols that it has read before; ``draws`` (N,) from U[0, 1): the same numbers give
    the same symbols, whatever the backend, but for rounding. Ends early where a logit is not finite.
    """
    symbols: list[int] = []
    following, state = start, None
    for draw in draws:
        with _evaluating(model, backend):
            output, state = model(backend.tensor(_wide(following.reshape(-1, 1))), state)
        logits = backend.array(output)[-1, 0].astype(np.float64)  # (K,)
        if not np.isfinite(logits).all():
            break
        sums = np.cumsum(np.exp(logits - logits.max()))  # (K,)
        symbols.append(min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(sums) - 1))
        following = np.array(symbols[-1:])
    return symbols


@contextmanager
def _evaluating(model: Any, backend: Backend) -> Iterator[None]:
    """Inside the block nothing is recorded or dropped."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with backend.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def _wide(array: Array) -> Array:
    """Return whole numbers in the dtype that PyTorch's losses ask for, anything else as it is."""
    return np.ascontiguousarray(array, np.int64) if array.dtype.kind == "i" else array


def _detach(state: Any) -> Any:
    """Detach the state, or each of a pair of states."""
    return tuple(_detach(s) for s in state) if isinstance(state, tuple) else state.detach()
