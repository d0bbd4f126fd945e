"""``rnn-parity gradients``: one forward and backward on both backends, every number compared."""

from __future__ import annotations

import argparse

import numpy as np

from numpy_rnn import tasks
from torch_rnn.cli.options import BadInput, add_model_options, blamed, command_line, fill_defaults, own_defaults

SUMMARY = "compare one window's outputs and gradients on both backends"
DESCRIPTION = """\
Run one window of the task forward and backward through a hand-written NumPy
network and its PyTorch twin, from the same weights, a random initial state and
random upstream gradients, and compare the output, the final state and every
gradient: of the input, of the initial state and of each parameter.

Printed: the settings; a row for each of these with the largest absolute error,
that error relative to the tensor's largest entry ("error/scale"), in units in
the last place ("ulps"), and the worst entry on both sides; a line of verdict.
Nothing is written."""
EPILOG = f"""\
{own_defaults("optimizer", "lr", "carry", "epochs")}An option that you give always wins.

exit status:
  0  all within the tolerance
  1  some are not
  2  bad input

examples:
  rnn-parity gradients
  rnn-parity gradients --cell rnn-relu --layers 3 --window 50 --dtype float32

For a network of your own, in Python: from torch_rnn import check_parity"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from torch_rnn import check_parity

    task = tasks.load(args.task)
    fill_defaults(args, task)
    try:
        model = task.model(
            args.cell,
            args.hidden,
            args.layers,
            bidirectional=args.bidirectional,
            proj_size=args.proj_size,
            dtype=args.dtype,
            rng=args.seed,
        )
    except ValueError as error:
        raise BadInput(f"argument {blamed(str(error)) or '--hidden'}: {error}") from error
    x = task.x[: args.window]  # (T, B, I), or symbols (T, B)
    x = x if task.symbols is not None else x.astype(args.dtype)
    rng = np.random.default_rng([args.seed, 1])  # not the stream that the weights come from
    sizes = [args.proj_size or args.hidden, args.hidden][: 2 if args.cell == "lstm" else 1]
    parts = args.layers * (2 if args.bidirectional else 1)
    states = tuple(rng.normal(size=(parts, x.shape[1], size)).astype(args.dtype) for size in sizes)  # (L*D, B, H)

    names = ("task", "cell", "hidden", "layers", "bidirectional", "proj_size", "window", "dtype", "seed")
    words = {name.replace("_", "-"): getattr(args, name) for name in names if name != "proj_size" or args.proj_size}
    print(command_line("gradients", {**words, "task": task.name}), end="\n\n")
    report = check_parity(model, x, states, seed=args.seed)
    print(report.table())
    return 0 if report.ok else 1
