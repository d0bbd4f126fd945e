"""``rnn-parity bench``: how fast the NumPy networks are beside PyTorch's, and how near to the machine's limit."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from torch_rnn.cli.options import DTYPES, BadInput, all_of, blaming, check_file, whole

if TYPE_CHECKING:  # torch, matplotlib, rich and threadpoolctl are loaded when the command runs
    from torch_rnn.measure.bench import Record, Settings

CELLS = ("rnn", "lstm", "gru")

SUMMARY = "time both libraries: ratios, memory, and the limit of the machine"
DESCRIPTION = """\
Time the NumPy networks and their PyTorch twins in turn, in one process, with
the same weights, input and number of threads: forward, backward, both, and a
whole training step. PyTorch runs as it comes, with oneDNN. Every figure is a
ratio of medians, PyTorch's time over NumPy's, so above 1 NumPy is faster.

Printed: machine, versions, date; for each cell and dtype a table of shapes with
the ratios, the spread of the rounds, and "limit", the time of the bare matrix
products over NumPy's; geometric means; memory saved for backward and its peak;
how time and memory grow with T, B and H; the optimizers; what tape and modules
cost; the import. Beside each goal of the project: met or MISSED. With
--markdown instead: the table of ratios for README.md.

Written: nothing, or with --json all figures, with --chart a picture. Where jax
is installed, jax.lax.scan under jit is timed too."""
EPILOG = """\
Leave the machine alone meanwhile: --quick takes about two minutes on two cores,
the whole grid several times that.

exit status:
  0  measured; no figure changes that
  2  bad input

examples:
  rnn-parity bench --quick
  rnn-parity bench --json bench.json --chart bench.png --markdown
  rnn-parity bench --cells lstm --dtypes float32 --compare bench.json"""


def add_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what is measured")
    what.add_argument("--cells", nargs="+", choices=CELLS, default=CELLS, metavar="CELL", help=all_of(CELLS))
    what.add_argument(
        "--dtypes", nargs="+", choices=DTYPES, default=DTYPES[::-1], metavar="DTYPE", help=all_of(DTYPES[::-1])
    )
    what.add_argument(
        "--threads", type=whole(1), metavar="N", help="for NumPy and for PyTorch (default: the number of cores)"
    )
    what.add_argument("--quick", action="store_true", help="fewer shapes, small ones, and few rounds")
    output = parser.add_argument_group("output")
    output.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    output.add_argument("--chart", type=Path, metavar="FILE", help="draw the ratios, as PNG")
    output.add_argument("--markdown", action="store_true", help="print the table for README.md instead of the report")
    output.add_argument(
        "--compare", type=Path, metavar="OLD", help="say what has moved since the --json of a former run"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from torch_rnn.files import write_json
    from torch_rnn.measure import compare, report
    from torch_rnn.measure.bench import Settings
    from torch_rnn.measure.threads import cores

    old = _old_record(args.compare)
    for option, path in (("--json", args.json), ("--chart", args.chart)):
        if path is not None:
            check_file(option, path)
    if args.json is not None and args.chart is not None and args.json.resolve() == args.chart.resolve():
        raise BadInput(f"argument --chart: expected another file than that of --json, got {args.chart}")
    threads = cores() if args.threads is None else args.threads
    if threads > cores():
        raise BadInput(f"argument --threads: expected at most the number of cores, {cores()}, got {threads}")
    settings = Settings(tuple(dict.fromkeys(args.cells)), tuple(dict.fromkeys(args.dtypes)), threads, args.quick)
    try:
        record = _measure(settings)
    except MemoryError as error:
        raise BadInput("not enough memory for the largest shapes: try --quick") from error

    written = []
    if args.json is not None:  # first of all, should nobody listen to the rest
        with blaming("--json", args.json):
            write_json(args.json, record)
        written.append(args.json)
    if args.chart is not None:
        with blaming("--chart", args.chart):
            _draw(args.chart, record)
        written.append(args.chart)
    print(report.markdown(record) if args.markdown else report.text(record))
    if old is not None:
        print("\n" + compare.text(old, record))
    if written:
        print("\n" + "\n".join(f"wrote {path}" for path in written))
    return 0


def _old_record(path: Path | None) -> Record | None:
    """Return the record of a former run, read before the time is spent on the new one."""
    if path is None:
        return None
    from torch_rnn.measure import compare

    try:
        return compare.load(path)
    except OSError as error:
        raise BadInput(f"argument --compare: cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadInput(f"argument --compare: {path} is {error}") from error


def _measure(settings: Settings) -> Record:
    """Measure with the same threads for both; a terminal is shown how far it is."""
    from torch_rnn.cli.progress import shown
    from torch_rnn.measure import bench, threads

    with shown(len(bench.tasks(settings))) as advance, threads.limited(settings.threads):
        return bench.measure(settings, lambda task: advance(task.label))


def _draw(path: Path, record: Record) -> None:
    from numpy_rnn.files import write_aside
    from torch_rnn.measure import chart

    write_aside(path, lambda aside: chart.draw(aside, record))
