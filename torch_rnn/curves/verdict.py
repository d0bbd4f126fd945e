"""Whether two loss curves differ by rounding or by a bug."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from torch_rnn.curves.runs import Pair, Run
from torch_rnn.curves.stages import Row, ends_apart, first_fault, initial_fault
from torch_rnn.curves.statistic import APART, Evidence, gather
from torch_rnn.tolerances import CURVES, STAGE

ROUNDING, BUG, OPEN = "rounding", "not rounding", "cannot tell"


@dataclass(frozen=True)
class NotFinite:
    """Where the first number that is nan or infinite turned up."""

    step: int
    side: str  # "numpy" or "torch"
    stage: str
    tensor: str

    def sentence(self) -> str:
        return f"step {self.step}, stage {self.stage}: {self.tensor} on the {self.side} side"


@dataclass(frozen=True)
class Verdict:
    """What ``judge`` found."""

    outcome: str  # ROUNDING, BUG or OPEN
    steps: int  # of the run
    threshold: float | None  # for the statistic; None without controls
    evidence: Evidence | None
    fault: Row | None = None  # of a BUG: the first stage and tensor that differ
    reason: str = ""  # of OPEN: why the data do not decide, and what would
    not_finite: tuple[NotFinite, ...] = ()  # the first of each side on which there is one
    stopped: Pair | None = None  # the records of the step that ended the run early

    @property
    def shown_at(self) -> int | None:
        """The first step whose losses rounding does not explain."""
        return None if self.evidence is None or self.threshold is None else self.evidence.first_above(self.threshold)

    @property
    def separate_at(self) -> int | None:
        """The first step at which the curves are 1 % of the loss apart."""
        return None if self.evidence is None else self.evidence.first_apart()

    @property
    def growth(self) -> float | None:
        """The factor by which the difference grows a step until then."""
        return None if self.evidence is None else self.evidence.growth()

    def sentence(self) -> str:
        """Say what was found, at which step, and how much."""
        text = {ROUNDING: self._rounding, BUG: self._bug, OPEN: self._open}[self.outcome]()
        if self.stopped is not None:
            ours, theirs = self.stopped
            text += (
                f" The run stopped at step {ours.step}, where NumPy's loss is {ours.loss} and PyTorch's {theirs.loss}."
            )
            for place in self.not_finite:
                text += f" Not finite first: {place.sentence()}."
        return text

    def _rounding(self) -> str:
        evidence, threshold = self._judged()
        if evidence.statistic == -math.inf:
            text = f"Rounding: the curves are equal to the last bit at each of {self.steps} steps."
        else:
            text = (
                f"Rounding: at each of {self.steps} steps the curves differ by at most {_times(evidence.statistic)} "
                f"what rounding alone does to either ({_times(threshold)} would be a bug)."
            )
        if self.separate_at is not None:
            text += f" They separate, by 1 % of the loss, at step {self.separate_at}."
        elif evidence.statistic > -math.inf:
            text += " They do not separate: they stay within 1 % of the loss of each other."
        if self.growth is not None and self.growth > 1.0005:
            text += f" The difference grows by a factor of {self.growth:.4g} a step."
        elif self.growth is not None:
            text += " The difference does not grow."
        seen = evidence.smallest_seen(threshold)
        if seen is not None:
            text += f" A bug that moves the loss by {seen[1]:.0e} of it at step {seen[0]} would have been seen."
        return text

    def _bug(self) -> str:
        evidence, threshold = self._judged()
        if self.shown_at is not None:
            times = 10 ** evidence.excess[self.shown_at - 1]
            text = (
                f"Not rounding: at step {self.shown_at} the curves differ by {times:.2g} times what rounding alone "
                f"does to either ({_times(threshold)} is allowed)."
            )
        elif self.stopped is not None:
            text = f"Not rounding: at step {self.steps} one loss is finite and the other is not."
        else:
            text = "Not rounding: the losses do not show it, but the weights at the end are far apart."
        assert self.fault is not None
        first = (self.fault.step, self.fault.stage) == (1, "state in")
        start = "The two sides start from other weights" if first else "First difference from equal weights"
        return f"{text} {start}: {self.fault.sentence()}."

    def _open(self) -> str:
        return f"Cannot tell: {self.reason}."

    def _judged(self) -> tuple[Evidence, float]:
        assert self.evidence is not None
        assert self.threshold is not None
        return self.evidence, self.threshold


def _times(excess: float) -> str:
    return f"{10**excess:.2g} times"


def judge(run: Run) -> Verdict:
    """Say by what the two curves of a run differ, as far as it has gone.

    >>> from torch_rnn.curves.runs import Settings
    >>> run = Run(Settings("sine", "rnn", 4, 1, 50, "detach", "sgd", 0.05, None, 2, "float64", 0))
    >>> _ = list(run.train())
    >>> judge(run).outcome
    'rounding'

    "not rounding" needs two things: losses that differ by more than the threshold (or of which one alone is finite, or
    that hide weights far apart at the end), and a stage of a step that differs when both sides make it from the same
    weights, or initial weights that are not the same.

    Raises ``ValueError`` if there is no step.
    """
    if not run.pairs:
        raise ValueError("run must have made at least one step, got none")
    stopped = None if all(math.isfinite(record.loss) for record in run.pairs[-1]) else run.pairs[-1]
    places = () if stopped is None else first_not_finite(run, stopped[0].step)
    finite = len(run.pairs) - (stopped is not None)
    controls = run.settings.controls

    def verdict(outcome: str, evidence: Evidence | None, fault: Row | None = None, reason: str = "") -> Verdict:
        threshold = None if evidence is None else CURVES[min(controls, max(CURVES))]
        return Verdict(outcome, len(run.pairs), threshold, evidence, fault, reason, places, stopped)

    if controls == 0:
        return verdict(
            OPEN, None, reason="without control runs nothing shows what rounding does; --controls 4 makes them"
        )
    evidence = gather(run.losses(0), run.losses(1), run.settings.coarser)
    threshold = CURVES[min(controls, max(CURVES))]
    shown = evidence.first_above(threshold)
    if shown is not None:
        fault = initial_fault(run) or first_fault(run, shown, STAGE)
        if fault is not None:
            return verdict(BUG, evidence, fault)
        return verdict(OPEN, evidence, reason=_unlocated(run, evidence, shown))
    one_sided = stopped is not None and len({math.isfinite(record.loss) for record in stopped}) == 2
    if one_sided or (stopped is None and ends_apart(run)):
        fault = initial_fault(run) or first_fault(run, len(run.pairs), STAGE)
        if fault is not None:
            return verdict(BUG, evidence, fault)
    if stopped is not None:
        reason = (
            f"rounding explains the differences of the {finite} steps with finite losses, too few to judge the rest; "
        )
        return verdict(OPEN, evidence, reason=reason + "a smaller --lr or a --clip would let the run go on")
    seen = evidence.smallest_seen(threshold)
    if seen is None:
        return verdict(OPEN, evidence, reason="one step shows the first loss alone, no update; more --epochs would")
    if seen[1] > APART:
        reason = f"rounding moves the curves so much that no bug below {seen[1]:.0%} of the loss could be seen; "
        return verdict(OPEN, evidence, reason=reason + _sharper(run))
    return verdict(ROUNDING, evidence)


def _unlocated(run: Run, evidence: Evidence, shown: int) -> str:
    return (
        f"at step {shown} the curves differ by {10 ** evidence.excess[shown - 1]:.2g} times what rounding does, but no "
        f"stage of any step up to it differs when made from the same weights; {_sharper(run)}"
    )


def _sharper(run: Run) -> str:
    """What would decide."""
    if run.settings.coarser == "float32":
        return "--dtype float64 on both sides would show it, where rounding is 5e8 times smaller"
    more = 2 * run.settings.controls
    return f"--controls {more} would say more sharply what rounding does, other settings amplify it less"


def first_not_finite(run: Run, last: int) -> tuple[NotFinite, ...]:
    """Train again up to the step ``last`` and return, for each side that has one, its first nan or infinite tensor."""
    return tuple(place for side in (0, 1) for place in [_first_not_finite(run, side, last)] if place is not None)


def _first_not_finite(run: Run, side: int, last: int) -> NotFinite | None:
    loop = run.loop(side)
    found: list[NotFinite] = []
    for step in range(1, last + 1):

        def watch(stage: str, read: object, step: int = step) -> None:
            if not found and callable(read):
                bad = [name for name, array in read().items() if not np.isfinite(array).all()]
                found.extend(NotFinite(step, loop.backend.name, stage, name) for name in bad[:1])

        with np.errstate(over="ignore", invalid="ignore"):
            loop.step(watch)
        if found:
            return found[0]
    return None
