"""Options that several subcommands take: what they accept, their defaults, and how a task changes those."""

from __future__ import annotations

import argparse
import math
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from numpy_rnn.modules.sequence_model import CELLS
from numpy_rnn.tasks import SOURCE, TASKS, Task, load
from torch_rnn.curves.defaults import DEFAULTS, complete

DTYPES = ("float64", "float32")
OF_ARGUMENTS = {"hidden_size": "hidden"} | {  # options by the argument that they become
    name: name for name in ("bidirectional", "dropout", "embedding", "proj_size", "schedule_settings", "window")
}


class BadInput(Exception):
    """What the user gave cannot be used; the message names the option."""


def add_model_options(parser: argparse.ArgumentParser) -> Any:
    """Add the options that decide the task, the network and its input; return their group."""
    group = parser.add_argument_group("task and network")
    tasks = "; ".join(f"{name}: {(make.__doc__ or '').splitlines()[0].rstrip('.')}" for name, make in TASKS.items())
    group.add_argument("--task", choices=list(TASKS), help=f"{tasks} (default: sunspots)")
    add(group, "--cell", choices=list(CELLS), help="vanilla RNN with tanh (rnn) or relu (rnn-relu), LSTM, GRU")
    add(group, "--hidden", type=whole(1), metavar="H", help="hidden size")
    add(group, "--layers", type=whole(1), metavar="L", help="layers")
    group.add_argument(
        "--bidirectional", action="store_true", help="a second direction, backwards: it sees what comes next"
    )
    group.add_argument(
        "--proj-size", type=whole(0), default=0, metavar="P", help="projection of an LSTM's output (default: 0, none)"
    )
    add(group, "--window", type=whole(1), metavar="T", help="time steps of one forward call; the last may be shorter")
    add(group, "--dtype", choices=DTYPES, help="what both sides compute in")
    add(group, "--seed", type=whole(0), metavar="N", help="of the initial weights")
    return group


def add(group: Any, name: str, *, help: str, **arguments: Any) -> None:
    """Add an option whose default is in DEFAULTS, and may be the task's own."""
    default = DEFAULTS[name.removeprefix("--")]
    group.add_argument(name, default=None, help=f"{help} (default: {default})", **arguments)


def own_defaults(*unused: str) -> str:
    """Say which tasks have defaults of their own, for all options but the ``unused``."""
    text = ""
    for name in TASKS:
        if own := {option: value for option, value in load(name).defaults.items() if option not in unused}:
            options = " ".join(f"--{option}\0{value}" for option, value in own.items())
            wrapped = textwrap.fill(
                options + ".", 76, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
            text += f"The task {name} has defaults of its own:\n{wrapped}\n".replace("\0", " ")
    return text


def fill_defaults(args: argparse.Namespace, task: Task) -> None:
    """Give every option that the user left out the task's own default, else the general one."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    for name, value in complete(given, task).items():
        if getattr(args, name, value) is None:
            setattr(args, name, value)


def whole(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers of at least ``least``."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text!r}")
        return value

    return parse


def positive(text: str) -> float:
    """Parse a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text!r}")
    return value


def seconds(text: str) -> float:
    """Parse a finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"expected a finite number of at least 0, got {text!r}")
    return value


def positive_or_off(text: str) -> float | None:
    """Parse a finite number above 0, or "off"."""
    if text == "off":
        return None
    try:
        return positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"expected a finite number above 0 or off, got {text!r}") from None


def all_of(names: Sequence[str]) -> str:
    """Return the help text of an option that takes some of ``names``."""
    return f"some of {', '.join(names)} (default: all)"


def check_file(option: str, path: Path) -> None:
    """Raise ``BadInput`` unless ``path`` can be written."""
    if path.is_dir() or not path.parent.is_dir() or not path.name:
        raise BadInput(f"argument {option}: expected a file in a directory that exists, got {path}")
    try:
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise BadInput(f"argument {option}: cannot write into {path.parent}: {error.strerror or error}") from error


@contextmanager
def blaming(option: str, path: Path) -> Iterator[None]:
    """Raise ``BadInput`` for what cannot be written after all: the disk may have filled up meanwhile."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"argument {option}: cannot write {path}: {error.strerror or error}") from error


def blamed(message: str) -> str | None:
    """Return the option whose value was refused: what the libraries raise begins with the argument.

    >>> blamed("proj_size must be 0 for cell rnn"), blamed("unexpected")
    ('--proj-size', None)
    """
    name = message.split(" ", 1)[0]
    return f"--{OF_ARGUMENTS.get(name, name).replace('_', '-')}" if name in (*SOURCE, *OF_ARGUMENTS) else None


def command_line(command: str, settings: Mapping[str, Any]) -> str:
    """Return the command with every setting written out, wrapped for a terminal.

    >>> print(command_line("curves", {"bidirectional": True, "csv": "my data.csv"}))
    rnn-parity curves --bidirectional --csv 'my data.csv'

    A flag that is not set is left out.
    """
    lines = [f"rnn-parity {command}"]
    for name, value in settings.items():
        if value is False:
            continue
        word = f"--{name}" if value is True else f"--{name} {_written(value)}"
        if len(lines[-1]) + len(word) < 76:
            lines[-1] += f" {word}"
        else:
            lines.append(f"    {word}")
    return " \\\n".join(lines)


def _written(value: Any) -> str:
    """Return an option's value as a shell takes it."""
    if isinstance(value, Mapping):
        return " ".join(shlex.quote(f"{name}={entry}".replace(" ", "")) for name, entry in value.items())
    return shlex.quote("off" if value is None else str(value))
