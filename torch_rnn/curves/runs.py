"""One training run on both backends in lockstep, same weights, same windows, and the control runs beside it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn import Module, tasks
from numpy_rnn.tasks import Score, Task
from numpy_rnn.training import NUMPY, Backend, Loop, Record, plain_call, predictions, sample
from numpy_rnn.typing import Array
from torch_rnn.backend import TORCH
from torch_rnn.dropout import next_dropout_masks, seeded
from torch_rnn.twins import twin

Pair = tuple[Record, Record]  # of one step: NumPy's, PyTorch's


@dataclass(frozen=True)
class Settings:
    """What decides a run, as plain values; the names are those of the command's options."""

    task: str | None  # None where the data are a file's
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
    torch_dtype: str | None = None  # PyTorch's, if it is another
    controls: int = 4  # of each backend
    dropout: float = 0.0
    embedding: int | None = None  # size of the vectors that stand for symbols; None: the task's own
    optimizer_settings: Mapping[str, Any] = field(default_factory=dict)
    schedule: str | None = None
    schedule_settings: Mapping[str, Any] = field(default_factory=dict)
    bidirectional: bool = False
    proj_size: int = 0  # 0: none
    csv: str | None = None  # absolute paths
    column: str | None = None
    text: str | None = None
    npz: str | None = None
    split: float | None = None  # the share that is trained on
    fill_missing: bool = False
    digest: str | None = None  # of the user's data, see ``Task.digest``; None: not looked at

    def __post_init__(self) -> None:
        least = {"hidden": 1, "layers": 1, "window": 1, "epochs": 1, "seed": 0, "controls": 0, "proj_size": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < bound:
                raise ValueError(f"{name} must be a whole number of at least {bound}, got {value!r}")
        for name, known in (("optimizer", NUMPY.optimizers), ("schedule", NUMPY.schedules)):
            value = getattr(self, name)
            if value not in known and (name, value) != ("schedule", None):
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        if not isinstance(self.bidirectional, bool):
            raise ValueError(f"bidirectional must be True or False, got {self.bidirectional!r}")
        for name in ("lr", "clip"):
            value = getattr(self, name)
            if (name, value) != ("clip", None) and not (isinstance(value, Real) and 0 < float(value) < math.inf):
                raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
        for name in ("dtype", "torch_dtype"):
            value = getattr(self, name)
            if (name, value) != ("torch_dtype", None):
                object.__setattr__(self, name, dtype_name(name, value))

    @property
    def data(self) -> str:
        """What the data are called in one or two words."""
        path = self.csv or self.text or self.npz
        return str(self.task) if path is None else " ".join(filter(None, (Path(path).name, self.column)))

    @property
    def dtypes(self) -> tuple[str, str]:
        """NumPy's dtype and PyTorch's."""
        return self.dtype, self.torch_dtype or self.dtype

    @property
    def coarser(self) -> str:
        """The dtype that has fewer digits."""
        return "float32" if "float32" in self.dtypes else "float64"


@dataclass(frozen=True)
class Side:
    """How one backend trains: its words, its model from a ``numpy_rnn`` one (weights copied), its loop.

    ``draws``: whether the model draws dropout masks from PyTorch's generator; else it is handed the same.
    """

    backend: Backend
    model: Callable[[Module], Any]
    loop: type[Loop] = Loop
    draws: bool = False


NUMPY_SIDE = Side(NUMPY, copy.deepcopy)
TORCH_SIDE = Side(TORCH, twin, draws=True)
SIDES = (NUMPY_SIDE, TORCH_SIDE)


class Run:
    """A model with weights drawn by NumPy from the seed, its twin, their controls, and what they did in training.

    >>> run = Run(Settings("sine", "rnn", 4, 1, 50, "detach", "sgd", 0.05, None, 2, "float64", 0, controls=1))
    >>> len([pair for pair in run.train()]), run.total, len(run.pairs), run.losses(0).shape
    (8, 8, 8, (8, 2))

    A control is the same run from weights that are moved by one unit in the last place of the coarser dtype, up or down
    at random, on both sides alike; and they are moved again after every step, for rounding acts at every step: with one
    move at the start alone, long honest runs would drift out of what their controls show. Between two dtypes each
    weight is moved the same way at every step, for there every rounded constant, such as AdamW's 1 - lr * weight_decay,
    pulls one way all along. A run ends after the last step, or after the first whose loss is not finite on one of the
    two sides.

    The data are read as the settings say, unless the ``task`` is there already.

    Raises ``ValueError`` for settings that the task, the model or the optimizer refuses, and for data with another
    digest than that of the settings.
    """

    def __init__(self, settings: Settings, sides: tuple[Side, Side] = SIDES, task: Task | None = None) -> None:
        if settings.dropout > 0 and settings.layers == 1:
            raise ValueError("dropout must be 0 with one layer, for it acts between layers")
        if settings.schedule is None and settings.schedule_settings:
            raise ValueError("schedule_settings must be empty without a --schedule")
        self.settings, self.sides = settings, sides
        if task is None:
            task = tasks.load(**{name: getattr(settings, name) for name in tasks.SOURCE})
            check_digest(task, settings.digest)
        self.task = task
        if self.task.length not in (None, settings.window):
            raise ValueError(f"window must be {self.task.length}, the length of the sequences, got {settings.window}")
        self._data = {dtype: (cast(task.x, dtype), cast(task.y, dtype)) for dtype in settings.dtypes}
        network: Any = twin(self._module(settings.dtypes[1]))
        self._masks_from = network.rnn if self.task.head else network
        self.loops = [[self.loop(side) for _ in range(settings.controls + 1)] for side in (0, 1)]
        self.models = tuple(loops[0].model for loops in self.loops)
        self.pairs: list[Pair] = []
        self.all_losses: tuple[list[list[float]], list[list[float]]] = ([], [])  # of each side, as ``losses`` has them
        self.total = self.loops[0][0].total
        self.draws = [self._generators(), self._generators()]  # what moves the controls of each side
        self._move_controls()

    def loop(self, side: int) -> Loop:
        """Return a new loop at the first step."""
        s, words = self.settings, self.sides[side]
        module = self._module(s.dtypes[side])
        module.load_state_dict(self._module(s.coarser).state_dict())  # so that both sides hold the same numbers
        model = words.model(module)
        backend, dtype = words.backend, s.dtypes[side]
        optimizer = backend.optimizers[s.optimizer](model.parameters(), lr=s.lr, **s.optimizer_settings)
        scheduler = None if s.schedule is None else backend.schedules[s.schedule](optimizer, **s.schedule_settings)
        x, y = self._data[dtype]
        return words.loop(
            model,
            optimizer,
            x,
            y,
            backend,
            window=s.window,
            carry=s.carry,
            epochs=s.epochs,
            clip=s.clip,
            loss=self.task.loss,
            answer=self.task.answer,
            scheduler=scheduler,
            call=self._call(side) if s.dropout else plain_call,
        )

    def _call(self, side: int) -> Callable[[Any, Any, Any, tuple[int, int]], tuple[Any, Any]]:
        """Return the call of a model with dropout: the masks depend on seed and place alone, so all runs share them."""
        s = self.settings

        def call(model: Any, input: Any, state: Any, place: tuple[int, int]) -> Any:
            with seeded(s.seed, *place):
                if self.sides[side].draws:
                    return model(input, state)
                masks = next_dropout_masks(self._masks_from, (*input.shape[:2], 1))
                return model(input, state, dropout_masks=[mask.astype(s.dtypes[side]) for mask in masks])

        return call

    def _module(self, dtype: DTypeLike) -> Module:
        s = self.settings
        return self.task.model(
            s.cell,
            s.hidden,
            s.layers,
            bidirectional=s.bidirectional,
            proj_size=s.proj_size,
            dropout=s.dropout,
            embedding=s.embedding,
            dtype=dtype,
            rng=s.seed,
        )

    def train(self) -> Iterator[Pair]:
        """Train everything in lockstep and yield the two records of each step, which are kept in ``pairs`` too."""
        while not self.over:
            with np.errstate(over="ignore", invalid="ignore"):  # losses that are not finite are the verdict's to name
                records = [[loop.step() for loop in loops] for loops in self.loops]
                self._move_controls()
            for kept, step in zip(self.all_losses, records, strict=True):
                kept.append([record.loss for record in step])
            pair = records[0][0], records[1][0]
            self.pairs.append(pair)
            yield pair

    @property
    def over(self) -> bool:
        """Whether the last step has been made, or one whose loss is not finite."""
        finite = not self.pairs or all(math.isfinite(record.loss) for record in self.pairs[-1])
        return len(self.pairs) >= self.total or not finite

    def _generators(self) -> list[np.random.Generator]:
        return [np.random.default_rng([self.settings.seed, i]) for i in range(self.settings.controls + 1)]

    def _move_controls(self) -> None:
        if len(set(self.settings.dtypes)) == 2:  # the same signs each time
            self.draws = [self._generators(), self._generators()]
        for loops, draws in zip(self.loops, self.draws, strict=True):
            for loop, rng in zip(loops[1:], draws[1:], strict=True):
                nudge(loop, rng, self.settings.coarser)

    def losses(self, side: int) -> Array:
        """Return the losses of one side so far: (steps, 1 + controls), its own run's in column 0."""
        return np.array(self.all_losses[side]).reshape(len(self.pairs), -1)

    def scores(self) -> list[tuple[Score, Score]]:
        """Return each test span's scores: NumPy's, PyTorch's."""
        if not self.task.spans:
            return []
        scores = []
        for model, side, dtype in zip(self.models, self.sides, self.settings.dtypes, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                inputs = cast(self.task.inputs, dtype)
                scores.append(self.task.score(predictions(model, inputs, side.backend, self.task.length)))
        return list(zip(*scores, strict=True))

    def samples(self, characters: int = 60) -> tuple[str, ...]:
        """Return how each trained model, NumPy's and PyTorch's, goes on from the end of its training text.

        Both draw by the same random numbers, from the seed; line ends and the like become spaces. Empty for a task
        that is no text, and for a network that reads backwards too, which cannot write.
        """
        if not self.task.alphabet or self.settings.bidirectional:
            return ()
        start = self.task.x[-4 * characters :, 0]
        draws = np.random.default_rng([self.settings.seed, 2]).random(characters)
        lines = []
        for model, side in zip(self.models, self.sides, strict=True):
            line = "".join(self.task.alphabet[symbol] for symbol in sample(model, start, draws, side.backend))
            lines.append("".join(letter if letter.isprintable() else " " for letter in line))
        return tuple(lines)


def check_digest(task: Task, digest: str | None) -> None:
    """Raise ``ValueError`` if the task's data have another digest; None has not been kept."""
    if digest not in (None, task.digest()):
        raise ValueError(f"data must be what they were when the run was made, and {task.name} has changed since")


def dtype_name(name: str, dtype: Any) -> str:
    """Return "float32" or "float64", however it is written.

    Raises ``ValueError``, about the argument ``name``, for another one.
    """
    try:
        known = str(np.dtype(dtype).name)
    except TypeError:
        known = ""
    if known not in ("float32", "float64"):
        raise ValueError(f"{name} must be float32 or float64, got {dtype!r}")
    return known


def cast(array: Array, dtype: DTypeLike) -> Array:
    """Return numbers in ``dtype``, symbols as they are."""
    return array if array.dtype.kind == "i" else array.astype(dtype, copy=False)


def nudge(loop: Loop, rng: np.random.Generator, coarser: DTypeLike) -> None:
    """Move every weight of a loop by one unit in the last place of ``coarser``, up or down at random."""
    for parameter in loop.model.parameters():
        w = loop.backend.array(parameter)
        near = w.astype(coarser)
        loop.backend.overwrite(parameter, w + (nudged(near, rng) - near))


def nudged(w: Array, rng: np.random.Generator) -> Array:
    """Return a copy with every entry moved by one unit in the last place, up or down.

    >>> w = np.array([1.0, -3.0, 0.1])
    >>> bool((abs(nudged(w, np.random.default_rng(0)) - w) <= np.spacing(abs(w))).all())
    True
    """
    direction = np.where(rng.random(w.shape) < 0.5, -np.inf, np.inf).astype(w.dtype)
    return np.asarray(np.nextafter(w, direction))
