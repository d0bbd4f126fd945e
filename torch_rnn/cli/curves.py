"""``rnn-parity curves``: train on both backends, lay the loss curves side by side, and judge them."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy_rnn import tasks
from numpy_rnn.tasks import Score
from numpy_rnn.training import CARRIES, NUMPY
from torch_rnn.cli.options import (
    DTYPES,
    BadInput,
    add,
    add_model_options,
    blamed,
    command_line,
    fill_defaults,
    own_defaults,
    positive,
    positive_or_off,
    seconds,
    whole,
)
from torch_rnn.cli.progress import Stopped, stoppable, training
from torch_rnn.curves.defaults import LEARNING_RATES, origin

if TYPE_CHECKING:  # torch, matplotlib and rich are loaded when the command runs
    from torch_rnn.curves.runs import Run, Settings
    from torch_rnn.curves.snapshot import Keeper

ROWS = 8  # of the table of epochs
NAMES = ("NumPy", "PyTorch")
STATUS = {"rounding": 0, "not rounding": 1, "cannot tell": 3}
BESIDE = ("--resume", "--epochs", "--snapshot-every", "--tensorboard")

SUMMARY = "train on both backends, compare the loss curves: rounding or a bug?"
DESCRIPTION = """\
Train a hand-written NumPy network and its PyTorch twin from the same weights,
step by step, compare their losses, and say whether they differ by rounding or
by a bug.

Beside the two runs go the controls: each side again, from weights moved by one
unit in the last place. They show how far rounding alone moves a curve. If the
two runs differ by more, at any step, than honest runs do (fewer than one in a
thousand by the calibration), that step and the two before are made again on
both sides from the same weights, and the first stage and tensor that differ are
named: state in, forward, loss, gradients, clip, update, state out.

Printed: the settings; for a file of your own what it holds, and how many steps
it will be; a table of epochs (the loss on each backend, and how far the two are
apart); the test errors beside those of a forecast that has learnt nothing, and
the error that the default settings get below; for a text a line that either
network writes; the verdict; the files written. A verdict is "rounding" (with
the step at which the curves separate, how fast the difference grows, and the
smallest bug that would have been seen), "not rounding" or "cannot tell" (with
what would decide).

Written into --out, replacing what an earlier run left there:
  report.html  all of it to read: the verdict, the curves with the band of their
               controls, their difference, gradient norms, every tensor of the
               first and the last step, and where a bug lies; one file that
               opens in any browser, without a network
  curves.csv   every optimizer step: both losses, and both gradient norms before
               clipping, with all their digits
  curves.png, curves.svg
               both curves, and below them their difference
  run.json     all settings, versions, figures and the verdict
  snapshot.npz
               what --resume needs; also written every 10 seconds on the way

Ctrl-C (or SIGTERM) ends a run after the step it is at, with all these files; a
second one stops at once, without those not yet written. Of a run that is killed
what is lost is what came after its last snapshot. All go on with --resume, and
every bit of curves.csv and run.json is then what it would have been, on the
same kind of processor and with the same versions."""
EPILOG = f"""\
{own_defaults()}A file of your own has some too: --window is a thousandth of the steps to train
on, 20 to 200, and --epochs at most 30, fewer where they would make more than
1,000 optimizer steps; a text takes the cell, the size and the optimizer of the
task text. An option that you give always wins.

A table has one row a time step and is in UTF-8. Commas, semicolons or tabs
separate its columns; with semicolons a comma in a number is a decimal comma.
Nothing, -, NA, N/A, nan, none and null are missing entries. The column is
scaled by mean and standard deviation of the rows that are trained on. Baselines
of the test error: a table's row before ("persistence"), the mean of the
training targets in an .npz file, the frequencies of symbols.

exit status:
  0  the curves differ by rounding, or not at all
  1  they differ by more than rounding
  2  bad input
  3  the data do not decide, or a loss is nan or infinite
  130, 143  stopped by Ctrl-C, by SIGTERM

