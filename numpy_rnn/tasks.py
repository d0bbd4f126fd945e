"""What the networks learn: series to predict one step ahead, and how a trained model is judged on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.modules.module import Module, Seed
from numpy_rnn.modules.sequence_model import SequenceModel
from numpy_rnn.typing import Array


@dataclass(frozen=True)
class Score:
    """How well one test span was predicted; both errors are average relative variances, see ``Task.score``."""

    span: str
    error: float  # the model's
    persistence: float  # of "the next value is this one"


@dataclass(frozen=True, eq=False)
class Task:
    """A sequence to learn: ``targets[t]`` is what the model should answer at step t, after ``inputs[: t + 1]``.

    >>> task = load("sunspots")
    >>> task.x.shape, task.y.shape, list(task.spans)
    ((220, 1, 1), (220, 1, 1), ['1921-1955', '1956-1979'])

    ``inputs`` (T, B, I) and ``targets`` (T, B, K) are float64 and hold the training steps, then the test steps.
    """

    name: str
    inputs: Array  # (T, B, I)
    targets: Array  # (T, B, K)
    train_steps: int  # how many of the T steps are trained on
    spans: Mapping[str, slice]  # the steps of each test span
    variance: float  # the denominator of the average relative variance
    defaults: Mapping[str, Any]  # settings that differ for this task from those of ``rnn-parity``
    head: bool = True  # whether a linear layer reads the prediction off the hidden state

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
        dtype: DTypeLike = np.float64,
        rng: Seed = None,
    ) -> Module:
        """Return a new network of this task's sizes: a ``SequenceModel``, without a head the recurrent module alone.

        >>> load("sine").model("rnn", 4, rng=0)
        SequenceModel(rnn=RNN(1, 4), linear=Linear(4, 1))
        >>> load("article").model("rnn", 1, rng=0)
        RNN(1, 1)

        Arguments as in ``SequenceModel``. Raises ``ValueError`` for an unknown cell, a size out of range, and without a
        head for a hidden size other than K.
        """
        input_size, output_size = self.inputs.shape[2], self.targets.shape[2]
        if not self.head and hidden_size != output_size:
            raise ValueError(
                f"hidden_size must be {output_size} for task {self.name}, "
                f"whose hidden state is the prediction itself, got {hidden_size}"
            )
        model = SequenceModel(
            cell, input_size, hidden_size, output_size, num_layers, dropout=dropout, dtype=dtype, rng=rng
        )
        return model if self.head else model.rnn

    def score(self, predictions: Array) -> tuple[Score, ...]:
        """Judge ``predictions`` (T, B, K), a model's outputs over the whole of ``inputs``, on each test span.

        >>> task = load("sunspots")
        >>> [(score.span, round(score.error, 4)) for score in task.score(task.targets)]
        [('1921-1955', 0.0), ('1956-1979', 0.0)]

        The state has then seen everything that precedes a span. With n targets y in the span and predictions p the
        average relative variance is

            ARV = (1/n) Σ (p - y)² / variance

        A perfect prediction has 0; 1 is as far off as the whole series is from its mean. Persistence is the same
        figure for p = the step's input: "the next value is this one".

        Raises ``ValueError`` for predictions of another shape.
        """
        if predictions.shape != self.targets.shape:
            raise ValueError(f"predictions must be (T, B, K) = {self.targets.shape}, got {predictions.shape}")

        def relative_variance(answers: Array, steps: slice) -> float:
            with np.errstate(over="ignore", invalid="ignore"):  # a diverged model scores inf or nan
                error = np.mean((answers[steps].astype(np.float64) - self.targets[steps]) ** 2)
            return float(error / self.variance)

        return tuple(
            Score(span, relative_variance(predictions, steps), relative_variance(self.inputs, steps))
            for span, steps in self.spans.items()
        )


def article() -> Task:
    """Five numbers and their doubles, x = 1..5 and y = 2..10, in windows of one step.

    The hidden state of an RNN(1, 1) is the prediction, so it cannot pass 1 and the loss stays large: an example of the
    loop over windows, not of learning. It has no test span.
    """
    x = np.arange(1.0, 6.0).reshape(-1, 1, 1)
    defaults = {"hidden": 1, "window": 1, "optimizer": "adadelta", "lr": 0.01}
    return Task("article", x, 2 * x, len(x), {}, float(np.var(2 * x)), defaults, head=False)


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
    return Task(name, sequence[:-1], sequence[1:], train_steps, spans, float(series.var()), {})


TASKS: dict[str, Callable[[], Task]] = {"sunspots": sunspots, "article": article, "sine": sine}


def load(name: str) -> Task:
    """Return the task of that name.

    Raises ``ValueError`` for an unknown one.
    """
    if name not in TASKS:
        raise ValueError(f"name must be one of {', '.join(TASKS)}, got {name!r}")
    return TASKS[name]()
