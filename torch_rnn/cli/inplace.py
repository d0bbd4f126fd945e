"""``rnn-parity inplace``: the article's error, reproduced on both libraries and explained."""

from __future__ import annotations

import argparse
from pathlib import Path

from torch_rnn.cli.options import BadInput, blaming

SUMMARY = 'explain "modified by an inplace operation" in an RNN loop, by experiment'
DESCRIPTION = """\
Run the training loop that carries its hidden state without detach, and some
thirty variants of it, on a hand-written NumPy RNN and on torch.nn.RNN, and say
what fails, when, and why.

Printed: the story in six steps; with --variant one variant at length (errors,
versions, losses, gradients, memory, which weights backward read). In tables
"i=2: 3 for 2" says that the backward of window 2 found an array at version 3
and expected 2; "2nd time" is the other error, "Trying to backward through the
graph a second time".

Written: nothing, or with --json FILE all variants with all their numbers."""
EPILOG = """\
exit status:
  0  both libraries did the same in every variant that was run
  1  they did not
  2  bad input

examples:
  rnn-parity inplace
  rnn-parity inplace --list
  rnn-parity inplace --variant fused
  rnn-parity inplace --json inplace.json"""


def add_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--variant", metavar="NAME", help="tell one variant at length")
    what.add_argument("--list", action="store_true", help="list the variants and run none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what the variants did, all or the one given")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from torch_rnn.files import write_json
    from torch_rnn.inplace import story
    from torch_rnn.inplace.variants import VARIANTS

    if args.list:
        if args.json is not None:
            raise BadInput("argument --json: not allowed with argument --list, which runs nothing")
        for name, variant in VARIANTS.items():
            print(f"{name:<19}{variant.change}")
        return 0
    if args.variant is not None and args.variant not in VARIANTS:
        raise BadInput(f"argument --variant: expected one of {', '.join(VARIANTS)}, got {args.variant!r}")
    if args.json is not None and (args.json.is_dir() or not args.json.parent.is_dir()):
        raise BadInput(f"argument --json: expected a file in a directory that exists, got {args.json}")

    results = story.results([args.variant] if args.variant else VARIANTS)
    if args.json is not None:
        with blaming("--json", args.json):
            write_json(args.json, {name: story.as_json(r) for name, r in results.items()})
    if args.variant:
        print(story.detail(results[args.variant]))
    else:
        print("\n\n".join(story.tell(results)))
    if args.json is not None:
        print(f"\nwrote {args.json}")
    return 0 if not any(r.differences for r in results.values()) else 1