examples:
  rnn-parity curves
  rnn-parity curves --dtype float32 --torch-dtype float64 --out float32-curves
  rnn-parity curves --csv weather.csv --column temperature
  rnn-parity curves --task text --cell lstm --layers 2 --dropout 0.2
  rnn-parity curves --optimizer sgd --optimizer-settings momentum=0.9 --clip 1
  rnn-parity curves --resume loss-curves --epochs 60"""


def add_options(parser: argparse.ArgumentParser) -> None:
    network = add_model_options(parser)
    data = parser.add_argument_group("your own data, instead of a task")
    data.add_argument(
        "--csv", metavar="FILE", help="a table: from a column's rows up to one, predict the next; see below"
    )
    data.add_argument(
        "--column",
        metavar="NAME",
        help="by its name in the first row, else by its number from 1; a first row of numbers is data "
        "(default: the only one)",
    )
    data.add_argument(
        "--fill-missing", action="store_true", help="put the entry before where one is missing (default: refuse)"
    )
    data.add_argument(
        "--text", metavar="FILE", help="a text: from its characters up to one, predict the next; ends in a sampled line"
    )
    data.add_argument(
        "--npz",
        metavar="FILE",
        help="arrays x (T, B, I) and y (T, B, K) of floats, taken as they are, or of symbols (T, B), whole numbers "
        "from 0: y[t] is the answer after x[: t + 1]",
    )
    data.add_argument(
        "--split",
        type=share(zero=False),
        metavar="S",
        help="share of the time steps that is trained on, the rest is the test (default: 0.8, of a text 0.9)",
    )
    network.add_argument(
        "--torch-dtype", choices=DTYPES, help="what PyTorch computes in, if it is another (default: as --dtype)"
    )
    network.add_argument(
        "--dropout",
        type=share(zero=True),
        default=0.0,
        metavar="P",
        help="between layers, the same masks on both sides (default: 0)",
    )
    network.add_argument(
        "--embedding",
        type=whole(1),
        metavar="E",
        help="size of the vectors for symbols (default: as many as symbols, at most 64)",
    )
    group = parser.add_argument_group("training")
    carries = (
        "the state at a window's end: its value goes on but not the gradient (detach), zeros (reset), or both go on "
        "and there is one optimizer step an epoch (full); with --bidirectional the state of the second direction, left "
        "at a window's start, goes on to the next window's end"
    )
    add(group, "--carry", choices=CARRIES, help=carries)
    optimizers = f"{', '.join(NUMPY.optimizers)}; with PyTorch's defaults but for the learning rate"
    add(group, "--optimizer", choices=list(NUMPY.optimizers), metavar="NAME", help=optimizers)
    rates = ", ".join(f"{lr} for {name}" for name, lr in LEARNING_RATES.items())
    group.add_argument("--lr", type=positive, metavar="X", help=f"learning rate (default: {rates})")
    group.add_argument(
        "--optimizer-settings", type=setting, nargs="+", default=[], metavar="NAME=X", help="such as momentum=0.9"
    )
    schedules = f"of the learning rate, a step an epoch: {', '.join(NUMPY.schedules)}"
    group.add_argument("--schedule", choices=list(NUMPY.schedules), metavar="NAME", help=schedules)
    group.add_argument(
        "--schedule-settings", type=setting, nargs="+", default=[], metavar="NAME=X", help="such as gamma=0.9"
    )
    group.add_argument(
        "--clip", type=positive_or_off, metavar="X", help="largest norm of all gradients together (default: off)"
    )
    add(group, "--epochs", type=whole(1), metavar="N", help="times through the training series")
    group.add_argument(
        "--controls",
        type=whole(0),
        default=4,
        metavar="N",
        help="control runs of each side (default: 4; 0: no verdict)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=directory,
        default=Path("loss-curves"),
        metavar="DIR",
        help="created if need be (default: loss-curves)",
    )
    output.add_argument(
        "--tensorboard",
        action="store_true",
        help="write event files into DIR/tensorboard too, for tensorboard --logdir; needs the extra tensorboard",
    )
    output.add_argument(
        "--resume",
        type=directory,
        metavar="DIR",
        help="go on with the run in DIR, which keeps all its settings; with --epochs it becomes longer or shorter",
    )
    output.add_argument(
        "--snapshot-every",
        type=seconds,
        default=10.0,
        metavar="SECONDS",
        help="time between two snapshots (default: 10; 0: one after each step)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown, whatever the user's matplotlib is set to
    import torch

    from torch_rnn.curves import report, snapshot, verdict

    torch.set_num_threads(1)  # the tensors are tiny; and the order of additions, so every bit, is the same everywhere
    if args.tensorboard:
        from torch_rnn.curves import events  # now, so that a missing package is named before the training
    if args.resume is None:
        run = prepared(args)
        _check_unfinished(args.out)
    else:
        run = _resumed(args)
    tensorboard = args.out / "tensorboard" if args.tensorboard else None
    try:
        report.prepare(args.out)
        if tensorboard is not None:
            events.prepare(tensorboard)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"argument --out: expected a directory to write into, got {args.out}: {reason}") from error

    command = command_line("curves", {**_words(run.settings), "out": args.out, "tensorboard": args.tensorboard})
    print(command, end="\n\n")
    if args.resume is not None:
        print(f"{'Ended already' if run.over else 'Resumed'} at step {len(run.pairs)} of {run.total}.", end="\n\n")
    if run.task.note:
        print(textwrap.fill(_plan(run), 78), end="\n\n", flush=True)
    keeper = snapshot.Keeper(run, args.out / snapshot.NAME, args.snapshot_every, _refused)
    again = f"rnn-parity curves --resume {shlex.quote(str(args.out))}"
    try:
        with stoppable() as signal:  # until the files are there
            stopped = _train(run, keeper, signal)
            judged = verdict.judge(run)
            scores = run.scores()
            try:
                paths = report.write(args.out, run, scores, judged, command)  # first, should nobody listen to the rest
                if tensorboard is not None:
                    paths += events.write(tensorboard, run.pairs)
                failure = None
            except OSError as error:
                paths, failure = [], error
    except Stopped as second:
        sys.stdout.flush()
        print(f"rnn-parity curves: interrupted before all files were written; {_kept(keeper, again)}", file=sys.stderr)
        return 128 + second.number

    print(_epoch_table(report.epoch_losses(run.pairs)), end="\n\n")
    print(_score_table(run.task, scores) if scores else f"The task {run.task.name} has no test span.", end="\n\n")
    if lines := run.samples():
        print("Both write on by the same random numbers:", *map("  {:<9}{}".format, NAMES, lines), sep="\n", end="\n\n")
    print(textwrap.fill(judged.sentence(), 78, break_on_hyphens=False), end="\n\n")
    print("\n".join(f"wrote {path}" for path in paths))
    if failure is not None:
        raise BadInput(f"cannot write into {args.out}: {failure.strerror or failure}; {_kept(keeper, again)}")
    if stopped is not None:
        sys.stdout.flush()
        print(f"stopped at step {len(run.pairs)} of {run.total}; to go on: {again}", file=sys.stderr)
        return 128 + stopped
    return STATUS[judged.outcome]


def _kept(keeper: Keeper, again: str) -> str:
    """Say what --resume can go on from."""
    return "nothing is saved for --resume" if keeper.saved is None else f"step {keeper.saved} is saved: {again}"


def _check_unfinished(directory: Path) -> None:
    """Raise ``BadInput`` if a new run would replace one that can go on."""
    from torch_rnn.curves import snapshot

    if place := snapshot.unfinished(directory / snapshot.NAME):
        raise BadInput(
            f"argument --out: {directory} holds a run that stopped at step {place[0]} of {place[1]}: go on with it by "
            f"--resume {shlex.quote(str(directory))}, name another directory, or delete its {snapshot.NAME}"
        )


def _resumed(args: argparse.Namespace) -> Run:
    """Return the run that stopped in the directory of --resume, which is then that of --out."""
    from torch_rnn.curves import snapshot

    given = [word.partition("=")[0] for word in args.words if word.startswith("--")]
    if beside := [option for option in given if option not in BESIDE]:
        also = ", ".join(BESIDE[1:])
        raise BadInput(f"argument {beside[0]}: not allowed with --resume, whose run keeps its settings; {also} are")
    args.out = args.resume
    path = args.out / snapshot.NAME
    if not path.is_file():
        raise BadInput(
            f"argument --resume: expected a directory that holds a run, got {args.resume} without {snapshot.NAME}, "
            f"which a run writes every {snapshot.EVERY:g} seconds and when it ends"
        )
    try:
        return snapshot.load(path, epochs=args.epochs)
    except ValueError as error:
        raise BadInput(f"argument --resume: {error}") from error
    except OSError as error:
        raise BadInput(
            f"argument --resume: expected the run's file {error.filename or path}, got: {error.strerror or error}"
        ) from error


def _refused(error: OSError) -> None:
    """Say that a run cannot be saved; it goes on, and the next snapshot may be written."""
    print(f"rnn-parity curves: cannot save what --resume needs: {error.strerror or error}", file=sys.stderr)


def prepared(args: argparse.Namespace, loaded: dict[Any, tasks.Task] | None = None) -> Run:
    """Return the run that the options describe, at its first step; data that are in ``loaded`` are not read again.

    Raises ``BadInput`` for data that cannot be used and for a value that the task, the model or the optimizer refuses;
    it names the option.
    """
    from torch_rnn.curves.runs import Run, Settings

    loaded = {} if loaded is None else loaded
    source = tuple(getattr(args, name) for name in tasks.SOURCE)
    if source not in loaded:
        loaded[source] = _load(args)
    task = loaded[source]
    fill_defaults(args, task)
    vars(args).update({"digest": None, **origin(task)})
    for name in ("optimizer_settings", "schedule_settings"):
        setattr(args, name, dict(getattr(args, name)))
    _check_settings("--optimizer-settings", args.optimizer, NUMPY.optimizers, args.optimizer_settings)
    if args.schedule is not None:
        _check_settings("--schedule-settings", args.schedule, NUMPY.schedules, args.schedule_settings)
    settings = Settings(**{field.name: getattr(args, field.name) for field in fields(Settings)})
    try:
        return Run(settings, task=task)
    except (ValueError, TypeError) as error:
        raise BadInput(f"argument {_blamed(str(error), settings)}: {error}") from error


def _check_settings(option: str, name: str, kinds: Mapping[str, Any], given: Mapping[str, object]) -> None:
    """Raise ``BadInput`` for settings that the optimizer or the schedule of that name has not, and that it lacks."""
    parameters = inspect.signature(kinds[name]).parameters
    settings = [word for word in parameters if word not in ("params", "lr", "optimizer")]
    if "lr" in given:
        raise BadInput(f"argument {option}: expected settings other than lr, which --lr sets, got lr={given['lr']}")
    if unknown := [word for word in given if word not in settings]:
        raise BadInput(f"argument {option}: {name} has {', '.join(settings)}, and no setting {unknown[0]!r}")
    needed = [word for word in settings if parameters[word].default is inspect.Parameter.empty]
    if missing := [word for word in needed if word not in given]:
        raise BadInput(f"argument {option}: {name} needs {missing[0]}: expected {missing[0]}=X, got none")


def _load(args: argparse.Namespace) -> tasks.Task:
    """Return the task, or the user's data, that the options name."""
    try:
        return tasks.load(**{name: getattr(args, name) for name in tasks.SOURCE})
    except ValueError as error:
        message = str(error)
        raise BadInput(f"argument {blamed(message)}: {message.replace('fill_missing', '--fill-missing')}") from error
    except OSError as error:
        ((option, path),) = ((n, p) for n in ("csv", "text", "npz") if (p := getattr(args, n)) is not None)
        raise BadInput(f"argument --{option}: expected a file, got {path!r}: {error.strerror or error}") from error


