"""The lines that the picture and the page draw: their gaps, where a zero stands on a log axis, their names."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from numpy_rnn.typing import Array
from torch_rnn.curves.runs import Run
from torch_rnn.curves.verdict import Verdict

DRAWN = 1e-100, 1e100  # beyond these, and for nan, a log axis cannot be laid out


@dataclass(frozen=True, eq=False)
class Lines:
    """One entry a step; nan is a gap."""

    epochs: Array  # (steps,)
    steps: Array  # (steps,)
    losses: Array  # (steps, 2): NumPy's, PyTorch's
    norms: Array  # (steps, 2) of the gradients, before clipping
    difference: Array  # (steps,) of the losses, absolute
    rounding: Array  # (steps,) how far rounding alone moves a loss
    allowed: Array  # (steps,) above this a difference is no rounding
    floor: float  # where a difference of 0 is drawn on a log axis


def lines(run: Run, verdict: Verdict) -> Lines:
    """Return the lines of a run, as far as it has gone.

    >>> from torch_rnn.curves.runs import Settings
    >>> from torch_rnn.curves.verdict import judge
    >>> run = Run(Settings("sine", "rnn", 4, 1, 50, "detach", "sgd", 0.05, None, 2, "float64", 0, controls=1))
    >>> _ = list(run.train())
    >>> drawn = lines(run, judge(run))
    >>> drawn.losses.shape, bool((drawn.difference < drawn.allowed).all())
    ((8, 2), True)
    """
    losses = with_gaps(np.array([[ours.loss, theirs.loss] for ours, theirs in run.pairs]))
    difference = np.abs(losses[:, 0] - losses[:, 1])
    rounding = np.full(len(losses), np.nan)
    allowed = rounding.copy()
    if verdict.evidence is not None and verdict.threshold is not None:
        known = with_gaps(verdict.evidence.rounding)
        rounding[: len(known)] = known
        allowed = rounding * 10**verdict.threshold
    positive = np.concatenate([difference, rounding])
    positive = positive[positive > 0]
    return Lines(
        epochs=np.array([ours.epoch for ours, _ in run.pairs]),
        steps=np.array([ours.step for ours, _ in run.pairs]),
        losses=losses,
        norms=with_gaps(np.array([[ours.grad_norm, theirs.grad_norm] for ours, theirs in run.pairs])),
        difference=difference,
        rounding=rounding,
        allowed=allowed,
        floor=10.0 ** (math.floor(math.log10(positive.min())) - 1) if positive.size else 1e-16,
    )


def with_gaps(values: Array) -> Array:
    """Return the values with nan for those that no axis can show.

    >>> with_gaps(np.array([0.5, 0.0, np.inf, 1e200])).tolist()
    [0.5, 0.0, nan, nan]
    """
    size = np.abs(values)
    return np.where((size == 0) | ((size > DRAWN[0]) & (size < DRAWN[1])), values, np.nan)


def title(run: Run) -> str:
    """Say what was compared."""
    return f"{run.task.name}: numpy_rnn and torch.nn from the same weights"


def subtitle(run: Run) -> str:
    """Say with which settings."""
    s = run.settings
    layers = f"{s.layers} layer{'s' if s.layers > 1 else ''}"
    more = ("bidirectional, " if s.bidirectional else "") + (f"projection {s.proj_size}, " if s.proj_size else "")
    optimizer = f"{s.optimizer} lr {s.lr:g}" + ("" if s.clip is None else f" clip {s.clip:g}")
    return (
        f"{s.cell}, {s.hidden} hidden, {layers}, {more}window {s.window}, carry {s.carry}, {optimizer}, "
        f"{' and '.join(dict.fromkeys(s.dtypes))}, seed {s.seed}"
    )


def loss_name(run: Run) -> str:
    """Name the loss, with its unit."""
    return "loss (mean squared error)" if run.task.loss == "mse" else "loss (cross entropy, nats)"


def step_name(run: Run) -> str:
    """Name the axis of the steps."""
    return f"optimizer step ({run.total // run.settings.epochs} an epoch)"
