"""Two runs that already exist, laid side by side from their logs: rounding or a bug, alike or different."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from numpy_rnn.typing import Array
from torch_rnn.curves.logs import Log, read_log
from torch_rnn.curves.logs_aligned import align, check_units
from torch_rnn.curves.seeds import Groups, compare_groups
from torch_rnn.curves.statistic import APART, Evidence, gather, largest_of_last
from torch_rnn.curves.verdict import BUG, OPEN, ROUNDING
from torch_rnn.tolerances import LOGS_BUG, LOGS_ROUNDING, PARITY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Source: TypeAlias = str | Path | Log
EQUAL = "equal"
FUZZ = 1e-6  # of the last decimal: two decimals next to each other differ by that much more, as float64 numbers
ONE_STEP = "the logs have one step in common; more would decide"
NO_CONTROLS = (
    "without control runs nothing shows what rounding does. Run a program again from initial weights moved by one unit "
    "in the last place, and give its log with --controls-a or --controls-b"
)
STILL = (
    "no control differs from its run in any digit of the logs. Were its weights moved? If so, logs with more digits "
    "would decide"
)


@dataclass(frozen=True, eq=False)
class LogComparison:
    """What ``compare_logs`` found; a notebook shows the verdict and the picture.

    All arrays have one row a common step, up to the last at which the losses are finite.
    """

    a: Log
    b: Log
    by: str  # what the rows are matched by: "step" or "row"
    steps: Array  # (n,)
    a_loss: Array  # (n,)
    b_loss: Array  # (n,)
    kind: str  # what the others are: "controls", "seeds", or "" if there are none
    a_others: Array  # (n, N)
    b_others: Array  # (n, N)
    unit: Array  # of the last digits that the logs hold, the largest of the last steps (n,)
    evidence: Evidence
    stopped: str  # why it ends before the logs do
    notes: tuple[str, ...]  # what was left out, and what to beware of
    outcome: str = OPEN  # or EQUAL, ROUNDING, BUG; of seeds DIFFERENT, ALIKE
    reason: str = ""  # of OPEN: why the logs do not decide, and what would
    groups: Groups | None = None  # of seeds

    @property
    def dtype(self) -> str:
        """The dtype whose digits both logs hold."""
        return coarser([self.a, self.b])

    @property
    def difference(self) -> Array:
        """The difference of the two losses at each step, without its sign (n,)."""
        return np.asarray(np.abs(self.a_loss - self.b_loss))

    @property
    def first_different(self) -> float | None:
        """The first step at which the losses are not the same number."""
        different = np.flatnonzero(self.a_loss != self.b_loss)
        return self._step(int(different[0]) + 1 if different.size else None)

    @property
    def separate_at(self) -> float | None:
        """The first step at which the curves are 1 % of the loss apart."""
        return self._step(self.evidence.first_apart())

    @property
    def shown_at(self) -> float | None:
        """The first step whose losses rounding does not explain; None without controls."""
        return self._step(self.evidence.first_above(LOGS_BUG)) if self.kind == "controls" else None

    @property
    def growth(self) -> float | None:
        """The factor by which the difference grows a step until the curves separate."""
        return self.evidence.growth(self.steps)

    @property
    def from_the_start(self) -> bool:
        """Whether the first loss is that of the initial weights."""
        return (self.a.step_column or "").lower() != "epoch" and bool(self.steps[0] <= 1)

    def _step(self, row: int | None) -> float | None:
        return None if row is None else float(self.steps[row - 1])

    def sentence(self) -> str:
        """Say what was found, at which step, and how much."""
        if self.groups is not None:
            return self.groups.sentence()
        return {OPEN: self._open, EQUAL: self._equal, ROUNDING: self._rounding, BUG: self._bug}[self.outcome]()

    def _open(self) -> str:
        return f"Cannot tell: {self.reason}."

    def _equal(self) -> str:
        if self.unit.max() == 0:
            return f"Equal: the curves are equal to the last bit at each of {len(self.steps)} steps."
        return (
            f"Equal: in the {self.a.precision} that the logs hold the curves are equal at each of {len(self.steps)} "
            f"steps.{self._smallest_seen('difference', 0.0)}"
        )

    def _rounding(self) -> str:
        return (
            f"Rounding: at each of {len(self.steps)} steps the curves differ by at most "
            f"{10**self.evidence.statistic:.2g} times what rounding does to the controls "
            f"({10**LOGS_BUG:.0f} times would be a bug).{self._smallest_seen('bug', LOGS_BUG)}"
        )

    def _bug(self) -> str:
        row = self.evidence.first_above(LOGS_BUG) or 1
        return (
            f"Not rounding: at step {self.steps[row - 1]:.10g} the curves differ by "
            f"{10 ** self.evidence.excess[row - 1]:.2g} times what rounding does to the controls "
            f"({10**LOGS_BUG:.0f} times is allowed)."
        )

    def _smallest_seen(self, what: str, threshold: float) -> str:
        seen = self.evidence.smallest_seen(threshold)
        if seen is None:
            return ""
        step = self.steps[seen[0] - 1]
        return f" A {what} of {seen[1]:.0e} of the loss at step {step:.10g} would have been seen."

    def plot(self) -> Figure:
        """Return a matplotlib figure: both curves, and their difference."""
        from torch_rnn.curves.logs_report import figure

        return figure(self)

    def __repr__(self) -> str:
        return f"<LogComparison: {self.sentence()}>"

    def _repr_html_(self) -> str:
        """Return the verdict and the picture, for a notebook."""
        picture = io.BytesIO()
        self.plot().savefig(picture, dpi=100, format="png")
        source = base64.b64encode(picture.getvalue()).decode("ascii")
        sentence = html.escape(self.sentence())
        return f'<p>{sentence}</p><img alt="both curves and their difference" src="data:image/png;base64,{source}">'


def compare_logs(
    a: Source,
    b: Source,
    *,
    column: str | None = None,
    step_column: str | None = None,
    controls_a: Sequence[Source] = (),
    controls_b: Sequence[Source] = (),
    seeds_a: Sequence[Source] = (),
    seeds_b: Sequence[Source] = (),
) -> LogComparison:
    """Compare the loss curves of two runs that already exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "both.csv")
    ...     _ = path.write_text("step,ours,theirs\\n1,0.5312,0.5312\\n2,0.2513,0.2513\\n")
    ...     compare_logs(f"{path}:ours", f"{path}:theirs").outcome
    'equal'

    Arguments: sources as ``read_log`` takes them, or what it returned; its ``column`` and ``step_column``, for all of
    them. Controls are the same program again, from initial weights moved by one unit in the last place: with some, of
    A, of B or of both, the outcome is "rounding", "not rounding" or "cannot tell". Seeds are other runs of the same
    program: with some the two groups of runs are compared, "different" or "not different". Without either nothing shows
    what rounding does, and only equal curves are judged; ``torch_rnn.curves.logs_hints`` says what they look like.

    Raises ``ValueError`` for a source that is no log, for logs that count unlike things (step and epoch) without a
    ``step_column``, or have no step in common, for controls that start elsewhere than their run, for a curve that one
    group of seeds has twice, and for controls and seeds together.
    """
    if (controls_a or controls_b) and (seeds_a or seeds_b):
        raise ValueError("controls and seeds must not be given together: seeds start from other weights")
    kind = "controls" if controls_a or controls_b else "seeds" if seeds_a or seeds_b else ""
    logs = [
        source if isinstance(source, Log) else read_log(source, column, step_column)
        for source in (a, b, *controls_a, *seeds_a, *controls_b, *seeds_b)
    ]
    of_a = len(controls_a) + len(seeds_a)
    names = ["A", "B", *_numbered("A", kind, of_a), *_numbered("B", kind, len(logs) - 2 - of_a)]
    if step_column is None:
        check_units(logs, names)
    aligned = align(logs, names)
    end, stopped, notes = aligned.end(len(logs) if kind == "seeds" else 2), "", [*aligned.notes]
    if (logs[0].source, logs[0].column) == (logs[1].source, logs[1].column):
        notes.append("A and B are the same column of the same file")
    if end < len(aligned.steps):
        which = int(np.flatnonzero(~np.isfinite(aligned.losses[end]))[0])
        place = f"{aligned.by} {aligned.steps[end]:.10g}"
        stopped = f"the loss of {names[which]} is {aligned.losses[end, which]} at {place}"
        notes.append(f"{stopped}: compared up to there")
    losses = aligned.losses[:end]
    a_loss, b_loss, a_others, b_others = losses[:, 0], losses[:, 1], losses[:, 2 : 2 + of_a], losses[:, 2 + of_a :]
    unit = largest_of_last((logs[0].unit(a_loss) + logs[1].unit(b_loss)) / 2)
    found = LogComparison(
        a=logs[0],
        b=logs[1],
        by=aligned.by,
        steps=aligned.steps[:end],
        a_loss=a_loss,
        b_loss=b_loss,
        kind=kind,
        a_others=a_others,
        b_others=b_others,
        unit=unit,
        evidence=_evidence(_side(a_loss, a_others, kind), _side(b_loss, b_others, kind), unit, coarser(logs[:2])),
        stopped=stopped,
        notes=tuple(notes),
    )
    if end == 0:
        return replace(found, reason=f"{stopped}, the first")
    if kind == "seeds":
        _check_seeds(aligned.losses, logs, names, of_a)
        groups = compare_groups(np.column_stack([a_loss, a_others]), np.column_stack([b_loss, b_others]))
        return replace(found, groups=groups, outcome=groups.outcome)
    if kind == "controls":
        _check_controls(found, logs, names)
    outcome, reason = _judged(found)
    return replace(found, outcome=outcome, reason=reason)


def coarser(logs: Iterable[Log]) -> str:
    """Return the dtype that has as few digits as the coarsest of the logs."""
    return "float32" if "float32" in {log.dtype for log in logs} else "float64"


def _numbered(side: str, kind: str, many: int) -> list[str]:
    return [f"{kind.removesuffix('s')} {i} of {side}" for i in range(1, many + 1)]


def _side(run: Array, others: Array, kind: str) -> Array:
    """Return a run with its controls (n, 1 + N); without any the run itself stands for one, which has not moved."""
    return np.column_stack([run, others if kind == "controls" and others.size else run])


def _evidence(a: Array, b: Array, unit: Array, dtype: str) -> Evidence:
    """Lay the curves side by side; what the logs' digits cannot show is no difference, and rounding is no less."""
    evidence = gather(a, b, dtype)
    hidden = np.where(unit > 0, unit * (1 + FUZZ) + np.finfo(np.float64).eps * evidence.loss, 0.0)
    difference = np.where(evidence.difference > hidden, evidence.difference, 0.0)
    return replace(evidence, difference=difference, rounding=np.maximum(evidence.rounding, unit))


