"""The whole measurement: one task after another, and all figures as one JSON-able record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from torch_rnn.measure import goals, growth, jax_peer, limit, machine, memory, optimizers, overhead, recompute
from torch_rnn.measure.grid import Row, rows
from torch_rnn.measure.sides import OPTIMIZER, sides
from torch_rnn.measure.timing import QUICK, ROW, SMALL, Effort, Rounds, interleave, quartiles, ratio

FORMAT = 1  # of the record; raised when an older one can no longer be read
PHASES = ("forward", "backward", "both", "step")
MEMORY_SHAPE, QUICK_MEMORY_SHAPE = (100, 32, 128, 256), (50, 16, 32, 64)  # T, B, I, H

Record = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What a measurement was asked for."""

    cells: tuple[str, ...]
    dtypes: tuple[str, ...]
    threads: int
    quick: bool


@dataclass(frozen=True)
class Task:
    """One thing to be measured, and the list of the record that it belongs to."""

    section: str
    label: str
    run: Callable[[], Record]


def tasks(settings: Settings) -> list[Task]:
    """Return everything that is to be measured, in order."""
    quick = settings.quick
    effort, small = (QUICK, QUICK) if quick else (ROW, SMALL)
    pairs = [(cell, dtype) for cell in settings.cells for dtype in settings.dtypes]
    found = [
        Task("rows", f"{row.cell} {row.dtype} {row.label}", partial(measure_row, row, effort))
        for row in rows(settings.cells, settings.dtypes, quick)
    ]
    shape = QUICK_MEMORY_SHAPE if quick else MEMORY_SHAPE
    for cell, dtype in pairs:
        found.append(Task("memory", f"memory of {cell} {dtype}", partial(memory.compare, Row(cell, dtype, *shape))))
    for cell in settings.cells:
        for letter in "TBH":
            run = partial(growth.growth, cell, settings.dtypes[0], letter, small, quick)
            found.append(Task("growth", f"{cell} for growing {letter}", run))
    for cell in [cell for cell in settings.cells if cell in recompute.CELLS]:
        run = partial(recompute.curve, cell, settings.dtypes[0], small, quick)
        found.append(Task("recompute", f"{cell} with recompute_every", run))
    for name in optimizers.QUICK_NAMES if quick else optimizers.NAMES:
        for dtype in settings.dtypes:
            found.append(Task("optimizers", f"{name} {dtype}", partial(optimizers.compare, name, dtype, small, quick)))
    for cell in settings.cells:
        run = partial(overhead.overhead, cell, settings.dtypes[0], small)
        found.append(Task("overhead", f"overhead of {cell}", run))
    found.append(Task("imports", "imports", partial(overhead.imports, quick)))
    return found


def measure(settings: Settings, before_each: Callable[[Task], None] = lambda task: None) -> Record:
    """Do all tasks and return the record; the caller has set the threads."""
    record: Record = {
        "format": FORMAT,
        "date": machine.today(),
        "machine": machine.machine(),
        "versions": machine.versions(),
        "settings": {**asdict(settings), "optimizer": OPTIMIZER},
    }
    for task in tasks(settings):
        before_each(task)
        record.setdefault(task.section, []).append(task.run())
    record["means"] = goals.means(record["rows"])
    return record


def measure_row(row: Row, effort: Effort) -> Record:
    """Return the seconds of every side and phase of a row, PyTorch's over NumPy's, and the limit's over NumPy's."""
    both = sides(row)
    works = {f"{name} {kind}": getattr(side, kind) for kind in ("passes", "step") for name, side in both.items()}
    works["limit"] = limit.limit(row)
    if (peer := jax_peer.work(row)) is not None:
        works["jax"] = peer
    found = interleave(works, effort)
    rounds: dict[str, Rounds] = {name: found[f"{name} passes"] | found[f"{name} step"] for name in both}
    rounds |= {name: phases for name, phases in found.items() if name in ("limit", "jax")}
    ours = rounds["numpy"]
    times = {phase: ratio(rounds["torch"][phase], ours[phase]) for phase in PHASES}
    of_limit = {phase: ratio(rounds["limit"][phase], ours[phase]) for phase in PHASES}
    return {
        **row.as_json(),
        "rounds": len(ours["both"]),
        "seconds": {
            name: {phase: quartiles(values) for phase, values in phases.items()} for name, phases in rounds.items()
        },
        "ratio": times,
        "of_limit": of_limit,
        "jax_ratio": ratio(rounds["jax"]["both"], ours["both"]) if "jax" in rounds else None,
        "goals": goals.of_row(row, times["both"]["median"], of_limit["both"]["median"]),
    }
