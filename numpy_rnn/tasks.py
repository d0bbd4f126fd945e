"""What the networks learn: series to predict one step ahead, and how a trained model is judged on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
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


@dataclass(frozen=True, eq=False)
class Task:
    """A sequence to learn: ``targets[t]`` is what the model should answer at step t, after ``inputs[: t + 1]``.

    >>> task = load("sunspots")
    >>> task.x.shape, task.y.shape, list(task.spans)
    ((220, 1, 1), (220, 1, 1), ['1921-1955', '1956-1979'])

    ``inputs`` (T, B, I) and ``targets`` (T, B, K) are float64, or for symbols both whole numbers (T, B) below
    ``symbols``, and hold the training steps, then the test steps.
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
    target: float | None = None  # an error that the default settings get below
    symbols: int | None = None
    length: int | None = None  # sequences of so many steps, each from the zero state
    answer: int | None = None  # the last steps of a sequence that count; None for all
    alphabet: str = ""  # the symbols of a text

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
        dropout: float = 0.0,
        embedding: int | None = None,
        dtype: DTypeLike = np.float64,
        rng: Seed = None,
    ) -> Module:
        """Return a new network of this task's sizes: a ``SequenceModel``, without a head the recurrent module alone.

        >>> load("sine").model("rnn", 4, rng=0)
        SequenceModel(rnn=RNN(1, 4), linear=Linear(4, 1))
        >>> load("article").model("rnn", 1, rng=0)
        RNN(1, 1)

        Arguments as in ``SequenceModel``; ``embedding`` is the size of the vectors that stand for symbols. Raises
        ``ValueError`` for an unknown cell, a size out of range, an embedding where there are no symbols, and without a
        head for a hidden size other than K.
        """
        if self.symbols is None and embedding is not None:
            raise ValueError(f"embedding must be None for task {self.name}, which has numbers, no symbols")
        input_size = self.inputs.shape[2] if self.symbols is None else embedding or self.symbols
        output_size = self.targets.shape[2] if self.symbols is None else self.symbols
        if not self.head and hidden_size != output_size:
            raise ValueError(
                f"hidden_size must be {output_size} for task {self.name}, "
                f"whose hidden state is the prediction itself, got {hidden_size}"
            )
        model = SequenceModel(
            cell,
            input_size,
            hidden_size,
            output_size,
            num_layers,
            dropout=dropout,
            vocabulary=self.symbols,
            dtype=dtype,
            rng=rng,
        )
        return model if self.head else model.rnn

    def score(self, predictions: Array) -> tuple[Score, ...]:
        """Judge ``predictions`` (T, B, K), a model's outputs over the whole of ``inputs``, on each test span.

        >>> task = load("sunspots")
        >>> [(score.span, round(score.error, 4)) for score in task.score(task.targets)]
        [('1921-1955', 0.0), ('1956-1979', 0.0)]

        The state has then seen everything that precedes a span. With the n targets y of the span that count and
        predictions p the error is (1/n) Σ (p - y)² / scale, or for symbols the cross entropy in nats. With the variance
        of the whole series as the scale it is the average relative variance: a perfect prediction has 0; 1 is as far
        off as the whole series is from its mean. Persistence is the same figure for p = the step's input: "the next
        value is this one".

        Raises ``ValueError`` for predictions of another shape.
        """
        expected = self.targets.shape if self.symbols is None else (*self.targets.shape, self.symbols)
        if predictions.shape != expected:
            raise ValueError(f"predictions must be (T, B, K) = {expected}, got {predictions.shape}")
        return tuple(
            Score(span, self._error(predictions, steps), self.baselines[span]) for span, steps in self.spans.items()
        )

    def _error(self, predictions: Array, steps: slice) -> float:
        counted = np.arange(len(self.targets))[steps]
        if self.length is not None and self.answer is not None:
            counted = counted[counted % self.length >= self.length - self.answer]
        answers, targets = predictions[counted].astype(np.float64), self.targets[counted]
        with np.errstate(over="ignore", invalid="ignore"):  # a diverged model scores inf or nan
            if self.symbols is None:
                return float(np.mean((answers - targets) ** 2) / self.scale)
            return float(cross_entropy(answers.reshape(-1, self.symbols), targets.reshape(-1)).item())


