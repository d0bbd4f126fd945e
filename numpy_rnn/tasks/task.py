"""What a task is: a sequence to learn, the model that fits it, and how a trained one is judged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.losses import cross_entropy
from numpy_rnn.modules.module import Module, Seed
from numpy_rnn.modules.sequence_model import SequenceModel
from numpy_rnn.typing import Array


@dataclass(frozen=True)
class Score:
    """How well one test span was predicted, in the task's measure."""

    span: str
    error: float  # the model's
    baseline: float  # of a forecast that has learnt nothing, see ``Task.baseline``
    target: float | None = None  # an error that the default settings get below, whatever the seed


@dataclass(frozen=True, eq=False)
class Task:
    """A sequence to learn: ``targets[t]`` is what the model should answer at step t, after ``inputs[: t + 1]``.

    >>> from numpy_rnn.tasks import load
    >>> task = load("sunspots")
    >>> task.x.shape, task.y.shape, list(task.spans)
    ((220, 1, 1), (220, 1, 1), ['1921-1955', '1956-1979'])

    ``inputs`` (T, B, I) and ``targets`` (T, B, K) are float64, or for symbols both signed whole numbers (T, B) below
    ``symbols``, and hold the training steps, then the test steps. One's own is made from such arrays with all fields up
    to ``defaults``, which may be an empty dict.
    """

    name: str
    inputs: Array  # (T, B, I), or symbols (T, B)
    targets: Array  # (T, B, K), or symbols (T, B)
    train_steps: int  # how many of the T steps are trained on
    spans: Mapping[str, slice]  # the steps of each test span
    baselines: Mapping[str, float]  # the error of the baseline on each
    defaults: Mapping[str, Any]  # settings that differ for this task from those of ``rnn-parity``
    scale: float = 1.0  # what squared errors are divided by
    head: bool = True  # whether a linear layer reads the prediction off the hidden state
    loss: str = "mse"  # or "cross_entropy" between the symbols and the outputs as logits
    measure: str = "average relative variance"
    baseline: str = "persistence"  # what the baseline is called
    goals: Mapping[str, float] = field(default_factory=dict)  # each span's ``Score.target``
    symbols: int | None = None
    length: int | None = None  # sequences of so many steps, each from the zero state
    answer: int | None = None  # the last steps of a sequence that count; None for all
    alphabet: str = ""  # the symbols of a text
    source: Mapping[str, Any] = field(default_factory=dict)  # the arguments of ``load`` that give this task again
    note: str = ""  # what is in the user's file

    def __post_init__(self) -> None:
        for array in (self.inputs, self.targets):
            array.flags.writeable = False

    @property
    def x(self) -> Array:
        """The inputs to train on, (train_steps, B, I)."""
        return self.inputs[: self.train_steps]

    @property
    def y(self) -> Array:
        """The targets to train on, (train_steps, B, K)."""
        return self.targets[: self.train_steps]

    def model(
        self,
        cell: str,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bidirectional: bool = False,
        proj_size: int = 0,
        dropout: float = 0.0,
        embedding: int | None = None,
        dtype: DTypeLike = np.float64,
        rng: Seed = None,
    ) -> Module:
        """Return a new network of this task's sizes: a ``SequenceModel``, without a head the recurrent module alone.

        >>> from numpy_rnn.tasks import load
        >>> load("sine").model("rnn", 4, rng=0)
        SequenceModel(rnn=RNN(1, 4), linear=Linear(4, 1))
        >>> load("article").model("rnn", 1, rng=0)
        RNN(1, 1)

        Arguments as in ``SequenceModel``; ``embedding`` is the size of the vectors that stand for symbols, by default
        as many as there are symbols, at most 64. Raises ``ValueError`` for an unknown cell, a size out of range, an
        embedding where there are no symbols, a projection of what is no LSTM, and without a head for an output of
        another size than K.
        """
        if self.symbols is None and embedding is not None:
            raise ValueError(f"embedding must be None for task {self.name}, which has numbers, no symbols")
        input_size = self.inputs.shape[2] if self.symbols is None else embedding or min(self.symbols, 64)
        output_size = self.targets.shape[2] if self.symbols is None else self.symbols
        if not self.head:
            itself = f"for task {self.name}, whose hidden state is the prediction itself"
            if bidirectional:
                raise ValueError(f"bidirectional must be False {itself}")
            if (proj_size or hidden_size) != output_size:
                given = "proj_size" if proj_size else "hidden_size"
                raise ValueError(f"{given} must be {output_size} {itself}, got {proj_size or hidden_size}")
        model = SequenceModel(
            cell,
            input_size,
            hidden_size,
            output_size,
            num_layers,
            bidirectional,
            dropout,
            self.symbols,
            proj_size,
            dtype=dtype,
            rng=rng,
        )
        return model if self.head else model.rnn

    def score(self, predictions: Array | Iterable[Array]) -> tuple[Score, ...]:
        """Judge ``predictions`` (T, B, K), a model's outputs over the whole of ``inputs``, on each test span.

        >>> from numpy_rnn.tasks import load
        >>> task = load("sunspots")
        >>> [(score.span, round(score.error, 4)) for score in task.score(task.targets)]
        [('1921-1955', 0.0), ('1956-1979', 0.0)]

        A long series may come in parts, each of some steps, one after the other. The state has then seen everything
        that precedes a span. With the n targets y of the span that count and predictions p the error is
        (1/n) Σ (p - y)² / scale, or for symbols the cross entropy in nats. With the variance of the whole series as the
        scale it is the average relative variance: a perfect prediction has 0; 1 is as far off as the whole series is
        from its mean. Persistence is the same figure for p = the step's input: "the next value is this one".

        Raises ``ValueError`` for predictions of another shape.
        """
        expected = self.targets.shape if self.symbols is None else (*self.targets.shape, self.symbols)
        errors, counts = dict.fromkeys(self.spans, 0.0), dict.fromkeys(self.spans, 0)
        came: tuple[int, ...] = (0,)
        for part in [predictions] if isinstance(predictions, np.ndarray) else predictions:
            start, came = came[0], (came[0] + len(part), *part.shape[1:])
            if came[1:] != expected[1:] or came[0] > expected[0]:
                break
            for span, within in self.spans.items():
                counted = np.arange(max(within.start, start), min(within.stop, came[0]))
                if self.length is not None and self.answer is not None:
                    counted = counted[counted % self.length >= self.length - self.answer]
                errors[span] += self._error(part[counted - start], self.targets[counted])
                counts[span] += self.targets[counted].size
        if came != expected:
            raise ValueError(f"predictions must be (T, B, K) = {expected}, got {came}")
        return tuple(
            Score(span, errors[span] / counts[span], self.baselines[span], self.goals.get(span)) for span in self.spans
        )

    def _error(self, answers: Array, targets: Array) -> float:
        """Return the sum of the errors."""
        if not targets.size:
            return 0.0
        answers = answers.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # a diverged model scores inf or nan
            if self.symbols is None:
                return float(np.sum((answers - targets) ** 2) / self.scale)
            rows = answers.reshape(-1, self.symbols), targets.reshape(-1)
            return float(cross_entropy(*rows, reduction="sum").item())

    def digest(self) -> str:
        """Return the SHA-256 of all that is learnt and tested on: equal for equal data, wherever they come from.

        >>> from numpy_rnn.tasks import load
        >>> load("sine").digest() == load("sine").digest() != load("sunspots").digest()
        True
        """
        sha = hashlib.sha256(repr((self.train_steps, self.symbols, self.alphabet)).encode())
        for array in (self.inputs, self.targets):
            sha.update(repr(array.shape).encode())
            wide = np.int64 if array.dtype.kind == "i" else np.float64
            for part in parts(array):
                sha.update(np.ascontiguousarray(part, wide).data)
        return sha.hexdigest()