def _check_controls(found: LogComparison, logs: Sequence[Log], names: Sequence[str]) -> None:
    """Refuse controls that are no run from the same weights, as other seeds would be.

    They may have been computed in float32, whatever the log was written in; and a row may be a mean over many steps.
    """
    allowed = PARITY[np.dtype(np.float32)] if found.from_the_start and found.by == "step" else APART
    controls = [(found.a_loss, control) for control in found.a_others.T]
    controls += [(found.b_loss, control) for control in found.b_others.T]
    for name, log, (run, control) in zip(names[2:], logs[2:], controls, strict=True):
        at_most = allowed * np.abs(run).max() + (1 + FUZZ) * float(found.unit[0] + log.unit(run[:1])[0])
        if found.steps[0] <= 1 and not abs(control[0] - run[0]) <= at_most:
            raise ValueError(
                f"{name} ({log.source}) must be its run again from weights moved by one unit in the last place, got a "
                f"first loss of {control[0]:.8g} for {run[0]:.8g}; other seeds are given with --seeds-a and --seeds-b"
            )


def _check_seeds(losses: Array, logs: Sequence[Log], names: Sequence[str], of_a: int) -> None:
    """Refuse a run that its own group has twice: it would count as evidence twice."""
    group_a, group_b = [0, *range(2, 2 + of_a)], [1, *range(2 + of_a, len(logs))]
    for option, group in (("--seeds-a", group_a), ("--seeds-b", group_b)):
        for one, other in combinations(group, 2):
            if np.array_equal(losses[:, one], losses[:, other], equal_nan=True):
                raise ValueError(
                    f"argument {option}: expected runs from different seeds, got the same curve as {names[one]} "
                    f"({logs[one].source}) and as {names[other]} ({logs[other].source})"
                )