def article() -> Task:
    """Five numbers and their doubles, x = 1..5 and y = 2..10, in windows of one step.

    The hidden state of an RNN(1, 1) is the prediction, so it cannot pass 1 and the loss stays large: an example of the
    loop over windows, not of learning. It has no test span.
    """
    x = np.arange(1.0, 6.0).reshape(-1, 1, 1)
    defaults = {"hidden": 1, "window": 1, "optimizer": "adadelta", "lr": 0.01}
    return Task("article", x, 2 * x, len(x), {}, {}, defaults, head=False)


def sunspots() -> Task:
    """Yearly mean sunspot numbers: from the years up to t, predict year t + 1.

    Trained on the targets 1701-1920 and tested on 1921-1955 and 1956-1979, the usual split. Mean and standard deviation
    for the scaling are those of 1700-1920; the variance that errors are relative to is that of 1700-1979.
    """
    with files("numpy_rnn").joinpath("data/sunspots.csv").open(encoding="utf-8") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    years, numbers = table[table[:, 0] <= 1979].T
    known = numbers[years <= 1920]
    series = (numbers - known.mean()) / known.std()

    def steps(first: int, last: int) -> slice:
        """The steps whose targets are the years ``first`` to ``last``."""
        return slice(first - 1701, last - 1700)

    spans = {"1921-1955": steps(1921, 1955), "1956-1979": steps(1956, 1979)}
    return _one_step_ahead("sunspots", series, steps(1701, 1920).stop, spans)


def sine() -> Task:
    """A sine of about 25 samples a period: from the samples up to t, predict sample t + 1.

    Trained on 200 steps and tested on the 100 that follow. The period, 8π samples, is no whole number, so no
    value comes again.
    """
    return _one_step_ahead("sine", np.sin(np.arange(301.0) / 4), 200, {"201-300": slice(200, 300)})


def _one_step_ahead(name: str, series: Array, train_steps: int, spans: Mapping[str, slice]) -> Task:
    sequence = series.reshape(-1, 1, 1)  # (T + 1, 1, 1)
    variance = float(series.var())
    x, y = sequence[:-1], sequence[1:]
    baselines = {span: float(np.mean((x[steps] - y[steps]) ** 2) / variance) for span, steps in spans.items()}
    return Task(name, x, y, train_steps, spans, baselines, {}, variance)


