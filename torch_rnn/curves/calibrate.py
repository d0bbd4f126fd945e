"""The thresholds of the verdict: ``python -m torch_rnn.curves.calibrate`` measures what honest runs give.

    python -m torch_rnn.curves.calibrate              honest pairs: their largest statistic and stage excess
    python -m torch_rnn.curves.calibrate --honest     100 honest runs on settings held apart: the verdict of each

Settings are drawn at random: cell, layers, optimizer, carry, clip, dropout, dtypes, window, steps and seed; each gives
five honest pairs of runs, the run itself and its four controls. The error of the first kind, that an honest pair passes
the threshold, is stated in two ways: how many of the pairs passed it (none of n: at most 3/n with 95 % confidence, for
independent pairs), and by an exponential tail fitted to the largest 5 %, which a light tail such as theirs stays below.
The settings held apart share no hidden size and no window with these; four of their tasks are never seen here.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from numpy_rnn.tasks import TASKS, load
from numpy_rnn.typing import Array
from torch_rnn.curves.runs import Run, Settings
from torch_rnn.curves.stages import replay
from torch_rnn.curves.statistic import gather
from torch_rnn.curves.verdict import BUG, OPEN, ROUNDING, Verdict, judge
from torch_rnn.tolerances import CURVES, STAGE

CELLS = ("rnn", "rnn-relu", "lstm", "gru")
DTYPES = (("float64", None), ("float32", None), ("float64", None), ("float32", None), ("float32", "float64"))
OPTIMIZERS = (
    ("adadelta", 1.0),
    ("sgd", 0.05),
    ("sgd", 0.2),
    ("adagrad", 0.05),
    ("rmsprop", 0.003),
    ("adam", 0.01),
    ("adam", 0.003),
    ("adamw", 0.01),
    ("nadam", 0.005),
    ("radam", 0.01),
    ("adamax", 0.01),
    ("asgd", 0.05),
)
SERIES = {"sine": 200, "sunspots": 220}  # training steps of each
REPLAYED = 4  # a stage is looked at in one of the first steps


def draw(
    rng: np.random.Generator, hidden: tuple[int, ...] = (2, 3, 5, 7), windows: tuple[int, ...] = (2, 3, 5, 5, 8, 8, 25)
) -> tuple[Settings, int]:
    """Return honest settings of a small network, and how many steps to make: 8 to 40, seldom 120."""

    def pick(options: Any) -> Any:
        return options[rng.integers(len(options))]

    task, window = pick(list(SERIES)), pick(windows)
    carry = "full" if rng.random() < 0.03 else pick(("detach", "detach", "reset"))
    a_epoch = 1 if carry == "full" else -(-SERIES[task] // window)
    steps = 2 if carry == "full" else pick((8, 8, 12, 12, 16, 16, 24, 24, 40, 120))
    optimizer, lr = pick(OPTIMIZERS)
    dtype, torch_dtype = pick(DTYPES)
    layers = pick((1, 1, 2))
    settings = Settings(
        task=task,
        cell=pick(CELLS),
        hidden=pick(hidden),
        layers=layers,
        window=window,
        carry=carry,
        optimizer=optimizer,
        lr=lr,
        clip=pick((None, None, 1.0, 0.1)),
        epochs=-(-steps // a_epoch),
        dtype=dtype,
        seed=int(rng.integers(10**6)),
        torch_dtype=torch_dtype,
        controls=max(CURVES),
        dropout=pick((0.0, 0.3)) if layers > 1 else 0.0,
    )
    return settings, steps


def measure(settings: Settings, steps: int) -> dict[str, Any]:
    """Return the statistics of honest pairs for every number of controls, and the largest excess of a replayed step.

    Control i of both sides starts from the same weights, so it is an honest pair as the run itself is, and the others
    are its controls. Two controls are two moves apart, not one: they are brought nearer by the root of 2.
    """
    run = Run(settings)
    steps = len(list(islice(run.train(), steps)))
    sides = run.losses(0), run.losses(1)
    statistics: dict[int, list[float]] = {n: [] for n in range(1, settings.controls + 1)}
    for pair in range(settings.controls + 1):
        moved = [nearer(np.roll(losses, -pair, axis=1), 1.0 if pair == 0 else math.sqrt(2)) for losses in sides]
        for n, values in statistics.items():
            values.append(gather(moved[0][:, : n + 1], moved[1][:, : n + 1], settings.coarser).statistic)
    first = 1 + settings.seed % min(REPLAYED, steps)
    excess = max(row.excess for rows in replay(run, first, first) for row in rows)
    return {"statistics": statistics, "excess": excess}


def held_apart(runs: int = 100) -> list[tuple[Settings, int]]:
    """Return honest settings and steps over all tasks; hidden sizes and windows are none of the calibration's."""
    chosen = []
    for i in range(runs):
        settings, steps = draw(np.random.default_rng([1, i]), (4, 6, 8, 12), (4, 10, 20, 30))
        task = load(list(TASKS)[i % len(TASKS)])
        settings = replace(settings, task=task.name)
        if not task.head:
            settings = replace(settings, hidden=1, window=1 + i % 2)
        if task.length is not None:
            settings = replace(settings, window=task.length, carry="reset")
        if task.symbols is not None and i % 2:
            settings = replace(settings, embedding=4)
        a_epoch = 1 if settings.carry == "full" else -(-task.train_steps // settings.window)
        chosen.append((replace(settings, epochs=-(-steps // a_epoch)), steps))
    return chosen


def verdict_of(settings: Settings, steps: int) -> Verdict:
    """Return the verdict on the first steps of an honest run."""
    run = Run(settings)
    for _ in islice(run.train(), steps):
        pass
    return judge(run)


def describe(settings: Settings) -> str:
    """Return what tells the settings from others, in one line."""
    s = settings
    words = [s.data, s.cell, f"H {s.hidden}", f"L {s.layers}", f"T {s.window}", s.carry, s.optimizer, f"lr {s.lr:g}"]
    words += ["bidirectional"] if s.bidirectional else []
    words += [f"P {s.proj_size}"] if s.proj_size else []
    words += [f"clip {s.clip:g}"] if s.clip else []
    words += [f"dropout {s.dropout:g}"] if s.dropout else []
    return ", ".join([*words, "/".join(dict.fromkeys(s.dtypes)), f"seed {s.seed}"])


def nearer(losses: Array, factor: float) -> Array:
    """Return the losses with the controls drawn towards the run in column 0."""
    return np.asarray(losses[:, :1] + (losses - losses[:, :1]) / factor)


def calibrate(runs: int, seed: int, workers: int) -> Iterator[dict[str, Any]]:
    """Yield what ``measure`` returns for so many settings drawn from the seed; the same whatever the workers."""
    chosen = [draw(np.random.default_rng([seed, i])) for i in range(runs)]
    with _pool(workers) as pool:
        yield from pool.map(measure, *zip(*chosen, strict=True), chunksize=8)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))


def _honest(workers: int) -> int:
    """Print the verdict on every setting held apart; return 0 if all are called rounding."""
    chosen = held_apart()
    outcomes = []
    with _pool(workers) as pool:
        for (settings, _), verdict in zip(chosen, pool.map(verdict_of, *zip(*chosen, strict=True)), strict=True):
            outcomes.append(verdict.outcome)
            excess = -math.inf if verdict.evidence is None else verdict.evidence.statistic
            print(f"{verdict.outcome:<13}{excess:>6.2f} {verdict.steps:>4} steps: {describe(settings)}", flush=True)
            if verdict.outcome != ROUNDING:
                print(f"    {verdict.sentence()}")
    print(", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in (ROUNDING, BUG, OPEN)))
    return 0 if outcomes.count(ROUNDING) == len(outcomes) else 1


def _spread(values: Array, threshold: float) -> str:
    return (
        f"median {np.median(values):.2f}, 99 % {np.quantile(values, 0.99):.2f}, largest {values.max():.2f}; "
        f"above {threshold}: {(values > threshold).sum()}, by the tail a share of {chance_above(values, threshold):.0e}"
    )


def chance_above(values: Array, threshold: float, share: float = 0.05) -> float:
    """Return the chance of a value above the threshold by an exponential tail through the largest ``share``.

    >>> values = np.random.default_rng(0).exponential(size=100_000)
    >>> bool(0.8e-4 < chance_above(values, -math.log(1e-4)) < 1.2e-4)
    True
    """
    start = float(np.quantile(values, 1 - share))
    return share * math.exp((start - threshold) / float(np.mean(values[values > start] - start)))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_rnn.curves.calibrate", description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=607, help="to draw: five pairs each (default: 607)")
    parser.add_argument("--honest", action="store_true", help="judge the settings held apart")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(argv)
    if args.honest:
        return _honest(args.workers)
    results = []
    for i, result in enumerate(calibrate(args.settings, args.seed, args.workers), 1):
        results.append(result)
        if i % 100 == 0:
            print(f"{i} of {args.settings}", file=sys.stderr)
    for n in sorted(CURVES):
        values = np.array([value for result in results for value in result["statistics"][n]])
        print(f"controls {n}, {len(values)} pairs: {_spread(values, CURVES[n])}")
    values = np.array([result["excess"] for result in results])
    print(f"stages, {len(values)} steps: {_spread(values, STAGE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
