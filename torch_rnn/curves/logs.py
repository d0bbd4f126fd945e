"""The loss curve in a log that some program left: CSV, JSON lines, or TensorBoard's event files.

A file is read once, row by row, and only its losses and their steps are kept: 16 bytes a row.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TextIO, TypeAlias, cast

import numpy as np

from numpy_rnn.typing import Array

STEPS = ("step", "global_step", "_step", "trainer/global_step", "iteration", "iter", "epoch")  # the first there is
HELD_OUT = {"val", "valid", "validation", "test", "eval", "dev"}  # a loss of these is not the one that trains
ALL_DIGITS = 17  # tell any two float64 numbers apart
FLOAT32_DIGITS = 9  # tell any two float32 numbers apart
LONGEST = 2**24  # characters of one line

ABSENT = object()  # what the row of the names has for numbers

Row: TypeAlias = Mapping[str, Any]  # by column: a number, or its text


@dataclass(frozen=True, eq=False)
class Log:
    """One loss curve as a log has it.

    ``steps`` is None where the log counts none, else they rise; ``significant`` digits and ``decimals`` are the most
    that any of its losses was written with, 17 and more for all digits of a float64.
    """

    source: str
    column: str
    losses: Array  # (rows,)
    steps: Array | None  # (rows,)
    step_column: str | None
    significant: int
    decimals: int
    notes: tuple[str, ...] = ()  # what was left out on the way

    @property
    def dtype(self) -> str:
        """The dtype that has as many digits as the log."""
        with np.errstate(over="ignore", invalid="ignore"):
            single = self.losses.astype(np.float32)
        few = self.significant <= FLOAT32_DIGITS
        return "float32" if few or np.array_equal(single, self.losses, equal_nan=True) else "float64"

    def unit(self, losses: Array) -> Array:
        """Return the unit of the last digit that the log writes such losses with; 0 where that is all of float64.

        It is the coarser of two: the log's last decimal, and the last of its significant digits.

        >>> losses = np.array([12.5, 0.125])
        >>> Log("a.csv", "loss", losses, None, None, significant=6, decimals=4).unit(losses).tolist()
        [0.0001, 0.0001]
        """
        if self.significant >= ALL_DIGITS:
            return np.zeros(len(losses))
        size = np.abs(losses)
        known = np.isfinite(size) & (size > 0)
        leading = np.floor(np.log10(size, where=known, out=np.zeros(len(size))))
        last = np.where(known, 10.0 ** (leading - self.significant + 1), 0.0)
        return np.maximum(last, 10.0**-self.decimals)

    @property
    def precision(self) -> str:
        """How many digits it holds, in words."""
        if self.significant >= ALL_DIGITS:
            return f"all digits of {self.dtype}"
        if float(np.median(self.unit(self.losses))) == 10.0**-self.decimals:
            return counted(self.decimals, "decimal")
        return counted(self.significant, "digit")


def read_log(source: str | Path, column: str | None = None, step_column: str | None = None) -> Log:
    """Read the loss curve of one run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "run.csv")
    ...     _ = path.write_text("step,loss,val_loss\\n10,0.5000,0.7\\n20,0.2500,0.6\\n")
    ...     log = read_log(path)
    >>> log.column, log.steps.tolist(), log.losses.tolist(), log.precision
    ('loss', [10.0, 20.0], [0.5, 0.25], '4 decimals')

    Arguments: a CSV file (its separator a comma, semicolon or tab), a file of JSON lines (keys within keys are joined
    by dots), a TensorBoard event file, or the directory of one run's event files. ``source`` may name the column
    itself, ``run.csv:train_loss``; that wins over ``column``. Without either the column is guessed if there is one
    that is obviously the loss. ``step_column`` is guessed too; "row" counts the rows instead.

    A row without a loss is left out; where a step comes twice the last one wins, as after a restart; ``notes`` says so.

    Raises ``ValueError`` for what is not such a log, with the line; ``ImportError`` for event files without the package
    tensorboard; ``OSError`` for what cannot be read.
    """
    path, named = _split(str(source))
    column = named or column
    try:
        if path.is_dir():
            return _collect(path, _events(path), column)
        with path.open(encoding="utf-8-sig", newline="") as text:
            start = cast(io.BufferedReader, text.buffer).peek(256)
            if b"brain.Event:" in start[:64]:
                return _collect(path, _events(path), column)
            if not start:
                raise Problem("is empty")
            if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise Problem("expected CSV, JSON lines or TensorBoard events, got binary data")
            lines = _lines(text)
            if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
                return _collect(path, _objects(lines), column, step_column)
            return _collect(path, _table(lines), column, step_column)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected text in UTF-8, got the byte {error.object[error.start]:#x}") from error
    except Problem as problem:
        raise ValueError(f"{path}: {problem}") from problem


def counted(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}{'s'[: number != 1]}"


def _split(source: str) -> tuple[Path, str | None]:
    """Return the path, and the column that is named behind it after a colon."""
    path = Path(source).expanduser()
    if path.exists():
        return path, None
    for colon in [match.start() for match in re.finditer(":", source)][::-1]:
        path, column = Path(source[:colon]).expanduser(), source[colon + 1 :]
        if source[:colon] and path.exists():
            if not column:
                raise ValueError(f"{source}: expected the name of a column behind the colon, got none")
            return path, column
    raise ValueError(f"{source}: there is no such file or directory")


class Problem(ValueError):
    """What is wrong in a row; whoever knows the file puts its name before it."""


def _lines(text: TextIO) -> Iterator[str]:
    """Yield the lines, none of which may fill the memory."""
    for number in count(1):
        line = text.readline(LONGEST)
        if not line:
            return
        if len(line) == LONGEST:
            raise Problem(f"line {number}: expected fewer than {LONGEST} characters")
        yield line


def _table(lines: Iterator[str]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a CSV file, each with its place; the first has the names alone."""
    first = next(lines)
    separator = max(",;\t", key=first.count)
    header = [name.strip() for name in next(csv.reader([first.lstrip("# ")], delimiter=separator))]
    if all(_number(name) is not None for name in header):
        raise Problem(f"line 1: expected the names of the columns, got {_short(first)}")
    if twice := {name for name in header if name and header.count(name) > 1}:
        raise Problem(f"line 1: expected a name once, got {sorted(twice)[0]!r} twice")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    yield "line 1", dict.fromkeys(header, ABSENT)
    try:
        for cells in reader:
            place = f"line {reader.line_num + 1}"
            if len(cells) > len(header):
                raise Problem(f"{place}: expected {len(header)} cells, got {len(cells)}")
            if [cell.strip() for cell in cells] != header:  # which a run that was started again may have written again
                yield place, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise Problem(f"line {reader.line_num + 1}: {error}") from error


