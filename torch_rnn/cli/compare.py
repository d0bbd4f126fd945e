"""``rnn-parity compare``: two runs that already exist, from the logs that they left."""

from __future__ import annotations

import argparse
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from torch_rnn.cli.curves import directory
from torch_rnn.cli.options import BadInput

if TYPE_CHECKING:  # torch and matplotlib are loaded when the command runs
    from torch_rnn.curves.compare_logs import LogComparison
    from torch_rnn.curves.logs import Log

ROWS = 8  # of the table of steps
STATUS = {"equal": 0, "rounding": 0, "not different": 0, "not rounding": 1, "different": 1, "cannot tell": 3}

SUMMARY = "compare the loss curves in two logs: rounding or a bug?"
DESCRIPTION = """\
Compare the loss curves of two runs that already exist, whatever made them.

A and B are each a CSV file (separated by comma, semicolon or tab), a file of
JSON lines, a TensorBoard event file, or the directory of one run's event files.
The column of the loss is guessed where one is obvious, else name it: behind the
file, as in run.csv:train_loss, or for all files with --column. Keys within keys
of JSON are joined by dots. Rows are matched by their step where both logs count
steps, else one by one; steps and epochs are not matched unless --step-column
says so. Rows without a loss, or without a partner, are left out; of rows with
the same step the last wins, as after a restart. All that is said.

How much of a difference is rounding only control runs show: the same program
again, from initial weights moved by one unit in the last place, up or down (in
PyTorch, w.copy_(torch.nextafter(w, torch.randn_like(w) * torch.inf)) for every
weight). Give their logs with --controls-a, --controls-b or both; if of one side
alone, then of the one that computes with fewer digits. Up to 10 times what
rounding does to the controls is rounding, from 100 times on it is a bug, and
between them the logs do not decide. Digits that a log does not hold count as
rounding: with 4 decimals nothing below 0.0001 can be seen.

Other runs of the same two programs, from other seeds, go into --seeds-a and
--seeds-b. Then the two groups are compared: whether their curves differ by more
than the runs of one group among themselves, by a permutation test with p at
most 0.01. That needs five runs a side, A and B counted.

Without either, curves that differ are not judged; what their start and their
growth look like is printed as marks, which prove nothing.

Printed: the logs, what was left out, a table of steps, where the curves first
differ and where they are 1 % apart, how fast the difference grows until then,
how large it gets, and the verdict. Written with --out, replacing what is there:
  compare.csv   every common step: both losses, their difference, what rounding
                does; and the controls or seeds
  compare.png, compare.svg   both curves, and below them their difference
  compare.json  all figures and the verdict"""
