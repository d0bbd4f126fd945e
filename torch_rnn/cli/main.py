"""The command ``rnn-parity``: finds the subcommand, and turns every failure into one line and an exit status."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from torch_rnn.cli import accuracy, bench, compare, curves, gradients, inplace, sweep, vectors
from torch_rnn.cli.options import BadInput
from torch_rnn.version import project_version

COMMANDS = {
    "curves": curves,
    "compare": compare,
    "sweep": sweep,
    "gradients": gradients,
    "inplace": inplace,
    "bench": bench,
    "accuracy": accuracy,
    "vectors": vectors,
}
EXTRAS = {  # of the packages that a command may find missing
    **dict.fromkeys(("torch", "joblib", "matplotlib", "plotly", "rich", "threadpoolctl"), "parity"),
    "distributed": "cluster",
    "tensorboard": "tensorboard",
}
BAD_INPUT, INTERRUPTED, NOBODY_LISTENS = 2, 130, 141  # as a shell reports signals: 128 + SIGINT, 128 + SIGPIPE

DESCRIPTION = """\
Recurrent networks by hand in NumPy, laid beside PyTorch: the same weights, the
same steps, the same numbers."""
EPILOG = """\
Every command has its own --help, which says what is printed and written.

exit status:
  0  both sides agree
  1  they do not
  2  bad input
  3  the data do not decide (curves, compare, sweep)

examples:
  rnn-parity curves                 learn the sunspots: rounding or a bug?
  rnn-parity compare a.csv b.jsonl  the same of two logs that you have
  rnn-parity sweep grid.toml        the same for many settings, in one table
  rnn-parity gradients --layers 2   compare every gradient of one window
  rnn-parity inplace                why an RNN loop says "modified by an inplace operation"
  rnn-parity bench --quick          how fast each side is
  rnn-parity accuracy --quick       how many digits each side keeps
  rnn-parity vectors export --out golden                  numbers for a port
  rnn-parity vectors check golden --theirs results.npz    and its likely bug"""


class Parser(argparse.ArgumentParser):
    """An argument parser that keeps the layout of its texts and reports bad input in one line."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **arguments)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {' '.join(message.split())}\n")


def build_parser() -> Parser:
    parser = Parser(prog="rnn-parity", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"rnn-parity {project_version()}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name, module in COMMANDS.items():
        command = subparsers.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION, epilog=module.EPILOG)
        module.add_options(command)
        command.set_defaults(run=module.run, parser=command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``rnn-parity`` with ``argv``, by default the process's, and return its exit status.

    Raises ``SystemExit`` (status 2) for bad input, after one line on stderr.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path may have letters that the terminal has not
    # Said by PyTorch of a float32 LSTM with --proj-size; it then computes by its own rules, which are meant.
    warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
    parser = build_parser()
    words = sys.argv[1:] if argv is None else argv
    args, unknown = parser.parse_known_args(words, argparse.Namespace(words=words))
    if unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except BadInput as error:
        args.parser.error(str(error))
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        args.parser.error(f"{error.name} is not installed: pip install 'rnn-parity[{EXTRAS[error.name]}]'")
    except MemoryError:
        args.parser.error("not enough memory: try a smaller --hidden, --layers or --window")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's last flush fails again
        return NOBODY_LISTENS
    except OSError as error:
        args.parser.error(str(error))
    except KeyboardInterrupt:
        print(f"{args.parser.prog}: interrupted", file=sys.stderr)
        return INTERRUPTED
    return status