def adding() -> Task:
    """Add the two marked ones of ten numbers: from pairs (number, mark), answer the sum at the end.

    Numbers from U(0, 1), one mark in each half; 2,000 sequences to train on, 400 to test on, 40 at a time. Who always
    answers 1 has the mean squared error 1/6, twice the variance of U(0, 1).

    Source: Hochreiter and Schmidhuber (1997), with longer sequences.
    """
    rng, length, B, batches = np.random.default_rng(0), 10, 40, 60
    inputs = np.zeros((batches, length, B, 2))
    inputs[..., 0] = rng.random((batches, length, B))
    for half in (0, length // 2):
        marked = half + rng.integers(length // 2, size=(batches, 1, B, 1))
        np.put_along_axis(inputs[..., 1:], marked, 1.0, axis=1)
    sums = (inputs[..., :1] * inputs[..., 1:]).sum(axis=1, keepdims=True)  # (batches, 1, B, 1)
    targets = np.broadcast_to(sums, (batches, length, B, 1)).reshape(-1, B, 1)
    return Task(
        "adding",
        inputs.reshape(-1, B, 2),
        targets,
        50 * length,
        {"400 sequences": slice(50 * length, batches * length)},
        {"400 sequences": 1 / 6},
        {"cell": "gru", "window": length, "carry": "reset", "optimizer": "adam", "lr": 0.01, "epochs": 6},
        measure="mean squared error",
        baseline="always 1",
        target=0.01,
        length=length,
        answer=1,
    )


def copy() -> Task:
    """Repeat three symbols of eight after five blanks: from what came, answer the symbols in their order.

    Sequences of 11 steps: three symbols, five blanks, three marks that ask for the answer, which alone counts; 2,000
    sequences to train on, 400 to test on, 40 at a time. Who guesses among the eight has a cross entropy of ln 8.

    Source: Hochreiter and Schmidhuber (1997), with longer delays.
    """
    rng, B, batches, kept, delay, blank, mark = np.random.default_rng(0), 40, 60, 3, 5, 8, 9
    length = 2 * kept + delay
    inputs = np.full((batches, length, B), blank)
    inputs[:, :kept] = rng.integers(8, size=(batches, kept, B))
    inputs[:, -kept:] = mark
    targets = np.full((batches, length, B), blank)
    targets[:, -kept:] = inputs[:, :kept]
    return Task(
        "copy",
        inputs.reshape(-1, B),
        targets.reshape(-1, B),
        50 * length,
        {"400 sequences": slice(50 * length, batches * length)},
        {"400 sequences": math.log(8)},
        {
            "cell": "gru",
            "hidden": 32,
            "window": length,
            "carry": "reset",
            "optimizer": "adam",
            "lr": 0.01,
            "epochs": 10,
        },
        loss="cross_entropy",
        measure="cross entropy in nats",
        baseline="guessing",
        target=0.1,
        symbols=10,
        length=length,
        answer=kept,
    )


def text() -> Task:
    """The beginning of Alice's Adventures in Wonderland, letter by letter: from what came, answer the next letter.

    Cut into 16 streams that are read side by side, as language models are trained; the last tenth of each stream is
    the test. The baseline answers every letter's frequency in the training streams.
    """
    with files("numpy_rnn").joinpath("data/alice.txt").open(encoding="utf-8") as file:
        return characters("text", file.read(), streams=16)


def characters(name: str, text: str, streams: int) -> Task:
    """Return the task of predicting a text's next character, cut into so many parallel streams.

    >>> task = characters("abc", "abcabcabcabcabcabcabc", 2)
    >>> task.inputs.shape, task.alphabet, task.train_steps
    ((10, 2), 'abc', 9)

    Raises ``ValueError`` for a text that leaves a stream fewer than 2 steps, or that has only one character.
    """
    alphabet = "".join(sorted(set(text)))
    steps = (len(text) - 1) // streams
    if steps < 2 or len(alphabet) < 2:
        raise ValueError(
            f"text must have at least {2 * streams + 1} characters, two of them different, got {len(text)}"
        )
    numbers = {letter: number for number, letter in enumerate(alphabet)}
    codes = np.array([numbers[letter] for letter in text[: steps * streams + 1]])
    inputs, targets = (part.reshape(streams, steps).T.copy() for part in (codes[:-1], codes[1:]))  # (T, B)
    train_steps = steps - max(steps // 10, 1)
    seen = np.bincount(targets[:train_steps].ravel(), minlength=len(alphabet)) + 1.0  # so that none is impossible
    test = slice(train_steps, steps)
    letters = float(-np.mean(np.log(seen / seen.sum())[targets[test]]))
    return Task(
        name,
        inputs,
        targets,
        train_steps,
        {"last tenth": test},
        {"last tenth": letters},
        {"cell": "gru", "hidden": 32, "window": 25, "optimizer": "adam", "lr": 0.01, "epochs": 15},
        loss="cross_entropy",
        measure="cross entropy in nats",
        baseline="frequencies",
        target=2.5 if name == "text" else None,
        symbols=len(alphabet),
        alphabet=alphabet,
    )


TASKS: dict[str, Callable[[], Task]] = {
    "sunspots": sunspots,
    "article": article,
    "sine": sine,
    "adding": adding,
    "copy": copy,
    "text": text,
}


def load(name: str) -> Task:
    """Return the task of that name.

    Raises ``ValueError`` for an unknown one.
    """
    if name not in TASKS:
        raise ValueError(f"name must be one of {', '.join(TASKS)}, got {name!r}")
    return TASKS[name]()
