"""The tasks that come with the library."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.resources import files

import numpy as np

from numpy_rnn.tasks.task import Task, characters, one_step_ahead


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
    goals = {"1921-1955": 0.2, "1956-1979": 0.7}
    return one_step_ahead("sunspots", series, steps(1701, 1920).stop, spans, defaults={}, goals=goals)


def sine() -> Task:
    """A sine of about 25 samples a period: from the samples up to t, predict sample t + 1.

    Trained on 200 steps and tested on the 100 that follow. The period, 8π samples, is no whole number, so no
    value comes again.
    """
    spans, goals = {"201-300": slice(200, 300)}, {"201-300": 0.01}
    return one_step_ahead("sine", np.sin(np.arange(301.0) / 4), 200, spans, defaults={}, goals=goals)


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
        goals={"400 sequences": 0.01},
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
        goals={"400 sequences": 0.1},
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
        return characters("text", file.read(), streams=16, goals={"400 characters": 2.5})


TASKS: dict[str, Callable[[], Task]] = {
    "sunspots": sunspots,
    "article": article,
    "sine": sine,
    "adding": adding,
    "copy": copy,
    "text": text,
}