def _plan(run: Run) -> str:
    """Say what the user's file holds, and how long it will take."""
    an_epoch = run.total // run.settings.epochs
    runs = "" if run.settings.controls == 0 else f", and as many in each of {2 * run.settings.controls} controls"
    steps = "1 optimizer step" if run.total == 1 else f"{run.total} optimizer steps"
    return f"{run.task.name}: {run.task.note}. {steps} on each side, {an_epoch} an epoch{runs}."


def _words(settings: Settings) -> dict[str, object]:
    """Return the options that stand for the settings, without those that change nothing."""
    words: dict[str, object] = {}
    values = asdict(settings)
    for name in dict.fromkeys((*tasks.SOURCE, *values)):
        value = values[name]
        if name == "digest":  # no option: the data are read again
            continue
        if name == "clip" or value not in (None, {}, 0.0):
            words[name.replace("_", "-")] = value
        elif name in ("controls", "seed"):
            words[name] = value
    return words


def _blamed(message: str, settings: Settings) -> str:
    """Return the option whose value was refused: its library names it first."""
    if option := blamed(message):
        return option
    optimizer = any(name in message for name in settings.optimizer_settings)
    return "--schedule-settings" if settings.schedule is not None and not optimizer else "--optimizer-settings"


def share(zero: bool) -> Callable[[str], float]:
    """Return the parser of a number below 1 and above 0, or ``zero`` too."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1 or (value == 0 and not zero):
            raise argparse.ArgumentTypeError(
                f"expected a number {'from 0' if zero else 'above 0'} and below 1, got {text!r}"
            )
        return value

    return parse


def setting(text: str) -> tuple[str, object]:
    """Parse ``NAME=VALUE``, the value as Python writes numbers, True, False and tuples of numbers."""
    name, equals, value = text.partition("=")
    try:
        parsed = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        parsed = value
    if not (equals and name.isidentifier() and value):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, parsed


def directory(text: str) -> Path:
    """Parse a directory's name."""
    if not text:
        raise argparse.ArgumentTypeError(f"expected the name of a directory, got {text!r}")
    return Path(text).expanduser()


