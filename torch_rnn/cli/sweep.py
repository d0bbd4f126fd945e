"""``rnn-parity sweep``: many runs of ``rnn-parity curves``, one verdict each, in one table."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from torch_rnn.cli.curves import STATUS, directory
from torch_rnn.cli.options import BadInput, whole

if TYPE_CHECKING:
    from torch_rnn.curves.sweep import Make, Row

FAILED, INTERRUPTED = 4, 130
STATUSES = STATUS | {"failed": FAILED}
PRECEDENCE = (0, 3, 4, 1)  # of the statuses of the rows, the last that occurs is the sweep's

SUMMARY = "many runs of curves from a TOML file, one verdict each, in one table"
DESCRIPTION = """\
Make many runs of rnn-parity curves, each with its controls and its verdict, on
all cores or on a Dask cluster, and lay them out in one table, a row each.

FILE is in TOML. Its keys are the options of rnn-parity curves without the
dashes, what is left out is the task's own default:

  [settings]            # of all runs
  task = "sine"
  epochs = 2

  [grid]                # every combination is a run
  cell = ["rnn", "lstm"]
  lr = [0.05, 0.2]

  [[run]]               # one more; as many of these as you like
  cell = "gru"
  optimizer = "adam"

clip = "off" and tables such as optimizer-settings = { momentum = 0.9 } are
values too; a file that is named is looked for beside FILE. All runs are looked
at before the first is made.

Printed: the table: what differs between the runs, the verdict, how far the
curves differ beside what rounding does, the losses of the last epoch, the test
errors and those of the baseline. How many runs have which verdict.

Written into --out:
  rows/        a file for each run as soon as it has ended: its run.json
  sweep.csv    all settings and figures, a row for each run, in FILE's order
  sweep.jsonl  the same as JSON, a line for each run
  sweep.md     the table that is printed

The same command goes on with a sweep that was stopped or killed: what is lost
is the runs that were under way. Runs that failed are made again. A run is known
by all its settings, by the data and by the versions of Python, NumPy, PyTorch
and rnn-parity; rows of runs that FILE no longer asks for stay in rows/, but not
in the table."""
EPILOG = """\
A cluster needs pip install 'rnn-parity[cluster]' here and on each worker, in
the same versions, and neither FILE nor its data there. A run takes one process,
so start workers with one thread: dask worker ADDRESS --nthreads 1 --nworkers 8.
Where a worker is lost its runs are made by another. The numbers are the same to
the last bit where the processors are of the same kind.

exit status:
  0  rounding explains all runs
  1  a run differs by more than rounding
  2  bad input
  3  in a run the data do not decide, or a loss is nan or infinite
  4  a run failed, and its row has the error; or the processes that make the
     runs were lost
  130  stopped by Ctrl-C; the rows that are there are in the table
Where several are true: 1, else 4, else 3.

examples:
  rnn-parity sweep grid.toml
  rnn-parity sweep grid.toml --out results --jobs 2
  rnn-parity sweep grid.toml --scheduler tcp://node1:8786"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="what to run, in TOML")
    parser.add_argument(
        "--out", type=directory, metavar="DIR", help="created if need be (default: FILE's name without .toml)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs", type=whole(1), metavar="N", help="runs at a time, one thread each (default: the number of cores)"
    )
    where.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster, such as tcp://node1:8786")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown, whatever the user's matplotlib is set to
    from torch_rnn.cli.progress import shown
    from torch_rnn.cli.sweep_file import read
    from torch_rnn.curves import sweep, sweep_table

    wanted = read(args.file)
    out = Path(args.file.stem) if args.out is None else args.out
    try:
        rows = sweep.rows(wanted, out)
        sweep_table.write(out, wanted, rows)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"argument --out: expected a directory to write into, got {out}: {reason}") from error
    kept = _outcomes(rows.values())
    made = kept.total() - kept["failed"]
    status, why = None, ""
    try:
        with _maker(args) as make, shown(len(wanted) - made) as advance:
            advance("")
            for run, row in sweep.sweep(wanted, out, make):
                rows[run] = row
                advance(_counted(_outcomes(rows.values())))
    except KeyboardInterrupt:
        status = INTERRUPTED
    except sweep.Lost as error:
        status, why = FAILED, f": {error}"
    finally:
        paths = sweep_table.write(out, wanted, rows)

    print(sweep_table.markdown(wanted, rows))
    outcomes = _outcomes(rows.values())
    already = f"; {made} of them were there already" if made else ""
    print(f"{len(rows)} of {len(wanted)} runs: {_counted(outcomes) or 'none'}{already}.")
    if others := {path.stem for path in (out / "rows").glob("*.json")} - {run.key for run in wanted}:
        print(f"{out / 'rows'} has {len(others)} more, of runs that {args.file} does not ask for.")
    print("\n" + "\n".join(f"wrote {path}" for path in paths), flush=True)
    if status is None:
        return max((STATUSES[outcome] for outcome in outcomes), key=PRECEDENCE.index)
    again = f"rnn-parity sweep {shlex.quote(str(args.file))} --out {shlex.quote(str(out))}"
    print(f"rnn-parity sweep: stopped after {len(rows)} of {len(wanted)} runs{why}; to go on: {again}", file=sys.stderr)
    return status


@contextmanager
def _maker(args: argparse.Namespace) -> Iterator[Make]:
    """Give what makes the runs: the cores of this machine, or a cluster."""
    from torch_rnn.curves import sweep
    from torch_rnn.measure.threads import cores

    if args.scheduler is None:
        yield sweep.locally(args.jobs or cores())
        return
    from torch_rnn.curves import cluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said here, in one line
    try:
        client = cluster.connect(args.scheduler)
    except sweep.Lost as error:
        raise BadInput(f"argument --scheduler: {error}") from error
    if spare := max(client.nthreads().values()) - 1:
        print(f"rnn-parity sweep: {spare} threads of a worker will be idle: --nthreads 1 --nworkers N", file=sys.stderr)
    with client:
        yield cluster.on_cluster(client)


def _outcomes(rows: Iterable[Row]) -> Counter[str]:
    return Counter("failed" if "error" in row else row["verdict"]["outcome"] for row in rows)


def _counted(outcomes: Counter[str]) -> str:
    return ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in STATUSES if outcome in outcomes)
