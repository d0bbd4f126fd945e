"""One column of a CSV file, read in a stream."""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TextIO

import numpy as np

from numpy_rnn.typing import Array

SEPARATORS = ",;\t"
MISSING = {"", "-", "na", "n/a", "#n/a", "nan", "none", "null"}
LONGEST = 2**24  # characters of a line; a longer one is no line of a table


def read_column(
    path: str | os.PathLike[str], column: str | None = None, fill_missing: bool = False
) -> tuple[str, Array, int]:
    """Return a column's name, its numbers (rows,) in float64, and how many were missing and are filled.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "a.csv")
    ...     path.write_text("day;cost\\nMon;1,5\\nTue;2\\n") and None
    ...     read_column(path, "cost")
    ('cost', array([1.5, 2. ]), 0)

    Arguments and errors as in ``numpy_rnn.tasks.from_csv``.
    """
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            return _read(path, file, column, fill_missing)
        except UnicodeDecodeError as error:
            raise not_utf8("csv", path, error) from None


def not_utf8(option: str, path: str | os.PathLike[str], error: UnicodeDecodeError) -> ValueError:
    """Return what to say about a file in another encoding."""
    byte = error.object[error.start]
    hint = " (it looks like UTF-16)" if error.object[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
    return ValueError(f"{option} must be a file in UTF-8, got {os.fspath(path)} with the byte 0x{byte:02x}{hint}")


def _read(path: str | os.PathLike[str], file: TextIO, column: str | None, fill: bool) -> tuple[str, Array, int]:
    lines = _lines(file)
    head = list(_some(lines))
    separator, first, skipped = _header(path, head, column)
    place, is_header = _place(first, column)
    name = first[place] if is_header else f"column {place + 1}"
    reader = csv.reader(chain(head[skipped:], lines), delimiter=separator, skipinitialspace=True, strict=True)
    values, seen = array("d"), _Seen(name, separator)
    empty = 0  # lines at the end of a table of one column are not missing entries
    try:
        if is_header:
            next(reader)
        for record in reader:
            if not record:
                empty += len(first) == 1
                continue
            line = skipped + reader.line_num
            if len(record) != len(first):
                raise ValueError(
                    f"csv must have {len(first)} columns in every row as in its first, got {len(record)} on line {line}"
                )
            for before, text in enumerate([record[place].strip(), *[""] * empty][::-1], -empty):
                value = seen.number(text, line + before)
                if value is None and fill and values:
                    value = values[-1]
                values.append(math.nan if value is None else value)
            empty = 0
    except csv.Error as error:
        raise ValueError(
            f"csv must have its quotation marks in pairs, and shorter entries: {error}, near line "
            f"{skipped + reader.line_num}"
        ) from None
    numbers = np.frombuffer(values) if values else np.zeros(0)
    if seen.missing and math.isnan(numbers[0]):
        first_rows = next((i for i, number in enumerate(numbers) if not math.isnan(number)), len(numbers))
        raise ValueError(
            f"column must have a number in its first row, got {name!r} with none in the first {first_rows}: remove "
            "these rows, for fill_missing has no entry before them to put there"
        )
    if seen.missing and not fill:
        raise ValueError(
            f"column must have a number in every row, got {name!r} with {seen.missing} of {len(numbers)} missing, the "
            f"first on line {seen.first_missing}; fill_missing puts the entry before in their place"
        )
    return name, numbers, seen.missing


class _Seen:
    """What entries of a column were like so far."""

    def __init__(self, name: str, separator: str) -> None:
        self.name, self.commas_are_decimal = name, separator == ";"
        self.missing = self.first_missing = 0
        self.marks: set[str] = set()

    def number(self, text: str, line: int) -> float | None:
        """Return an entry as a finite number, None if it is missing."""
        if text.lower() in MISSING:
            self.missing += 1
            self.first_missing = self.first_missing or line
            return None
        plain = text
        if self.commas_are_decimal:
            self.marks.update(mark for mark in ".," if mark in text)
            plain = text.replace(",", ".")
        value = _number(plain)
        if value is None or len(self.marks) > 1:
            hint = ""
            if len(self.marks) > 1:
                hint = ": the column has both decimal points and commas"
            elif "," in text:
                hint = ": decimal commas are read where semicolons separate the columns, and none between thousands"
            raise ValueError(f"column must have numbers, got {self.name!r} with {text[:40]!r} on line {line}{hint}")
        if not math.isfinite(value):
            raise ValueError(f"column must have finite numbers, got {self.name!r} with {text[:40]!r} on line {line}")
        return value


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _lines(file: TextIO) -> Iterator[str]:
    """Yield the lines; none grows without bound."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        if len(line) == LONGEST:
            raise ValueError(f"csv must have lines of fewer than {LONGEST} characters, got a longer one, line {number}")
        if "\0" in line:
            raise ValueError(f"csv must be text, got a zero byte on line {number}")
        yield line


def _some(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines, enough to hold the header, also one whose entries have several lines."""
    size = 0
    for line in lines:
        yield line
        size += len(line)
        if size > 2**16:
            return


def _header(path: str | os.PathLike[str], head: list[str], column: str | None) -> tuple[str, list[str], int]:
    """Return the separator, the entries of the first row, and how many blank lines precede it.

    The separator is the one that gives a first row with that column in it, else the most columns.
    """
    skipped = next((i for i, line in enumerate(head) if line.strip()), None)
    if skipped is None:
        raise ValueError(f"csv must have a header and rows, got {os.fspath(path)}, which is empty")
    rows: dict[str, list[str]] = {}
    for separator in SEPARATORS:
        try:
            first = next(csv.reader(head[skipped:], delimiter=separator, skipinitialspace=True, strict=True))
        except csv.Error as error:  # as of a quoted entry that another separator follows
            problem = error
        else:
            rows[separator] = [entry.strip() for entry in first]
    if not rows:
        raise ValueError(f"csv must have its quotation marks in pairs: {problem}, near line {skipped + 1}")
    best = max(rows, key=lambda separator: (column in rows[separator], len(rows[separator])))
    return best, rows[best], skipped


def _place(first: list[str], column: str | None) -> tuple[int, bool]:
    """Return the place of the column, and whether the first row is a header."""
    all_numbers = all(_number(entry) is not None for entry in first)
    if column is None and len(first) == 1:
        return 0, not all_numbers
    if not all_numbers and column is not None:
        places = [i for i, entry in enumerate(first) if entry == column.strip()]
        if len(places) == 1:
            return places[0], True
        if places:
            numbers = " or ".join(str(i + 1) for i in places)
            raise ValueError(f"column must name one column, got {column!r}, which {len(places)} have: say {numbers}")
    if column is not None and column.isdecimal() and 1 <= int(column) <= len(first):
        place = int(column) - 1
        return place, _number(first[place]) is None
    came = "none" if column is None else repr(column)
    if all_numbers:
        raise ValueError(
            f"column must be a number from 1 to {len(first)}, for the file has no header: its first row is all "
            f"numbers, got {came}"
        )
    if held := [entry for entry in first if _number(entry) is not None]:
        raise ValueError(
            f"column must be a number from 1 to {len(first)}, for the file seems to have no header: its first row "
            f"holds the number {held[0][:40]}, got {came}"
        )
    names = ", ".join(repr(entry[:40]) for entry in first[:20]) + (f" and {len(first) - 20} more" if first[20:] else "")
    raise ValueError(f"column must be one of {names}, or a number from 1 to {len(first)}, got {came}")