def _train(run: Run, keeper: Keeper, signal: Callable[[], int | None]) -> int | None:
    """Go through the steps and save the run; return the number of the signal that stopped it before its end."""
    with training(len(run.pairs), run.total) as show:
        for ours, _ in run.train():
            show(ours.loss)
            if signal() is not None:
                break
            keeper.after_step()
        keeper.save()
        return None if run.over else signal()


def _epoch_table(losses: Sequence[tuple[int, float, float]]) -> str:
    """Lay out some epochs, evenly chosen, the first and the last among them."""
    last = len(losses) - 1
    chosen = sorted({round(i * last / (ROWS - 1)) for i in range(ROWS)})
    lines = [f"{'epoch':>6}{'NumPy loss':>18}{'PyTorch loss':>18}{'difference':>14}"]
    for epoch, ours, theirs in (losses[i] for i in chosen):
        difference = abs(ours - theirs)
        lines.append(f"{epoch:>6}{ours:>#18.10g}{theirs:>#18.10g}{f'{difference:.1e}' if difference else '0':>14}")
    return "\n".join(lines)


def _score_table(task: tasks.Task, scores: Sequence[tuple[Score, Score]]) -> str:
    width = max(14, *(len(ours.span) + 1 for ours, _ in scores))
    target = f"{'target':>10}" if task.goals else ""
    lines = [f"{'test error':<{width}}{'NumPy':>12}{'PyTorch':>12}{task.baseline:>14}{target}"]
    for ours, theirs in scores:
        line = f"{ours.span:<{width}}{ours.error:>12.4g}{theirs.error:>12.4g}{ours.baseline:>14.4g}"
        lines.append(line + ("" if ours.target is None else f"{f'< {ours.target:g}':>10}"))
    notes = {"average relative variance": ": squared error over the variance of the series"}
    return "\n".join([*lines, f"({task.measure}{notes.get(task.measure, '')})"])
