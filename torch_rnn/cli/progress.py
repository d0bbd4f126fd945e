"""How far a long measurement is, for whoever waits at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar of ``total`` parts on a terminal's stderr; what it yields is called with the label of each new part.

    It is drawn only between two parts: a thread that redraws would take time from what is measured.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.description}"),
    )
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("", total=total, completed=-1)
        yield lambda label: progress.update(bar, advance=1, description=label, refresh=True)