def _objects(lines: Iterator[str]) -> Iterator[tuple[str, Row]]:
    """Yield the objects of JSON lines, each with its place; every number is still the text that was written."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise Problem(f"line {number}: expected a JSON object, got {_short(line)}")
        yield f"line {number}", dict(_flat(content))


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _events(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the scalars of TensorBoard's event files, in the order in which TensorBoard reads them."""
    try:
        from tensorboard.backend.event_processing.event_file_loader import (  # type: ignore[import-untyped]
            EventFileLoader,
        )
        from tensorboard.util import tensor_util  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        message = "event files need the package tensorboard: pip install 'rnn-parity[tensorboard]'"
        raise ImportError(f"{path}: {message}") from error
    files = sorted(path.glob("*tfevents*")) if path.is_dir() else [path]
    if not files:
        runs = sorted({str(file.parent) for file in path.rglob("*tfevents*")})
        found = f"they are in {', '.join(runs[:8])}" if runs else "got none"
        raise Problem(f"expected event files of TensorBoard (*tfevents*), {found}")
    for file in files:
        for event in EventFileLoader(str(file)).Load():
            row = {
                value.tag: tensor_util.make_ndarray(value.tensor).item()
                for value in event.summary.value
                if value.metadata.plugin_data.plugin_name == "scalars"
            }
            if row:
                yield f"step {event.step}", {**row, "step": event.step}


