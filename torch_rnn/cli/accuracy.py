"""``rnn-parity accuracy``: how far both libraries' outputs and gradients are from the truth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from torch_rnn.cli.options import DTYPES, BadInput, all_of, blaming, check_file

if TYPE_CHECKING:  # torch, rich and threadpoolctl are loaded when the command runs
    from torch_rnn.measure.accuracy import Settings
    from torch_rnn.measure.bench import Record

CELLS = ("rnn", "rnn-relu", "lstm", "gru")

SUMMARY = "measure the rounding error of both libraries' outputs and gradients"
DESCRIPTION = """\
Give the NumPy networks and their PyTorch twins the same weights, input and
upstream gradients, and compare what each makes of them with the same pass in a
wider type: float32 with float64, float64 with longdouble (with mpmath, on the
smallest shapes, where longdouble is float64). A tensor's error is its largest,
in units of the last place of its largest entry. Among the cases are T = 1000,
gates that are nearly shut, saturated tanh, and states that keep all they hold.

Printed: machine, versions, date; for each cell and dtype a table of the cases
and one of the tensors, NumPy's errors beside PyTorch's, medians and worst over
the seeds; the errors of the functions that both libraries are built of. Beside
each goal of the project: met or MISSED.

Written: nothing, or with --json all figures."""
EPILOG = """\
--quick takes some seconds, the whole grid some minutes.

exit status:
  0  measured; no figure changes that
  2  bad input

examples:
  rnn-parity accuracy --quick
  rnn-parity accuracy --json accuracy.json
  rnn-parity accuracy --cells lstm gru --dtypes float32"""


def add_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what is measured")
    what.add_argument("--cells", nargs="+", choices=CELLS, default=CELLS, metavar="CELL", help=all_of(CELLS))
    what.add_argument(
        "--dtypes", nargs="+", choices=DTYPES, default=DTYPES[::-1], metavar="DTYPE", help=all_of(DTYPES[::-1])
    )
    what.add_argument("--quick", action="store_true", help="fewer shapes, small ones, and few seeds")
    output = parser.add_argument_group("output")
    output.add_argument("--json", type=Path, metavar="FILE", help="write all figures")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from torch_rnn.files import write_json
    from torch_rnn.measure.accuracy import Settings
    from torch_rnn.measure.accuracy_report import text

    if args.json is not None:
        check_file("--json", args.json)
    settings = Settings(tuple(dict.fromkeys(args.cells)), tuple(dict.fromkeys(args.dtypes)), args.quick)
    try:
        record = _measure(settings)
    except MemoryError as error:
        raise BadInput("not enough memory for the largest shapes: try --quick") from error
    if args.json is not None:  # first of all, should nobody listen to the rest
        with blaming("--json", args.json):
            write_json(args.json, record)
    print(text(record))
    if args.json is not None:
        print(f"\nwrote {args.json}")
    return 0


def _measure(settings: Settings) -> Record:
    """Measure with as many threads as the settings say; a terminal is shown how far it is."""
    from torch_rnn.cli.progress import shown
    from torch_rnn.measure import accuracy, threads

    with shown(len(accuracy.measured_cases(settings))) as advance, threads.limited(settings.threads):
        return accuracy.measure(settings, lambda case: advance(f"{case.cell} {case.dtype} {case.label}"))
