"""Name the likely bug of wrong results."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from numpy_rnn.diagnosis.bugs import bugs_of, possible
from numpy_rnn.diagnosis.replay import Case, replay
from numpy_rnn.diagnosis.signatures import close, signatures
from numpy_rnn.diagnosis.steps import LETTERS
from numpy_rnn.typing import Array

Replay: TypeAlias = Callable[[], Mapping[str, Array]]

NOTHING = "no known bug has this signature"
MATCH = 1e-9  # how near a recomputed bug must come at least: two programs that add in another order are nearer


@dataclass(frozen=True)
class Finding:
    """A bug that would give the wrong tensors ``tensors`` and leave the right ones right."""

    bug: str
    text: str
    tensors: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.bug}: {self.text} ({_listed(self.tensors)})"


@dataclass(frozen=True)
class Diagnosis:
    """What ``diagnose`` found.

    ``findings``: one tuple of bugs that these results cannot tell apart, the commonest first, for each group of wrong
    tensors; ``unexplained``: the wrong tensors that no known bug gives.
    """

    findings: tuple[tuple[Finding, ...], ...]
    unexplained: tuple[str, ...]

    @property
    def bugs(self) -> tuple[str, ...]:
        """The names of all that was found."""
        return tuple(finding.bug for group in self.findings for finding in group)

    def lines(self) -> list[str]:
        """Return the findings as lines of text."""
        lines = []
        for group in self.findings:
            lines.append(f"likely bug: {group[0]}")
            lines += [f"        or: {finding.bug}: {finding.text}" for finding in group[1:4]]
        if self.unexplained:
            lines.append(f"{NOTHING}: {_listed(self.unexplained)}")
        return [line for text in lines for line in textwrap.wrap(text, 110, subsequent_indent=" " * 12)]


def diagnose(
    theirs: Mapping[str, Array],
    ours: Mapping[str, Array],
    case: Case | None = None,
    *,
    tolerance: float | Mapping[str, float] = 1e-12,
    known: tuple[Mapping[str, str], Mapping[str, Replay]] | None = None,
) -> Diagnosis:
    """Propose which bug made ``theirs`` differ from ``ours``, which are right.

    >>> dw = np.random.default_rng(0).normal(size=(12, 4))
    >>> found = diagnose({"dw": 2 * dw}, {"dw": dw})
    >>> print(found.findings[0][0])
    factor-2: the gradient is doubled: added twice, or a buffer that was not cleared (dw)
    >>> diagnose({"dw": dw + 1e-3 * np.random.default_rng(1).normal(size=(12, 4))}, {"dw": dw}).unexplained
    ('dw',)

    Arguments: arrays by name, ``replay``'s where there is a case; ``theirs`` may lack some. ``case`` says what they are
    results of: then every known bug is recomputed for it, and one is proposed if it gives the wrong arrays and leaves
    the right ones alone. ``known`` are other bugs to try: what to look for, and how to recompute each, by name.
    Without either, and for what no bug gives, the arrays themselves are looked at: ``numpy_rnn.diagnosis.signatures``.
    Arrays agree within ``tolerance`` of their scale, one for all or by name; a bug must give theirs within that, at
    least 1e-9, and within a tenth of their error.

    A proposal is no proof: what is wrong for another reason may look the same. A random error looks like nothing known.
    """
    shared = [name for name in theirs if name in ours]
    theirs = {name: np.asarray(theirs[name], np.float64) for name in shared}
    ours = {name: np.asarray(array, np.float64) for name, array in ours.items()}
    tolerances = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(shared, tolerance)
    wrong = [n for n in shared if not _same(theirs[n], ours[n], tolerances[n])]
    found: dict[str, Finding] = {}
    if case is not None:
        bugs = possible(case, bugs_of(case), "output" in shared and "output" not in wrong)
        known = bugs, {bug: partial(replay, case, bug) for bug in bugs}
    if known is not None and wrong:
        found |= _replayed(theirs, ours, wrong, *known, tolerances)
    found = _with_signatures(found, theirs, ours, wrong, case, tolerances)
    return _chosen(found, wrong)


def _same(theirs: Array, ours: Array, tolerance: float) -> bool:
    return close(theirs, ours, tolerance) or np.array_equal(theirs, ours, equal_nan=True)


def _replayed(
    theirs: Mapping[str, Array],
    ours: Mapping[str, Array],
    wrong: Sequence[str],
    texts: Mapping[str, str],
    replays: Mapping[str, Replay],
    tolerances: Mapping[str, float],
) -> dict[str, Finding]:
    """The bugs that give at least one of the wrong tensors, and none of the right ones otherwise than it is."""
    found = {}
    for bug, text in texts.items():
        results = replays[bug]()
        given = {name: results[name] for name in theirs if name in results}
        explained = [
            name for name in wrong if name in given and _gives(given[name], theirs[name], ours[name], tolerances[name])
        ]
        # One or two numbers within 2e-4 may agree by chance with one of a hundred bugs; within 1e-9 they do not.
        evidence = sum(theirs[name].size for name in explained)
        if (evidence > 2 or any(tolerances[name] <= 1e-6 for name in explained)) and all(
            close(array, ours[name], max(10 * tolerances[name], MATCH))
            for name, array in given.items()
            if name not in wrong
        ):
            found[bug] = Finding(bug, text, tuple(explained))
    return found


def _gives(given: Array, theirs: Array, ours: Array, tolerance: float) -> bool:
    """Whether a bug's result is theirs, and by far nearer to theirs than ours is."""
    if not close(given, theirs, max(tolerance, MATCH)):
        return False
    return theirs.shape != ours.shape or bool(np.abs(given - theirs).max() <= 0.1 * np.abs(ours - theirs).max())


def _with_signatures(
    found: dict[str, Finding],
    theirs: Mapping[str, Array],
    ours: Mapping[str, Array],
    wrong: Sequence[str],
    case: Case | None,
    tolerances: Mapping[str, float],
) -> dict[str, Finding]:
    blocks = None if case is None else {case.gates: LETTERS[case.cell]}
    factors = {}
    if case is not None:
        T, B, _ = case.arrays["x"].shape
        factors = {"1/B": 1 / B, "1/T": 1 / T, "1/(T*B)": 1 / (T * B), "B": B, "T": T, "T*B": T * B}
    by_bug: dict[str, Finding] = {}
    for name in wrong:
        for bug, text in signatures(name, theirs[name], ours, tolerances[name], factors, blocks):
            former = by_bug[bug].tensors if bug in by_bug else ()
            by_bug[bug] = Finding(bug, text, (*former, name))
    doubled = by_bug.get("factor-2")
    if doubled is not None and all("b_" in name or "bias" in name for name in doubled.tensors):
        text = "each bias gradient is the sum of both: the two biases are treated as one"
        by_bug["factor-2"] = Finding("biases-merged", text, doubled.tensors)
    return found | {finding.bug: finding for finding in by_bug.values() if finding.bug not in found}


def _chosen(found: Mapping[str, Finding], wrong: Sequence[str]) -> Diagnosis:
    """Cover the wrong tensors by as few bugs as possible, largest first; bugs that explain the same stand together."""
    groups, left = [], list(wrong)
    while left:
        covers = {bug: tuple(n for n in left if n in finding.tensors) for bug, finding in found.items()}
        most = max(covers.values(), key=len, default=())
        if not most:
            break
        groups.append(tuple(found[bug] for bug, cover in covers.items() if cover == most))
        left = [name for name in left if name not in most]
    return Diagnosis(tuple(groups), tuple(left))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"
