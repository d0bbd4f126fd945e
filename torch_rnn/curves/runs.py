"""One training run on both backends in lockstep: same weights, same windows, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_rnn import tasks
from numpy_rnn.tasks import Score
from numpy_rnn.training import NUMPY, Record, predict, train
from torch_rnn.backend import TORCH
from torch_rnn.curves.verdict import Pair
from torch_rnn.twins import twin

BACKENDS = (NUMPY, TORCH)


@dataclass(frozen=True)
class Settings:
    """What decides a run; the names are those of the command's options."""

    task: str
    cell: str
    hidden: int
    layers: int
    window: int
    carry: str
    optimizer: str
    lr: float
    clip: float | None
    epochs: int
    dtype: str
    seed: int


class Run:
    """A model with weights drawn by NumPy from the seed, its twin, and what they did in training.

    >>> run = Run(Settings("sine", "rnn", 4, 1, 50, "detach", "sgd", 0.05, None, 2, "float64", 0))
    >>> len([pair for pair in run.train()]), run.total, len(run.pairs)
    (8, 8, 8)

    Raises ``ValueError`` for settings that the task, the model or the optimizer refuses.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.task = tasks.load(settings.task)
        model = self.task.model(
            settings.cell, settings.hidden, settings.layers, dtype=settings.dtype, rng=settings.seed
        )
        self.models: tuple[Any, Any] = (model, twin(model))
        self.pairs: list[Pair] = []
        windows = 1 if settings.carry == "full" else math.ceil(len(self.task.x) / settings.window)
        self.total = windows * settings.epochs  # steps

    def train(self) -> Iterator[Pair]:
        """Train both models and yield the records of each step, which are kept in ``pairs`` too."""
        numpy_records, torch_records = map(self._records, self.models, BACKENDS)
        for _ in range(self.total):
            with np.errstate(over="ignore", invalid="ignore"):  # losses that are not finite are the verdict's to name
                pair = next(numpy_records), next(torch_records)
            self.pairs.append(pair)
            yield pair

    def _records(self, model: Any, backend: Any) -> Iterator[Record]:
        s = self.settings
        optimizer = backend.optimizers[s.optimizer](model.parameters(), lr=s.lr)
        x, y = self.task.x.astype(s.dtype), self.task.y.astype(s.dtype)
        return train(model, optimizer, x, y, backend, window=s.window, carry=s.carry, epochs=s.epochs, clip=s.clip)

    def scores(self) -> list[tuple[Score, Score]]:
        """Return each test span's scores: NumPy's, PyTorch's."""
        inputs = self.task.inputs.astype(self.settings.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = [
                predict(model, inputs, backend) for model, backend in zip(self.models, BACKENDS, strict=True)
            ]
        numpy_scores, torch_scores = map(self.task.score, predictions)
        return list(zip(numpy_scores, torch_scores, strict=True))