def _judged(found: LogComparison) -> tuple[str, str]:
    """Return the outcome and, if it is open, why."""
    equal = found.first_different is None
    seen = found.evidence.smallest_seen(0.0 if equal else LOGS_BUG)  # any digit that differs would have been seen
    if not equal and not found.kind:
        return OPEN, NO_CONTROLS
    if not equal and (unmoved := _finer_alone(found)):
        return (
            OPEN,
            f"the controls show what rounding does in {found.dtype}, the coarser, only if they are of {unmoved}",
        )
    if not equal and _still(found):
        return OPEN, STILL
    if found.shown_at is not None:
        return BUG, ""
    if found.stopped:
        return OPEN, f"the steps with finite losses show no bug, but {found.stopped}"
    if found.evidence.statistic > LOGS_ROUNDING:
        return OPEN, _between(found)
    if seen is None:
        return OPEN, ONE_STEP
    if seen[1] > APART:
        return OPEN, _hidden(found, *seen)
    return (EQUAL if equal else ROUNDING), ""


def _between(found: LogComparison) -> str:
    """Say why the difference is neither small enough nor large enough, and what would be clearer."""
    better = "both in float64" if found.dtype == "float32" else "the first steps, logged with more digits,"
    return (
        f"the curves differ by {10**found.evidence.statistic:.2g} times what rounding does to the controls. Honest "
        f"runs seldom differ by {10**LOGS_ROUNDING:.0f} times, {10**LOGS_BUG:.0f} times would be a bug; {better} "
        "would show it more clearly, and so would rnn-parity curves, which moves its controls at every step"
    )


def _finer_alone(found: LogComparison) -> str:
    """Return the side that has fewer digits, if all controls are of the other."""
    if not found.a_others.size and (found.a.dtype, found.b.dtype) == ("float32", "float64"):
        return "A"
    if not found.b_others.size and (found.a.dtype, found.b.dtype) == ("float64", "float32"):
        return "B"
    return ""


def _still(found: LogComparison) -> bool:
    sides = (found.a_loss, found.a_others), (found.b_loss, found.b_others)
    return all((others == run[:, None]).all() for run, others in sides)


def _hidden(found: LogComparison, step: int, share: float) -> str:
    """Say what hides every bug, and what would not."""
    unseen = f"no bug below {share:.0%} of the loss could be seen"
    if found.unit[step - 1] == found.evidence.rounding[step - 1]:
        logs = sorted((found.a, found.b), key=lambda log: float(log.unit(found.a_loss).max()))
        return f"the logs hold {logs[1].precision}, so that {unseen}; logs with more digits would decide"
    better = "float64 on both sides" if found.dtype == "float32" else "a log of the first steps, each of them,"
    return f"rounding moves the curves so much that {unseen}; {better} would show it"
