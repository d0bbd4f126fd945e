"""The user's own data: a column of a table, a text, arrays."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from numpy_rnn.tasks.table import not_utf8, read_column
from numpy_rnn.tasks.task import Task, affordable, characters, cut, next_symbol, one_step_ahead
from numpy_rnn.weights import read_npz

MOST_SYMBOLS = 2**20


def from_csv(
    path: str | os.PathLike[str], column: str | int | None = None, split: float = 0.8, fill_missing: bool = False
) -> Task:
    """Return the task of predicting a column of a CSV file one row ahead.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "weather.csv")
    ...     lines = ["date,temperature", *(f"2026-01-0{day},{day * day}" for day in range(1, 10))]
    ...     path.write_text("\\n".join(lines)) and None
    ...     task = from_csv(path, "temperature")
    >>> task.name, task.x.shape, list(task.spans)
    ('weather.csv, temperature', (6, 1, 1), ['last 2 rows'])

    Arguments: ``column`` by its name in the header, else by its number from 1; it may be left out if there is but one.
    A first row of numbers alone, or with a number in the column that was given by number, is no header but data.
    ``split`` is the share of the steps that are trained on; the rest is the test span. The numbers are scaled by mean
    and standard deviation of the rows that are trained on; errors are relative to the variance of the whole column.
    Columns are separated by commas, semicolons or tabs; with semicolons a comma is a decimal comma. The file is in
    UTF-8. Nothing, "-", "NA", "N/A", "nan", "none" and "null" are missing entries; with ``fill_missing`` each becomes
    the entry before it, without they are refused. The file is read in a stream, and this one column is kept.

    Raises ``ValueError`` for a file or a column that cannot be used, ``OSError`` for a file that cannot be read.
    """
    column = None if column is None else str(column)
    name, values, filled = read_column(path, column, fill_missing)
    rows = len(values)
    if rows < 3:
        raise ValueError(f"csv must have at least 3 rows of numbers, got {rows} in {os.fspath(path)}")
    train_steps = cut(rows - 1, split)
    known = values[: train_steps + 1]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        mean, std = known.mean(), known.std()
        if std == 0 and known.min() < known.max():
            raise ValueError(
                f"column must vary by more where it is trained on, got {name!r} with {known.min():g} to "
                f"{known.max():g}, a variance too small to scale by"
            )
        if known.min() == known.max():
            raise ValueError(
                f"column must vary where it is trained on, got {name!r} with {known[0]:g} in each of the first "
                f"{len(known)} rows"
            )
        series = (values - mean) / std
        if not np.isfinite(std + series.var()):
            largest = max(values.max(), -values.min())
            raise ValueError(f"column must have numbers whose squares are finite, got {name!r} with up to {largest:g}")
    test = f"last {rows - 1 - train_steps} row" + ("s" if rows - 2 > train_steps else "")
    source = {"csv": os.path.abspath(path), "column": column, "split": split}
    note = f"{rows} rows, trained on the first {len(known)}, scaled by their mean {mean:.6g} and deviation {std:.6g}"
    return one_step_ahead(
        f"{_label(os.path.basename(path))}, {_label(name)}",
        series,
        train_steps,
        {test: slice(train_steps, rows - 1)},
        defaults=affordable(train_steps, 20, 30),
        source=source | ({"fill_missing": True} if fill_missing else {}),
        note=note + (f"; {filled} missing filled with the entry before" if filled else ""),
    )


def from_text(path: str | os.PathLike[str], split: float = 0.9) -> Task:
    """Return the task of predicting the next character of a text file in UTF-8.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "rhyme.txt")
    ...     path.write_text("tick tock " * 100) and None
    ...     task = from_text(path)
    >>> task.x.shape, task.alphabet, list(task.spans)
    ((224, 4), ' cikot', ['100 characters'])

    The text is cut into parallel streams, see ``characters``; the share ``split`` of each is trained on. It is read in
    pieces and kept in one, two or four bytes a character.

    Raises ``ValueError`` for a text that is too short or not in UTF-8, ``OSError`` for a file that cannot be read.
    """

    def pieces() -> Iterator[str]:
        with open(path, encoding="utf-8-sig") as file:
            try:
                while piece := file.read(2**16):
                    yield piece
            except UnicodeDecodeError as error:
                raise not_utf8("text", path, error) from None

    source = {"text": os.path.abspath(path), "split": split}
    task = characters(_label(os.path.basename(path)), pieces(), None, split, source=source)
    streams = task.inputs.shape[1]
    note = f"{task.inputs.size} characters, {task.symbols} different, in {streams} parallel stream"
    return replace(task, note=note + ("s" if streams > 1 else ""))


def from_npz(path: str | os.PathLike[str], split: float = 0.8) -> Task:
    """Return the task of answering the array ``y`` of a ``.npz`` file to its array ``x``.

    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     np.savez(f"{directory}/a.npz", x=rng.normal(size=(50, 4, 3)), y=rng.normal(size=(50, 4, 2)))
    ...     task = from_npz(f"{directory}/a.npz")
    >>> task.x.shape, task.y.shape, task.measure, task.baseline
    ((40, 4, 3), (40, 4, 2), 'average relative variance', 'training mean')

    ``x`` (T, B, I) and ``y`` (T, B, K) are floating-point numbers, and are taken as they are: ``y[t]`` is the answer
    after ``x[: t + 1]``. Or both are symbols (T, B), whole numbers from 0 on; then the loss is the cross entropy. The
    first ``split`` of the steps are trained on. The baseline answers the mean of the training targets, or the
    frequencies of their symbols. Other arrays are not looked at; pickled objects are never loaded.

    Raises ``ValueError`` for a file or arrays that cannot be used, ``OSError`` for a file that cannot be read.
    """
    try:
        arrays = read_npz(Path(path), ("x", "y"))
    except ValueError as error:
        raise ValueError(f"npz must be a .npz file with the arrays x and y: {error}") from None
    if not {"x", "y"} <= arrays.keys():
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
        raise ValueError(f"npz must hold the arrays x and y, got {', '.join(names) or 'none'} in {os.fspath(path)}")
    x, y = arrays["x"], arrays["y"]
    came = f"got x {x.shape} {x.dtype} and y {y.shape} {y.dtype}"
    numbers = x.dtype.kind == y.dtype.kind == "f" and x.ndim == y.ndim == 3
    symbols = x.dtype.kind in "iu" and y.dtype.kind in "iu" and x.ndim == y.ndim == 2
    if not (numbers or symbols) or x.shape[:2] != y.shape[:2] or 0 in (*x.shape, *y.shape):
        raise ValueError(f"npz must hold floats x (T, B, I) and y (T, B, K), or whole numbers x and y (T, B), {came}")
    if len(x) < 2:
        raise ValueError(f"npz must hold at least T = 2 steps, {came}")
    train_steps = cut(len(x), split)
    name, span = (
        _label(os.path.basename(path)),
        f"last {len(x) - train_steps} step" + ("s" if len(x) - 1 > train_steps else ""),
    )
    source = {"npz": os.path.abspath(path), "split": split}
    note = f"x {x.shape}, y {y.shape}, trained on the first {train_steps} step" + ("s" if train_steps > 1 else "")
    defaults = affordable(train_steps, 20, 30)
    if symbols:
        least, most = min(int(x.min()), int(y.min())), max(int(x.max()), int(y.max()))
        if least < 0 or most >= MOST_SYMBOLS:
            raise ValueError(f"npz must hold symbols from 0 to {MOST_SYMBOLS - 1}, got {least} to {most}")
        if y.min() == y.max():
            raise ValueError(f"npz must hold y that varies, got the symbol {y.flat[0]} everywhere")
        small = np.min_scalar_type(-max(most, 1))
        fields = {"symbols": most + 1, "defaults": defaults, "source": source, "note": note}
        return next_symbol(name, x.astype(small), y.astype(small), train_steps, span, **fields)
    x, y = x.astype(np.float64), y.astype(np.float64)
    for letter, array in (("x", x), ("y", y)):
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ValueError(f"npz must hold finite numbers, got {array[where]} at {letter}{list(where)}")
    with np.errstate(over="ignore", invalid="ignore"):
        variance, test = float(y.var()), slice(train_steps, len(y))
        squared = float(np.mean((y[test] - y[:train_steps].mean(axis=(0, 1))) ** 2))
    if not 0 < variance < np.inf:
        raise ValueError(f"npz must hold y that varies, with a finite variance, got the variance {variance:g}")
    return Task(
        name,
        x,
        y,
        train_steps,
        {span: test},
        {span: squared / variance},
        defaults,
        variance,
        baseline="training mean",
        source=source,
        note=note,
    )


def _label(name: str) -> str:
    """Return the name of a file or a column as it can stand in a line of text."""
    label = "".join(letter if letter.isprintable() else " " for letter in name)
    return label if len(label) <= 40 else f"{label[:37]}..."
