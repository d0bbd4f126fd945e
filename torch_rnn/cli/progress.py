"""How far long work is, for whoever waits at a terminal or reads a log; and how it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

QUIET = 60.0  # seconds between two lines of a log, at least
PARTS = 10  # of the work, one line each at most


@contextmanager
def shown(total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar of ``total`` parts on a terminal's stderr; what it yields is called with the label of each new part.

    It is drawn only between two parts: a thread that redraws would take time from what is measured.
    """
    console = _console()
    with _bar(console, [], ["{task.description}"], auto_refresh=False, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total, completed=-1)
        yield lambda label: progress.update(bar, advance=1, description=label, refresh=True)


@contextmanager
def training(made: int, total: int) -> Iterator[Callable[[float], None]]:
    """Show the steps of a training on stderr; what it yields is called with the loss after each of them.

    A terminal has a bar with the time gone and left. Elsewhere there is a line after each tenth of the steps, but none
    in the first minute and at most one a minute, so short work is silent and a log stays short.
    """
    console = _console()
    if not console.is_terminal:
        yield _log(made, total)
        return
    with _bar(console, ["training"], ["steps, loss {task.fields[loss]},"]) as progress:
        bar = progress.add_task("", total=total, completed=made, loss="")
        yield lambda loss: progress.update(bar, advance=1, loss=f"{loss:.4g}")


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _bar(console: Console, before: Sequence[str], after: Sequence[str], **options: Any) -> Progress:
    """Return a bar with the parts made and the time gone and left, between words of its own."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    times = (TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left"))
    words = [[TextColumn(text) for text in texts] for texts in (before, after)]
    return Progress(
        *words[0], BarColumn(), MofNCompleteColumn(), *words[1], *times, console=console, transient=True, **options
    )


def _log(first: int, total: int) -> Callable[[float], None]:
    """Return what prints a line now and then, called after each step from ``first`` on."""
    began = said = time.monotonic()
    made = told = first

    def step(loss: float) -> None:
        nonlocal made, said, told
        made += 1
        now = time.monotonic()
        if now - said < QUIET or (made - told) * PARTS < total:
            return
        said, told = now, made
        gone = now - began
        left = gone / (made - first) * (total - made)
        times = " gone, ".join(str(timedelta(seconds=round(seconds))) for seconds in (gone, left))
        print(f"training: {made} of {total} steps, loss {loss:.4g}, {times} left", file=sys.stderr, flush=True)

    return step


class Stopped(KeyboardInterrupt):
    """The second signal in a ``stoppable`` block; ``number`` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stoppable() -> Iterator[Callable[[], int | None]]:
    """Inside the block the first Ctrl-C or SIGTERM only shows in what the block asks: its number, or None.

    A second one raises ``Stopped``, a third does what it would have done without the block. Signals that are ignored,
    as under nohup, stay so; in a thread nothing is changed, for signals come to the main one.
    """
    caught: list[int] = []
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def catch(number: int, frame: Any) -> None:
        caught.append(number)
        if len(caught) > 1:
            restore()
            raise Stopped(number)

    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        before.update({number: handler for number, handler in found.items() if handler is not signal.SIG_IGN})
    for number in before:
        signal.signal(number, catch)
    try:
        yield lambda: caught[0] if caught else None
    finally:
        restore()
