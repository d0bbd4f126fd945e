"""Many runs, one verdict each: a run is one row, which is kept in a file of its own as soon as it is there."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]

from numpy_rnn.tasks import Task
from torch_rnn.curves.report import summary
from torch_rnn.curves.runs import Run, Settings
from torch_rnn.curves.verdict import judge
from torch_rnn.files import write_json
from torch_rnn.measure.threads import limited
from torch_rnn.version import versions

Row = dict[str, Any]  # what run.json holds of a run; of one that failed: settings, versions and error


class Lost(Exception):
    """Nobody is there to make the runs, or any more; the message says why."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A run that is wanted, with its data: who makes it need not have the file."""

    settings: Settings
    task: Task

    @cached_property
    def key(self) -> str:
        """What decides the run's numbers, all settings and versions, as a name for its file."""
        decisive = {"settings": asdict(self.settings), "versions": versions()}
        return sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:32]


Made = Generator[tuple[Planned, Row], None, None]  # in the order in which the runs end
Make = Callable[[Sequence[Planned]], Made]


def sweep(wanted: Sequence[Planned], directory: Path, make: Make) -> Made:
    """Make the runs that ``directory`` does not have yet and yield each with its row, kept there already.

    >>> import tempfile
    >>> from numpy_rnn.tasks import load
    >>> settings = Settings("sine", "rnn", 4, 1, 50, "detach", "sgd", 0.05, None, 2, "float64", 0)
    >>> wanted = [Planned(settings, load("sine"))]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     made = [row["verdict"]["outcome"] for _, row in sweep(wanted, Path(directory), locally(jobs=1))]
    ...     made, list(sweep(wanted, Path(directory), locally(jobs=1))), len(rows(wanted, Path(directory)))
    (['rounding'], [], 1)

    A run that failed has a row with the error, and is made again the next time. ``make`` is ``locally(jobs)`` or
    ``torch_rnn.curves.cluster.on_cluster(client)``. Raises ``OSError`` for a row that cannot be written, and ``Lost``
    where what makes the runs is lost.
    """
    (directory / "rows").mkdir(parents=True, exist_ok=True)
    there = rows(wanted, directory)
    made = make([run for run in wanted if "error" in there.get(run, {"error": "not made yet"})])
    try:
        for run, row in made:
            write_json(_file(directory, run), row)
            yield run, row
    finally:
        made.close()  # ends the processes, also where something was raised here


def rows(wanted: Sequence[Planned], directory: Path) -> dict[Planned, Row]:
    """Return the rows that ``directory`` has of the wanted runs."""
    found = {}
    for run in wanted:
        try:
            found[run] = json.loads(_file(directory, run).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # not there, or nothing that this project has written
            continue
    return found


def _file(directory: Path, run: Planned) -> Path:
    return directory / "rows" / f"{run.key}.json"


_ONE_AT_A_TIME = threading.Lock()  # in a process: dropout's masks come from PyTorch's one generator


def make_row(settings: Settings, task: Task) -> Row:
    """Train, judge, and return the row; it is the same on any machine that rounds alike."""
    try:
        with _ONE_AT_A_TIME, limited(1):
            run = Run(settings, task=task)
            for _ in run.train():
                pass
            return summary(run, run.scores(), judge(run))
    except Exception as error:
        return failed(settings, f"{type(error).__name__}: {error}")


def failed(settings: Settings, error: str) -> Row:
    """Return the row of a run that failed."""
    return {"settings": asdict(settings), "versions": versions(), "error": " ".join(error.split())}


def locally(jobs: int) -> Make:
    """Return what makes runs in so many processes of this machine, one thread each."""

    def make(wanted: Sequence[Planned]) -> Made:
        processes = min(jobs, len(wanted))
        if processes <= 1:
            for run in wanted:
                yield run, make_row(run.settings, run.task)
            return
        own = {"initializer": _start_worker, "initargs": (os.getpid(),)}
        parallel = joblib.Parallel(processes, return_as="generator_unordered", batch_size=1, max_nbytes=None, **own)
        numbered = parallel(joblib.delayed(_numbered)(i, run.settings, run.task) for i, run in enumerate(wanted))
        try:
            for i, row in numbered:
                yield wanted[i], row
        except BrokenProcessPool as error:
            raise Lost("a process was killed, perhaps for want of memory: fewer --jobs take less") from error
        finally:
            numbered.close()

    return make


def _numbered(i: int, settings: Settings, task: Task) -> tuple[int, Row]:  # pragma: no cover - in a worker
    return i, make_row(settings, task)


def _start_worker(parent: int) -> None:  # pragma: no cover - in a worker, whose process is not measured
    """Leave Ctrl-C to the parent, which ends its workers, and end when the parent was killed: nobody else would."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
