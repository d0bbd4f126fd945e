"""A run on disk, between two of its steps: all that its other steps depend on, so that another process can make them.

One ``.npz`` file without pickle: an array for every tensor, and one of bytes, JSON text, for everything else. PyTorch's
random state is not in it: dropout masks depend on the seed and on their place alone.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from numpy_rnn.tasks import Task
from numpy_rnn.training import Loop, Record
from numpy_rnn.typing import Array
from numpy_rnn.weights import NonFiniteWeightsWarning, load_weights, save_weights
from torch_rnn.curves.runs import SIDES, Run, Settings, Side
from torch_rnn.version import versions

NAME = "snapshot.npz"
FORMAT = 1
EVERY = 10.0  # seconds of training that a kill may cost
SHARE = 10  # times as long as it takes to save a run, it is trained before it is saved again

TENSOR, ARRAY, NUMBER = "tensor", "array", "number"  # a library's own; NumPy's; NumPy's without dimensions


def save(run: Run, path: Path) -> None:
    """Write what the rest of a run depends on to ``path``, a ``.npz`` file, which appears whole or not at all.

    >>> import tempfile
    >>> run = Run(Settings("sine", "rnn", 4, 1, 50, "detach", "nadam", 0.01, None, 2, "float64", 0, controls=1))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, NAME)
    ...     for ours, _ in run.train():
    ...         if ours.step == 3:
    ...             save(run, path)
    ...     again = load(path)
    >>> len(again.pairs), len(list(again.train())), again.pairs == run.pairs
    (3, 5, True)

    Raises ``OSError`` for what cannot be written.
    """
    arrays: dict[str, Array] = {}
    content = {
        "format": FORMAT,
        "versions": versions(),
        "settings": asdict(run.settings),
        "data": _digest(run.task),
        "made": len(run.pairs),
        "planned": run.total,
        "draws": [[rng.bit_generator.state for rng in draws] for draws in run.draws],
        "loops": [
            [_packed(_state(loop), f"{loop.backend.name}.{i}", loop, arrays) for i, loop in enumerate(loops)]
            for loops in run.loops
        ],
    }
    for side in (0, 1):
        records = [pair[side] for pair in run.pairs]
        arrays[f"{side}.places"] = np.array([[r.epoch, r.step, r.length] for r in records], np.int64).reshape(-1, 3)
        arrays[f"{side}.norms"] = np.array([r.grad_norm for r in records])
        arrays[f"{side}.losses"] = run.losses(side)
    arrays["json"] = np.frombuffer(json.dumps(content).encode(), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonFiniteWeightsWarning)  # of a run that ended so: the verdict names them
        save_weights(arrays, path)


def load(path: Path, sides: tuple[Side, Side] = SIDES, epochs: int | None = None) -> Run:
    """Return the run that ``save`` wrote, at the step where it was.

    Every bit that it goes on to compute is what it would have been without the stop, on the same kind of processor.
    ``epochs`` makes it longer, or shorter: nothing before the last step depends on how many there are.

    Raises ``FileNotFoundError`` where there is none; ``ValueError`` for a file that is damaged or no snapshot, that
    other versions have written (neither the rest nor a replay would be what it was), whose data have changed since, or
    whose run has gone beyond ``epochs``.
    """
    content, arrays = _read(path)
    try:
        return _loaded(path, content, arrays, sides, epochs)
    except (KeyError, TypeError, IndexError, RuntimeError) as error:
        raise ValueError(f"{path} does not fit this program: {error}") from error


def _loaded(
    path: Path, content: dict[str, Any], arrays: dict[str, Array], sides: tuple[Side, Side], epochs: int | None
) -> Run:
    here = versions()
    if other := [f"{name} {was}, not {here[name]}" for name, was in content["versions"].items() if was != here[name]]:
        raise ValueError(f"{path} was written with {', '.join(other)}: what follows would not be bit for bit the same")
    settings = Settings(**{name: _as_given(value) for name, value in content["settings"].items()})
    run = Run(settings if epochs is None else replace(settings, epochs=epochs), sides)
    if _digest(run.task) != content["data"]:
        raise ValueError(f"{path} is of a run on other data: those of {settings.task} have changed since")
    if len(arrays["0.norms"]) > run.total:
        raise ValueError(f"{path} is at step {content['made']}, and {run.settings.epochs} epochs end at {run.total}")
    for loops, states in zip(run.loops, content["loops"], strict=True):
        for loop, state in zip(loops, states, strict=True):
            _restore(loop, _unpacked(state, loop, arrays))
    for draws, states in zip(run.draws, content["draws"], strict=True):
        for rng, state in zip(draws, states, strict=True):
            rng.bit_generator.state = state
    records = []
    for side in (0, 1):
        losses = arrays[f"{side}.losses"].tolist()
        run.all_losses[side].extend(losses)
        rows = zip(arrays[f"{side}.places"].tolist(), losses, arrays[f"{side}.norms"].tolist(), strict=True)
        records.append([Record(epoch, step, length, loss[0], norm) for (epoch, step, length), loss, norm in rows])
    run.pairs.extend(zip(*records, strict=True))
    return run


def unfinished(path: Path) -> tuple[int, int] | None:
    """Return how many steps the run of a snapshot has made, of how many; None if it has ended, or there is none."""
    try:
        content, arrays = _read(path)
    except (OSError, ValueError):
        return None
    finite = all(np.isfinite(arrays[f"{side}.losses"][-1:, 0]).all() for side in (0, 1))
    made, planned = content["made"], content["planned"]
    return (made, planned) if made < planned and finite else None


class Keeper:
    """Saves a run every so many seconds while somebody trains it; a disk that refuses does not stop the training.

    ``every``: the seconds, 0 for after each step; but it is trained at least ``SHARE`` times as long as saving took.
    ``refused`` is called with the error when a snapshot cannot be written, and the one before could. ``saved`` is the
    step of the last one, None before the first.
    """

    def __init__(self, run: Run, path: Path, every: float, refused: Callable[[OSError], None]) -> None:
        self.run, self.path, self.every, self.refused = run, path, every, refused
        self.saved: int | None = None
        self.failed = False
        self._due = time.monotonic() + every

    def after_step(self) -> None:
        """Save the run if it is time."""
        if time.monotonic() >= self._due:
            self.save()

    def save(self) -> None:
        """Save the run now."""
        began = time.monotonic()
        try:
            save(self.run, self.path)
            self.saved, self.failed = len(self.run.pairs), False
        except OSError as error:
            if not self.failed:
                self.refused(error)
            self.failed = True
        now = time.monotonic()
        self._due = now + (max(self.every, SHARE * (now - began)) if self.every else 0)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the JSON part and the arrays of a snapshot; raise ``ValueError`` for what is none of this format."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonFiniteWeightsWarning)
        arrays = load_weights(path)
    try:
        content = json.loads(arrays.pop("json").tobytes())
        found = content["format"]
    except (KeyError, ValueError, TypeError):
        raise ValueError(f"{path} is no snapshot of a run") from None
    if found != FORMAT:
        raise ValueError(f"{path} is of format {found}, and this program reads format {FORMAT}")
    return content, arrays


def _as_given(value: Any) -> Any:
    """Return a setting as it was given: JSON has lists for tuples, such as betas."""
    if isinstance(value, dict):
        return {name: tuple(entry) if isinstance(entry, list) else entry for name, entry in value.items()}
    return value


@lru_cache(maxsize=1)  # a run is saved many times
def _digest(task: Task) -> str:
    return task.digest()


def _state(loop: Loop) -> dict[str, Any]:
    """Return what the next steps of a loop depend on."""
    return {
        "position": loop.position,
        "epoch_loss": loop.epoch_loss,
        "epoch_length": loop.epoch_length,
        "carry": loop.state,
        "weights": loop.weights(),
        "optimizer": [loop.optimizer.state.get(parameter, {}) for parameter in loop.model.parameters()],
        "lr": [group["lr"] for group in loop.optimizer.param_groups],  # all else in a group is a setting
        "scheduler": None if loop.scheduler is None else loop.scheduler.state_dict(),
    }


def _restore(loop: Loop, state: dict[str, Any]) -> None:
    """Put a loop where ``_state`` found it.

    The optimizer's state is written as it was: PyTorch's own ``load_state_dict`` casts it to the dtype of the weights,
    and NAdam's mu_product and ASGD's eta and mu are float32 whatever that is.
    """
    loop.position, loop.epoch_loss, loop.epoch_length = (state[k] for k in ("position", "epoch_loss", "epoch_length"))
    carry = state["carry"]
    loop.state = tuple(carry) if isinstance(carry, list) else carry
    loop.model.load_state_dict({name: loop.backend.tensor(array) for name, array in state["weights"].items()})
    for parameter, entries in zip(loop.model.parameters(), state["optimizer"], strict=True):
        if entries:
            loop.optimizer.state[parameter] = entries
    for group, lr in zip(loop.optimizer.param_groups, state["lr"], strict=True):
        group["lr"] = lr
    if loop.scheduler is not None:
        loop.scheduler.load_state_dict(state["scheduler"])


def _packed(value: Any, name: str, loop: Loop, arrays: dict[str, Array]) -> Any:
    """Return ``value`` as JSON can hold it; its arrays and tensors go into ``arrays`` under names of their own."""
    if isinstance(value, dict):
        return {key: _packed(entry, f"{name}.{key}", loop, arrays) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(entry, f"{name}.{i}", loop, arrays) for i, entry in enumerate(value)]
    if not (hasattr(value, "requires_grad") or isinstance(value, np.ndarray | np.generic)):
        return value
    arrays[name] = loop.plain(value)
    return {ARRAY if isinstance(value, np.ndarray) else NUMBER if isinstance(value, np.generic) else TENSOR: name}


def _unpacked(value: Any, loop: Loop, arrays: dict[str, Array]) -> Any:
    """Return what ``_packed`` was given, with lists for tuples."""
    if isinstance(value, list):
        return [_unpacked(entry, loop, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((kind, name),) = value.items()
        if kind == TENSOR:
            return loop.backend.tensor(arrays[name])
        if kind == ARRAY:
            return arrays[name]
        if kind == NUMBER:
            return arrays[name][()]
    return {key: _unpacked(entry, loop, arrays) for key, entry in value.items()}
