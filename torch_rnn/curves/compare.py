"""The comparison of two loss curves as a function: the arrays, the verdict, a picture."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from numpy_rnn import tasks
from numpy_rnn.tasks import Score, Task
from numpy_rnn.training import Record
from numpy_rnn.typing import Array
from torch_rnn.curves.defaults import complete, origin
from torch_rnn.curves.page import page
from torch_rnn.curves.picture import figure
from torch_rnn.curves.report import summary
from torch_rnn.curves.runs import SIDES, Run, Settings, Side, check_digest
from torch_rnn.curves.verdict import Verdict, judge
from torch_rnn.files import write_text


@dataclass(frozen=True, eq=False)
class Comparison:
    """What ``compare_curves`` found; a notebook shows the verdict and the picture."""

    run: Run
    verdict: Verdict
    scores: list[tuple[Score, Score]]  # of each test span: NumPy's, PyTorch's

    @property
    def settings(self) -> Settings:
        """All settings, the defaults among them."""
        return self.run.settings

    @property
    def numpy_loss(self) -> Array:
        """NumPy's loss at every step (steps,)."""
        return self.run.losses(0)[:, 0]

    @property
    def torch_loss(self) -> Array:
        """PyTorch's loss at every step (steps,)."""
        return self.run.losses(1)[:, 0]

    @property
    def numpy_controls(self) -> Array:
        """The losses of NumPy's controls (steps, N)."""
        return self.run.losses(0)[:, 1:]

    @property
    def torch_controls(self) -> Array:
        """The losses of PyTorch's controls (steps, N)."""
        return self.run.losses(1)[:, 1:]

    def plot(self) -> Figure:
        """Return a matplotlib figure: both curves, and their difference beside what rounding does."""
        return figure(self.run, self.verdict)

    def report(self) -> str:
        """Return the page that ``rnn-parity curves`` writes as report.html: one file that opens without a network."""
        figures = summary(self.run, self.scores, self.verdict)
        return page(self.run, self.verdict, figures, self._call())

    def write_report(self, path: str | PathLike[str]) -> None:
        """Write the page; it appears whole or not at all. Raises ``OSError`` where it cannot be written."""
        write_text(Path(path), self.report())

    def _call(self) -> str:
        settings = {name: value for name, value in asdict(self.settings).items() if value is not None}
        digest, task = settings.pop("digest", None), settings.pop("task", None)
        words = [] if task is None else [repr(task) if digest is None else "..."]  # a Task has no words
        words += [f"{name}={value!r}" for name, value in settings.items()]
        words += [] if self.run.sides == SIDES else ["sides=..."]
        return f"torch_rnn.compare_curves({', '.join(words)})"

    def __repr__(self) -> str:
        return f"<Comparison: {self.verdict.sentence()}>"

    def _repr_html_(self) -> str:
        """Return the verdict and the picture, for a notebook."""
        picture = io.BytesIO()
        self.plot().savefig(picture, dpi=100, format="png")
        source = base64.b64encode(picture.getvalue()).decode("ascii")
        sentence = html.escape(self.verdict.sentence())
        return (
            f'<p>{sentence}</p><img alt="both loss curves and their difference" src="data:image/png;base64,{source}">'
        )


def compare_curves(
    task: str | Task | None = None,
    *,
    sides: tuple[Side, Side] = SIDES,
    progress: Callable[[Record, Record], None] | None = None,
    **settings: Any,
) -> Comparison:
    """Train on both sides from the same weights, with controls, and say whether the loss curves differ by a bug.

    >>> comparison = compare_curves("sine", hidden=4, window=50, epochs=2, controls=2)
    >>> comparison.verdict.outcome, comparison.numpy_loss.shape, comparison.torch_controls.shape
    ('rounding', (8,), (8, 2))

    Arguments: the name of a task, or a ``numpy_rnn.tasks.Task`` of your own arrays; or the data by name, as in
    ``compare_curves(csv="weather.csv", column="temperature")``: csv, column, text, npz, split, fill_missing.
    ``settings`` as the options of ``rnn-parity curves``, with underscores: cell, hidden, layers, bidirectional,
    proj_size, window, carry, optimizer, lr, clip, epochs, dtype, seed, torch_dtype, controls, dropout, embedding,
    optimizer_settings, schedule, schedule_settings (the two ``_settings`` are dicts). What is left out is the task's
    own default; all settings of a comparison, ``dataclasses.asdict(comparison.settings)``, make it again. ``sides`` are
    the two that are compared: put a backend or a loop of your own into a ``Side`` to have it judged. ``progress`` is
    called with both records of every step. PyTorch works on one thread meanwhile.

    Raises ``ValueError`` for a task, data or a setting that there is not, or a value that is refused, ``OSError`` for a
    file that cannot be read.
    """
    known = {field.name for field in fields(Settings)} - {"task"}
    if unknown := settings.keys() - known:
        names = ", ".join(sorted(known))
        raise ValueError(f"settings must be some of {names}, got {', '.join(sorted(unknown))}")
    source = {name: settings.pop(name) for name in tasks.SOURCE if name in settings}
    if isinstance(task, Task):
        if given := [name for name, value in source.items() if value]:
            raise ValueError(f"{', '.join(given)} must be left out where task is a Task")
        loaded = task
    else:
        loaded = tasks.load(task, **source)
    check_digest(loaded, settings.pop("digest", None))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # every bit is then the same on any machine, and tiny tensors are no slower
    try:
        run = Run(Settings(**{"clip": None, **complete(settings, loaded), **origin(loaded)}), sides, loaded)
        for pair in run.train():
            if progress is not None:
                progress(*pair)
        return Comparison(run, judge(run), run.scores())
    finally:
        torch.set_num_threads(threads)