@dataclass
class _Series:
    """The losses of one column, as far as they are read."""

    losses: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    empty: int = 0
    significant: int = 0
    decimals: int = 0
    problem: str = ""  # the first

    def add(self, value: Any, place: str, name: str) -> bool:
        """Take one entry; return whether it is a number."""
        if value is ABSENT:
            return False
        if value is None or (isinstance(value, str) and not value.strip()):
            self.empty += 1
            return False
        number = _number(value)
        if number is None:
            self.problem = self.problem or f"{place}: expected a number in column {name!r}, got {_short(value)}"
            return False
        self.losses.append(number)
        if not isinstance(value, str):
            self.significant = ALL_DIGITS
        elif self.significant < ALL_DIGITS and math.isfinite(number):
            self.count(value)
        return True

    def count(self, text: str) -> None:
        mantissa, _, exponent = text.strip().lower().lstrip("+-").partition("e")
        before, _, after = mantissa.partition(".")
        self.significant = max(self.significant, len((before + after).lstrip("0")))
        self.decimals = max(self.decimals, len(after) - int(exponent or 0))


def _collect(path: Path, rows: Iterator[tuple[str, Row]], column: str | None, step_column: str | None = None) -> Log:
    """Read the rows and return the curve of the column, or of the one that is obviously the loss."""
    series: dict[str, _Series] = {}
    names: dict[str, None] = {}  # in their order
    counter = step_column
    for place, row in rows:
        if not row.keys() <= names.keys():
            series |= {
                name: _Series() for name in row if name not in names and (name == column if column else _is_loss(name))
            }
            names |= dict.fromkeys(row)
        for name, curve in series.items():
            if not curve.add(row.get(name, ABSENT), place, name):
                continue
            counter = counter or next((name for step in STEPS for name in row if name.lower() == step), "row")
            if counter != "row":
                if counter not in names:
                    raise Problem(f"expected the steps in one of {_listed(names)}, got {counter!r}")
                curve.steps.append(_step(row.get(counter), place, counter))
    chosen = _choose(series, names, column)
    curve = series[chosen]
    if curve.problem:
        raise Problem(curve.problem)
    if not curve.losses:
        raise Problem(f"expected losses in column {chosen!r}, got none")
    notes = [f"{counted(curve.empty, 'row')} without a loss left out"] if curve.empty else []
    losses, steps = np.array(curve.losses), np.array(curve.steps) if curve.steps else None
    if steps is not None:
        losses, steps, note = _rising(losses, steps, str(counter), step_column is not None)
        notes += note
    return Log(
        source=str(path),
        column=chosen,
        losses=losses,
        steps=steps,
        step_column=None if steps is None else counter,
        significant=curve.significant,
        decimals=curve.decimals,
        notes=tuple(notes),
    )


def _rising(losses: Array, steps: Array, name: str, asked: bool) -> tuple[Array, Array | None, list[str]]:
    """Sort by step; of equal steps the last row stays. A counter that begins again and again is none."""
    order = np.argsort(steps, kind="stable")
    ordered = steps[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    left_out = int(len(steps) - last.sum())
    if not left_out:
        return losses[order], ordered, []
    if 2 * left_out >= len(steps) and not asked:
        return losses, None, [f"{name!r} repeats itself: rows counted instead"]
    return losses[order][last], ordered[last], [f"{counted(left_out, 'row')} whose step comes again later left out"]


def _choose(series: Mapping[str, _Series], names: Iterable[str], column: str | None) -> str:
    """Return the column that was asked for, or the only one that is obviously the loss."""
    if column is not None:
        if column not in series:
            raise Problem(f"expected a column {column!r}, got {_listed(names)}")
        return column
    fit = [name for name, curve in series.items() if not curve.problem] or list(series)
    for obvious in ({"loss"}, {"loss", "train", "training"}):
        if len(found := [name for name in fit if obvious >= set(_words(name))]) == 1:
            return found[0]
    if len(fit) != 1:
        raise Problem(f"which column is the loss? Name one of {_listed(names)}")
    return fit[0]


def _words(name: str) -> list[str]:
    return re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", name).lower())


def _is_loss(name: str) -> bool:
    return "loss" in _words(name) and not HELD_OUT & set(_words(name))


def _number(value: Any) -> float | None:
    """Return a number that was written as one, also inside quotes; None if it was not."""
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _step(value: Any, place: str, name: str) -> float:
    step = _number(value)
    if step is None or not math.isfinite(step):
        raise Problem(f"{place}: expected the step in column {name!r}, got {_short(value)}")
    return step


def _short(value: Any) -> str:
    """Return the beginning of what was found."""
    text = repr(value.strip() if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listed(names: Iterable[str]) -> str:
    names = [name for name in names if name]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
