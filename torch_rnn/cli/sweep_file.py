"""The TOML file of a sweep: which runs it asks for, each looked at before the first is made."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from torch_rnn.cli import curves
from torch_rnn.cli.options import BadInput

if TYPE_CHECKING:
    from numpy_rnn.tasks import Task
    from torch_rnn.curves.sweep import Planned

TABLES = {"settings": dict, "grid": dict, "run": list}
IN_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", dict: "a table"}

Given = dict[str, tuple[str, Any]]  # of each setting: the table that it is from, its value


def read(path: Path) -> list[Planned]:
    """Return the runs that a file asks for: the grid's, its last key changing fastest, then each ``[[run]]``.

    Files that it names are looked for beside it. Raises ``BadInput``, which names the file, the table and the key, for
    whatever cannot be a run.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"argument FILE: cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # of the syntax, or of the encoding
        raise BadInput(f"{path}: expected TOML in UTF-8, got: {error}") from error
    try:
        with chdir(path.parent):
            return _planned(content)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _planned(content: Mapping[str, Any]) -> list[Planned]:
    from torch_rnn.curves.runs import Settings
    from torch_rnn.curves.sweep import Planned

    parser = argparse.ArgumentParser(exit_on_error=False, add_help=False)
    curves.add_options(parser)
    options = vars(parser.parse_args([]))
    hints = get_type_hints(Settings)
    kinds = {field.name: _kinds(hints[field.name]) for field in fields(Settings) if field.name in options}
    planned: dict[str, Planned] = {}
    tasks: dict[Any, Task] = {}
    for given in _combinations(content, kinds):
        args = _parsed(parser, given)
        controls, args.controls = args.controls, 0  # they are not looked at, so not made
        try:
            run = curves.prepared(args, tasks)
        except BadInput as error:
            name, _, message = str(error).removeprefix("argument --").partition(": ")
            table = given.get(name.replace("-", "_"), ("", None))[0]
            raise BadInput(f"{table} {name}: {message}, in the run {_listed(given)}".lstrip()) from error
        settings = replace(run.settings, controls=controls)
        if repr(settings) in planned:
            raise BadInput(f"expected each run once, got the run {_listed(given)} a second time")
        planned[repr(settings)] = Planned(settings, run.task)
    return list(planned.values())


def _combinations(content: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> Iterator[Given]:
    """Yield the settings of each run, with the tables that they are from."""
    for table, value in content.items():
        if table not in TABLES:
            raise BadInput(f"expected the tables {', '.join(TABLES)}, got {table}")
        if not isinstance(value, TABLES[table]) or not all(isinstance(run, dict) for run in content.get("run", [])):
            raise BadInput(f"expected {'[[run]]' if table == 'run' else f'[{table}]'}, got {table} = {value!r}")
    if not content.get("grid") and not content.get("run"):
        raise BadInput("expected a [grid] or a [[run]], got neither")
    settings = _entries("[settings]", content.get("settings", {}), kinds)
    grid = _entries("[grid]", content.get("grid", {}), kinds)
    if twice := settings.keys() & grid.keys():
        raise BadInput(f"[grid] {min(twice)}: expected it in one table, got it in [settings] too")
    if grid:
        for values in product(*(values for _, values in grid.values())):
            yield settings | {name: ("[grid]", value) for name, value in zip(grid, values, strict=True)}
    for i, run in enumerate(content.get("run", []), 1):
        yield settings | _entries(f"[[run]] {i}", run, kinds)


def _entries(table: str, entries: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> Given:
    """Return the entries of a table by the names of the settings, which may be written as the options are."""
    given: Given = {}
    for key, value in entries.items():
        name = key.replace("-", "_")
        if name not in kinds:
            raise BadInput(f"{table} {key}: expected one of {', '.join(kinds)}")
        if name in given:
            raise BadInput(f"{table} {name}: expected it once, got it with - and with _")
        if table == "[grid]" and not (isinstance(value, list) and value):
            raise BadInput(f"{table} {name}: expected a list of at least one value, got {value!r}")
        for entry in value if table == "[grid]" else [value]:
            if not _fits(entry, kinds[name]):
                expected = " or ".join(words for kind, words in IN_WORDS.items() if kind in kinds[name])
                more = "; lists belong into [grid]" if isinstance(entry, list) and table != "[grid]" else ""
                raise BadInput(f"{table} {name}: expected {expected}, got {entry!r}{more}")
        given[name] = (table, value)
    return given


def _kinds(hint: Any) -> tuple[type, ...]:
    """Return the types that a setting may have, as TOML has them."""
    return (dict,) if get_origin(hint) is Mapping else get_args(hint) or (hint,)


def _fits(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether the value has one of the types; what "off" means is the option's to say."""
    return type(value) in kinds or (type(value) is int and float in kinds) or (value == "off" and NoneType in kinds)


def _parsed(parser: argparse.ArgumentParser, given: Given) -> argparse.Namespace:
    """Return what the options of ``rnn-parity curves`` make of the settings."""
    words = []
    for name, (_, value) in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, dict):
            words += [option, *(f"{key}={tuple(v) if isinstance(v, list) else v}" for key, v in value.items())]
        elif isinstance(value, bool):
            words += [option] if value else []
        else:
            words.append(f"{option}={value}")
    try:
        return parser.parse_args(words)
    except argparse.ArgumentError as error:
        name = str(error.argument_name).removeprefix("--").replace("-", "_")
        raise BadInput(f"{given[name][0]} {name}: {error.message}") from error


def _listed(given: Given) -> str:
    """Return what tells a run from the others of its file."""
    return ", ".join(f"{name} = {value!r}" for name, (table, value) in given.items() if table != "[settings]")