def parts(array: Array, size: int = 2**17) -> Iterable[Array]:
    """Return the array (T, ...) cut into runs of steps of about ``size`` entries, as views.

    >>> [len(part) for part in parts(np.zeros((7, 2)), 6)]
    [3, 3, 1]
    """
    steps = max(size // max(array[0].size, 1), 1)
    return (array[start : start + steps] for start in range(0, len(array), steps))


def cut(steps: int, split: float) -> int:
    """Return how many of so many steps are trained on: the share ``split``, at least 1, and 1 is left to test on."""
    return min(max(round(split * steps), 1), steps - 1)


def affordable(steps: int, window: int, epochs: int) -> dict[str, Any]:
    """Return the defaults for a series of so many steps: the usual ones, for a long series fewer updates.

    >>> affordable(220, 20, 30), affordable(10_000, 20, 30), affordable(10**7, 20, 30)
    ({'window': 20, 'epochs': 30}, {'window': 20, 'epochs': 2}, {'window': 200, 'epochs': 1})

    The window grows to a thousandth of the series, up to 200 steps; then the epochs are as many as make no more than
    1,000 updates, at least 1.
    """
    window = max(window, min(steps // 1000, 200))
    return {"window": window, "epochs": max(1, min(epochs, 1000 // -(-steps // window)))}


def one_step_ahead(name: str, series: Array, train_steps: int, spans: Mapping[str, slice], **fields: Any) -> Task:
    """Return the task of predicting the next number of a series from those up to it; ``fields`` are more of ``Task``.

    >>> one_step_ahead("ramp", np.arange(9.0), 6, {"end": slice(6, 8)}, defaults={}).baselines
    {'end': 0.15}
    """
    sequence = series.reshape(-1, 1, 1)  # (T + 1, 1, 1)
    variance = float(series.var())
    x, y = sequence[:-1], sequence[1:]
    baselines = {span: float(np.mean((x[steps] - y[steps]) ** 2) / variance) for span, steps in spans.items()}
    return Task(name, x, y, train_steps, spans, baselines, scale=variance, **fields)


def next_symbol(name: str, inputs: Array, targets: Array, train_steps: int, span: str, **fields: Any) -> Task:
    """Return the task of answering the symbols ``targets`` (T, B) beside the frequencies of the training steps.

    >>> task = next_symbol("same", *np.zeros((2, 4, 1), int), 3, "end", symbols=2, defaults={})
    >>> round(task.baselines["end"], 3)  # a symbol seen three times and one never: (3 + 1) / (3 + 2)
    0.223
    """
    test = slice(train_steps, len(targets))
    seen, asked = np.zeros((2, fields["symbols"]), int)  # how often each symbol comes
    for counts, steps in ((seen, slice(train_steps)), (asked, test)):
        for part in parts(targets[steps]):
            counts += np.bincount(part.ravel(), minlength=len(counts))
    shares = (seen + 1.0) / (seen + 1.0).sum()  # so that none is impossible
    frequencies = float(-(asked * np.log(shares)).sum() / asked.sum())
    return Task(
        name,
        inputs,
        targets,
        train_steps,
        {span: test},
        {span: frequencies},
        loss="cross_entropy",
        measure="cross entropy in nats",
        baseline="frequencies",
        **fields,
    )


def characters(
    name: str, text: str | Iterable[str], streams: int | None = None, split: float = 0.9, **fields: Any
) -> Task:
    """Return the task of predicting a text's next character, cut into so many parallel streams.

    >>> task = characters("abc", "abcabcabcabcabcabcabc", 2)
    >>> task.inputs.shape, task.alphabet, task.train_steps
    ((10, 2), 'abc', 9)

    The text may come in pieces, and is kept in one, two or four bytes a character. The share ``split`` of each stream
    is trained on. By default a stream has at least 250 characters, and there are at most 64. ``fields`` are more of
    ``Task``.

    Raises ``ValueError`` for a text that leaves a stream fewer than 2 steps, or that has only one character.
    """
    codes, alphabet = _encoded([text] if isinstance(text, str) else text)
    streams = max(1, min(64, len(codes) // 250)) if streams is None else streams
    steps = (len(codes) - 1) // streams
    if steps < 2:
        raise ValueError(f"text must have at least {2 * streams + 1} characters, got {len(codes)}")
    if len(alphabet) < 2:
        raise ValueError(f"text must have characters that differ, got {len(codes)} that are all {alphabet!r}")
    inputs, targets = (
        part.reshape(streams, steps).T for part in (codes[: steps * streams], codes[1:][: steps * streams])
    )
    train_steps = cut(steps, split)
    defaults = {"cell": "gru", "hidden": 32, "optimizer": "adam", "lr": 0.01, **affordable(train_steps, 25, 15)}
    span = f"{(steps - train_steps) * streams} characters"
    fields = {"symbols": len(alphabet), "alphabet": alphabet, "defaults": defaults, **fields}
    return next_symbol(name, inputs, targets, train_steps, span, **fields)


def _encoded(pieces: Iterable[str]) -> tuple[Array, str]:
    """Return the characters' places in the alphabet, in the smallest dtype that holds them, and the alphabet."""
    places = np.full(0x110000, -1, np.int32)  # of every character that Unicode has
    found: list[int] = []
    coded = []
    for piece in pieces:
        points = np.frombuffer(piece.encode("utf-32-le"), "<u4")
        new = np.unique(points[places[points] < 0]).tolist()
        places[new] = range(len(found), len(found) + len(new))
        found += new
        coded.append(places[points].astype(np.min_scalar_type(-max(len(found), 1))))
    codes = np.concatenate(coded or [np.zeros(0, np.int8)])
    coded.clear()
    ranks = np.argsort(np.argsort(found)).astype(codes.dtype)  # from the order of appearance to that of the alphabet
    for start in range(0, len(codes), 2**20):
        codes[start : start + 2**20] = ranks[codes[start : start + 2**20]]
    return codes, "".join(map(chr, sorted(found)))