EPILOG = """\
exit status:
  0  equal, or rounding; of seeds: not different
  1  not rounding; of seeds: different
  2  bad input
  3  the logs do not decide

examples:
  rnn-parity compare ours.csv theirs.jsonl
  rnn-parity compare run/curves.csv:numpy_loss run/curves.csv:torch_loss
  rnn-parity compare runs/mine runs/theirs --column train/loss --out compared
  rnn-parity compare a.csv b.csv --controls-a a1.csv a2.csv --controls-b b1.csv
  rnn-parity compare a0.csv b0.csv --seeds-a a[1-4].csv --seeds-b b[1-4].csv"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the log of one run: FILE, DIRECTORY or FILE:COLUMN")
    parser.add_argument("b", metavar="B", help="the log of the other")
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--column", metavar="LOSS", help="the losses, where FILE:COLUMN does not say (default: a guess)"
    )
    reading.add_argument(
        "--step-column", metavar="STEP", help="the steps; row: match row with row (default: step, iteration, epoch...)"
    )
    more = parser.add_argument_group("more runs")
    for name in ("controls", "seeds"):
        for side in "ab":
            text = f"the same from weights one unit away, of {side.upper()}"
            text = text if name == "controls" else f"other runs of {side.upper()}, from other seeds"
            more.add_argument(f"--{name}-{side}", nargs="+", default=[], metavar="FILE", help=text)
    output = parser.add_argument_group("output")
    output.add_argument("--out", type=directory, metavar="DIR", help="write there; created if need be")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown, whatever the user's matplotlib is set to
    from torch_rnn.curves.compare_logs import compare_logs
    from torch_rnn.curves.logs import read_log
    from torch_rnn.curves.logs_hints import hints

    if (args.controls_a or args.controls_b) and (args.seeds_a or args.seeds_b):
        raise BadInput("argument --seeds-a, --seeds-b: not allowed with --controls-a or --controls-b")

    def read(option: str, sources: list[str]) -> list[Log]:
        try:
            return [read_log(source, args.column, args.step_column) for source in sources]
        except (ValueError, ImportError, OSError) as error:
            raise BadInput(f"argument {option}: {error}") from error

    a, b = read("A", [args.a])[0], read("B", [args.b])[0]
    controls_a, controls_b = read("--controls-a", args.controls_a), read("--controls-b", args.controls_b)
    seeds_a, seeds_b = read("--seeds-a", args.seeds_a), read("--seeds-b", args.seeds_b)
    try:
        found = compare_logs(
            a, b, step_column=args.step_column,
            controls_a=controls_a, controls_b=controls_b, seeds_a=seeds_a, seeds_b=seeds_b,
        )  # fmt: skip
    except ValueError as error:
        raise BadInput(str(error)) from error
    paths = _write(args.out, found) if args.out else []  # first of all, should nobody listen to the rest

    print(_head(found), end="\n\n")
    if len(found.steps):
        print(_table(found), end="\n\n")
        print(_figures(found), end="\n\n")
    print(_filled(found.sentence()))
    if not found.kind and (marks := hints(found)):
        print("\nMarks, which prove nothing:")
        print("\n".join(_filled(mark, "- ", "  ") for mark in marks))
    if paths:
        print("\n" + "\n".join(f"wrote {path}" for path in paths))
    return STATUS[found.outcome]


def _write(directory: Path, found: LogComparison) -> list[Path]:
    from torch_rnn.curves import logs_report

    try:
        return logs_report.write(directory, found)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"argument --out: expected a directory to write into, got {directory}: {reason}") from error


def _head(found: LogComparison) -> str:
    """Say what is compared, and what is not."""
    lines = [
        f"{name}  {log.source}: {log.column}, {len(log.losses)} rows, {log.precision}"
        for name, log in (("A", found.a), ("B", found.b))
    ]
    if len(found.steps):
        what = f"{found.a.step_column} with {found.b.step_column}" if found.by == "step" else "row with row"
        lines.append(f"{len(found.steps)} common steps, {what}: {_range(found)}")
    return "\n".join([*lines, *(_filled(f"{note}.", "", "  ") for note in found.notes)])


def _range(found: LogComparison) -> str:
    return f"{found.steps[0]:.10g} to {found.steps[-1]:.10g}"


def _table(found: LogComparison) -> str:
    """Lay out some steps, evenly chosen, the first and the last among them."""
    last = len(found.steps) - 1
    controls = found.kind == "controls"
    tail = f"{'rounding':>12}" if controls else ""
    lines = [f"{found.by:>10}{'loss of A':>18}{'loss of B':>18}{'difference':>14}{tail}"]
    for i in sorted({round(k * last / (ROWS - 1)) for k in range(ROWS)}):
        difference = f"{found.difference[i]:.1e}" if found.difference[i] else "0"
        tail = f"{found.evidence.rounding[i]:>12.1e}" if controls else ""
        lines.append(
            f"{found.steps[i]:>10.10g}{found.a_loss[i]:>18.10g}{found.b_loss[i]:>18.10g}{difference:>14}{tail}"
        )
    return "\n".join(lines)


def _figures(found: LogComparison) -> str:
    """Say where the curves separate, and how."""
    if found.first_different is None:
        return "The curves do not differ."
    largest = int(found.difference.argmax())
    share = found.difference[largest] / found.evidence.loss[largest]
    lines = [
        ("first difference", f"step {found.first_different:.10g}"),
        ("1 % of the loss apart", "never" if found.separate_at is None else f"from step {found.separate_at:.10g} on"),
        ("growth until then", "unknown" if found.growth is None else f"{found.growth:.4g} times a step"),
        (
            "largest difference",
            f"{found.difference[largest]:.2g} at step {found.steps[largest]:.10g}, {share:.1g} of the loss",
        ),
    ]
    return "\n".join(f"{name:<23}{value}" for name, value in lines)


def _filled(text: str, first: str = "", later: str = "") -> str:
    return textwrap.fill(
        text, 78, initial_indent=first, subsequent_indent=later, break_on_hyphens=False, break_long_words=False
    )
