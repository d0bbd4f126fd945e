"""What the networks learn: the series that come with the library, and the user's own files."""

from __future__ import annotations

import os
from dataclasses import replace

from numpy_rnn.tasks.built_in import TASKS, adding, article, copy, sine, sunspots, text
from numpy_rnn.tasks.own import from_csv, from_npz, from_text
from numpy_rnn.tasks.task import Score, Task, characters

__all__ = [
    "SOURCE",
    "TASKS",
    "Score",
    "Task",
    "adding",
    "article",
    "characters",
    "copy",
    "from_csv",
    "from_npz",
    "from_text",
    "load",
    "sine",
    "sunspots",
    "text",
]

SOURCE = ("task", "csv", "column", "text", "npz", "split", "fill_missing")  # the arguments of ``load``

Path = str | os.PathLike[str]


def load(
    task: str | None = None,
    *,
    csv: Path | None = None,
    column: str | int | None = None,
    text: Path | None = None,
    npz: Path | None = None,
    split: float | None = None,
    fill_missing: bool = False,
) -> Task:
    """Return the task of that name, or that of the user's file.

    >>> load("sine").name, load().name
    ('sine', 'sunspots')

    Arguments: one of ``task``, the name of a task that comes with the library (without any: "sunspots"); ``csv``, with
    ``column`` and ``fill_missing`` as in ``from_csv``; ``text`` as in ``from_text``; ``npz`` as in ``from_npz``.
    ``split`` is the share of a file that is trained on: 0.8, of a text 0.9.

    Raises ``ValueError`` for an unknown name, for arguments that do not go together, and for a file that cannot be
    used; ``OSError`` for one that cannot be read.
    """
    files = {"csv": csv, "text": text, "npz": npz}
    given = [name for name, value in {"task": task, **files}.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"{given[1]} must be left out where {given[0]} is given: a run has one source")
    kind = given[0] if given else "task"
    for name, value, kinds in (
        ("column", column, ("csv",)),
        ("fill_missing", fill_missing or None, ("csv",)),
        ("split", split, tuple(files)),
    ):
        if value is not None and kind not in kinds:
            raise ValueError(f"{name} must be left out without {' or '.join(kinds)}")
    if split is not None and not 0 < split < 1:
        raise ValueError(f"split must be above 0 and below 1, got {split}")
    if csv is not None:
        return from_csv(csv, column, 0.8 if split is None else split, fill_missing)
    if text is not None:
        return from_text(text, 0.9 if split is None else split)
    if npz is not None:
        return from_npz(npz, 0.8 if split is None else split)
    name = "sunspots" if task is None else task
    if name not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {name!r}")
    return replace(TASKS[name](), source={"task": name})
