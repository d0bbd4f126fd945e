"""``rnn-parity curves``: train on both backends, lay the loss curves side by side, and judge them."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from numpy_rnn import tasks
from numpy_rnn.tasks import Score
from numpy_rnn.training import CARRIES, NUMPY
from torch_rnn.cli.options import (
    BadInput,
    add,
    add_model_options,
    command_line,
    fill_defaults,
    own_defaults,
    positive,
    positive_or_off,
    whole,
)

if TYPE_CHECKING:  # torch, matplotlib and rich are loaded when the command runs
    from torch_rnn.curves.runs import Run
    from torch_rnn.curves.verdict import Verdict

LEARNING_RATES = {"adadelta": 1.0, "sgd": 0.05}
ROWS = 8  # of the table of epochs
HINT = (
    "A bug can do that, and so can rounding that grows in training: the other --dtype tells which, "
    "for rounding is far smaller in float64 and a bug is the same size in both."
)

SUMMARY = "train on both backends and compare the loss curves"
DESCRIPTION = """\
Train a hand-written NumPy network and its PyTorch twin from the same weights,
step by step, and compare their losses.

Printed: the settings; a table of epochs (the loss on each backend, and how far
the two are apart); the test errors beside persistence, the forecast "the next
value is this one"; one sentence of verdict; the files written. Test errors are
average relative variances: the mean squared error over the test span divided
by the variance of the whole series (1700-1979 for the sunspots): 0 is perfect,
1 as far off as the whole series is from its mean.

Written into --out, replacing what an earlier run left there:
  curves.csv  every optimizer step: both losses, and both gradient norms before
              clipping, with all their digits
  curves.png  both curves, and below them their difference
  run.json    all settings, versions, figures and the verdict

The curves agree when |numpy - torch| <= tolerance * |torch| holds for the loss
of every step. The tolerance is 1e-12 in float64, a measured bound in float32.
Some networks (with relu, or a loss near 0) amplify rounding beyond it.
Then run both dtypes: rounding is far smaller in float64, a bug is the same size
in both."""
EPILOG = f"""\
{own_defaults()}An option that you give always wins.

exit status:
  0  the curves agree
  1  they do not, or a loss is nan or infinite
  2  bad input

examples:
  rnn-parity curves
  rnn-parity curves --dtype float32 --out float32-curves
  rnn-parity curves --task sine --carry full --optimizer sgd --clip 1"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    group = parser.add_argument_group("training")
    carries = (
        "the state at a window's end: its value goes on but not the gradient (detach), zeros (reset), or both go on"
    )
    add(group, "--carry", choices=CARRIES, help=f"{carries} and there is one optimizer step an epoch (full)")
    add(group, "--optimizer", choices=list(NUMPY.optimizers), help="with PyTorch's defaults but for the learning rate")
    rates = ", ".join(f"{lr} for {name}" for name, lr in LEARNING_RATES.items())
    group.add_argument("--lr", type=positive, metavar="X", help=f"learning rate (default: {rates})")
    group.add_argument(
        "--clip", type=positive_or_off, metavar="X", help="largest norm of all gradients together (default: off)"
    )
    add(group, "--epochs", type=whole(1), metavar="N", help="times through the training series")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=directory,
        default=Path("loss-curves"),
        metavar="DIR",
        help="created if need be (default: loss-curves)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown, whatever the user's matplotlib is set to
    from torch_rnn.curves import report, runs, verdict

    fill_defaults(args, tasks.load(args.task))
    if args.lr is None:
        args.lr = LEARNING_RATES[args.optimizer]
    settings = runs.Settings(**{field.name: getattr(args, field.name) for field in fields(runs.Settings)})
    try:
        run = runs.Run(settings)
    except ValueError as error:  # sizes are all that is left to go wrong
        raise BadInput(f"argument --hidden: {error}") from error
    try:
        report.prepare(args.out)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"argument --out: expected a directory to write into, got {args.out}: {reason}") from error

    print(command_line("curves", {**asdict(settings), "out": args.out}), end="\n\n")
    _train(run)
    judged = verdict.judge(run.pairs, settings.dtype)
    scores = run.scores()
    paths = report.write(args.out, run, scores, judged)  # first of all, should nobody listen to the rest

    print(_epoch_table(report.epoch_losses(run.pairs)), end="\n\n")
    print(_score_table(scores) if scores else f"The task {args.task} has no test span.", end="\n\n")
    print(_verdict_text(judged), end="\n\n")
    print("\n".join(f"wrote {path}" for path in paths))
    return 0 if judged.agree else 1


def directory(text: str) -> Path:
    """Parse a directory's name."""
    if not text:
        raise argparse.ArgumentTypeError(f"expected the name of a directory, got {text!r}")
    return Path(text).expanduser()


def _train(run: Run) -> None:
    """Go through the steps; a terminal is shown how far they are."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps, loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=run.total, loss="")
        for ours, _ in run.train():
            progress.update(bar, advance=1, loss=f"{ours.loss:.4g}")


def _epoch_table(losses: Sequence[tuple[int, float, float]]) -> str:
    """Lay out some epochs, evenly chosen, the first and the last among them."""
    last = len(losses) - 1
    chosen = sorted({round(i * last / (ROWS - 1)) for i in range(ROWS)})
    lines = [f"{'epoch':>6}{'NumPy loss':>18}{'PyTorch loss':>18}{'difference':>14}"]
    for epoch, ours, theirs in (losses[i] for i in chosen):
        difference = abs(ours - theirs)
        lines.append(f"{epoch:>6}{ours:>#18.10g}{theirs:>#18.10g}{f'{difference:.1e}' if difference else '0':>14}")
    return "\n".join(lines)


def _score_table(scores: Sequence[tuple[Score, Score]]) -> str:
    lines = [f"{'test error':<14}{'NumPy':>14}{'PyTorch':>14}{'persistence':>14}"]
    for ours, theirs in scores:
        lines.append(f"{ours.span:<14}{ours.error:>14.4g}{theirs.error:>14.4g}{ours.persistence:>14.4g}")
    return "\n".join([*lines, "(average relative variance: squared error over the variance of the series)"])


def _verdict_text(judged: Verdict) -> str:
    sentence = judged.sentence()
    if judged.outcome == "differ":
        sentence += f" {HINT}"
    return textwrap.fill(sentence, 78, break_on_hyphens=False)
