"""``rnn-parity vectors``: golden vectors for those who port, and the judgement of a port's results."""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_rnn.cli.curves import directory
from torch_rnn.cli.options import BadInput, positive
from torch_rnn.vectors.cases import all_specs

SUMMARY = "golden vectors for a port: write them, and judge a port's results"
DESCRIPTION = """\
Write small and awkward cases of all cells with everything that a port must
reproduce (export), and compare what a port computed (check).

Printed: by export the files; by check what is wrong, by how much, and the bug
that it looks like. Written: by export vectors.npz, vectors.safetensors and
manifest.json; by check nothing."""
EXIT = """\
exit status:
  0  written, confirmed by PyTorch; or all that the port gave is right
  1  PyTorch computes something else; or something of the port is wrong
  2  bad input
"""
EXAMPLES = """\
examples:
  rnn-parity vectors export --out golden
  rnn-parity vectors check golden --theirs results.npz"""
EPILOG = f"{EXIT}\n{EXAMPLES}"

EXPORT = f"""\
Write {len(all_specs())} cases: RNN with tanh and relu, LSTM with and without projection, GRU;
layers, directions, lengths, windows with detach, saturated and closed gates,
T=1 and T=60, a batch of one, no biases. Each has its input, initial states,
weights, upstream gradients, outputs, every gradient, and the weights after
three steps of SGD with momentum and of Adam, in float64, computed by NumPy and
confirmed by PyTorch.

What goes in follows a formula of whole numbers that stands in the manifest, so
that a port needs no file reader: s = 75 * s mod 65537 for each entry, which is
scale * (floor(s / 256) - 128) / 128. All of it is exact in float32.

Printed: the files.

Written into DIR, which is made where it is missing:
  vectors.npz, vectors.safetensors   the same arrays, by CASE/TENSOR
  manifest.json    for each case its reason, sizes, tensors with shape and
                   formula; names, equations, tolerances, versions, hashes
The same versions on the same machine write the same bytes."""
CHECK = """\
Compare a port's results with the golden vectors in DIR, tensor by tensor.

FILE is an .npz or .safetensors file of float64 or float32 arrays with the names
of the manifest, CASE/TENSOR: for example lstm/output, lstm/dweight_hh_l0,
gru-deep/dx, rnn/sgd/3/weight_ih_l0. In Python:

  numpy.savez("results.npz", **{"lstm/output": ..., "lstm/dx": ...})

It may hold some of them only: those are judged, and what lacks is listed. What
goes into a case (lstm/x) may be there too: it is named if it is wrong, and
counts for nothing if it is right. Each array is judged by its own dtype.

Printed: for each case that is wrong its worst tensors, with the largest error,
relative to the tensor's largest entry ("error/scale") and in units in the last
place, and the bug that it looks like. Each known bug is recomputed for the
case: one is named only if it gives theirs, and leaves what is right alone. A
name is a place to look first, and no proof. Then what is missing, and the
verdict. Nothing is written."""


def add_options(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="what", required=True)
    export = commands.add_parser("export", help="write the golden vectors", description=EXPORT, epilog=EPILOG)
    export.add_argument("--out", type=directory, required=True, metavar="DIR", help="the directory to write into")
    export.set_defaults(parser=export, act=_export)
    check = commands.add_parser("check", help="judge a port's results", description=CHECK, epilog=EPILOG)
    check.add_argument("directory", type=directory, metavar="DIR", help="what export wrote")
    check.add_argument("--theirs", type=Path, required=True, metavar="FILE", help="the port's results")
    check.add_argument(
        "--tolerance",
        type=positive,
        metavar="X",
        help="largest error allowed, of each tensor's largest entry (default: 1e-12 for float64 arrays, 2e-4 for "
        "float32)",
    )
    check.set_defaults(parser=check, act=_check)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    status: int = args.act(args)
    return status


def _export(args: argparse.Namespace) -> int:
    if args.out.exists() and not args.out.is_dir():
        raise BadInput(f"argument --out: expected a directory to write into, got {args.out}")
    from torch_rnn.vectors.export import NotConfirmed, export

    try:
        files = export(args.out)
    except NotConfirmed as error:
        print(f"nothing written: {error}")
        return 1
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"argument --out: expected a directory to write into, got {args.out}: {reason}") from error
    print("\n".join(f"wrote {path}" for path in files))
    return 0


def _check(args: argparse.Namespace) -> int:
    from torch_rnn.vectors import check

    try:
        golden = check.load(args.directory)
    except OSError as error:
        raise BadInput(f"argument DIR: cannot read {error.filename or args.directory}: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"argument DIR: {error}") from error
    try:
        verdict = check.check(golden, check.load_theirs(args.theirs, golden), args.tolerance)
    except OSError as error:
        raise BadInput(f"argument --theirs: cannot read {args.theirs}: {error.strerror or error}") from error
    except (ValueError, ImportError) as error:
        raise BadInput(f"argument --theirs: {error}") from error
    print(check.text(verdict))
    return 0 if verdict.ok else 1
