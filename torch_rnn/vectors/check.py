"""Compare somebody's results with the golden vectors, and name the likely bug of what is wrong."""

from __future__ import annotations

import difflib
import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from numpy_rnn.diagnosis import Case, Diagnosis, diagnose
from numpy_rnn.diagnosis.optimizers import BUGS, replay_steps
from numpy_rnn.gradcheck import Comparison, Report, compare
from numpy_rnn.typing import Array
from numpy_rnn.weights import NonFiniteWeightsWarning, load_weights
from torch_rnn.vectors.manifest import FILES, FORMAT, MANIFEST, OWN_HASH, digest


class NotComparable(ValueError):
    """The files are not what they should be."""


@dataclass(frozen=True)
class Golden:
    """The vectors of one directory."""

    manifest: Mapping[str, Any]
    tensors: Mapping[str, Array]  # by CASE/TENSOR

    def of_case(self, name: str) -> dict[str, Array]:
        """All tensors of a case, without its name."""
        return {key: self.tensors[f"{name}/{key}"] for key in self.manifest["cases"][name]["tensors"]}

    def given(self, name: str) -> set[str]:
        """The names of what goes into a case."""
        return {key for key, entry in self.manifest["cases"][name]["tensors"].items() if "from" in entry}

    def is_result(self, name: str) -> bool:
        """Whether CASE/TENSOR is what a port computes, not what goes into the case."""
        case, _, key = name.partition("/")
        return "from" not in self.manifest["cases"][case]["tensors"][key]

    def case(self, name: str) -> Case:
        """A case for ``numpy_rnn.diagnosis``."""
        entry, tensors = self.manifest["cases"][name], self.of_case(name)
        windows = entry["windows"] if len(entry["windows"]) > 1 else ()
        return Case(entry["cell"], tensors, entry.get("nonlinearity", "tanh"), entry["lengths"], windows)


@dataclass(frozen=True)
class CaseResult:
    """What was found in one case."""

    name: str
    rows: tuple[Comparison, ...]  # of the tensors that differ, worst first; wrong shapes have no numbers
    shapes: tuple[str, ...]  # what is to be said of wrong shapes
    compared: int  # what the port computed, and what it was given if that is wrong
    steps_wrong: int  # of the optimizers, where the gradients are wrong already
    diagnosis: Diagnosis | None
    columns: tuple[str, str] = ("theirs", "golden")

    @property
    def wrong(self) -> int:
        return len(self.rows) + len(self.shapes) + self.steps_wrong


@dataclass(frozen=True)
class Verdict:
    """All cases, and what theirs lacks."""

    results: tuple[CaseResult, ...]
    missing: Mapping[str, tuple[str, ...]]  # by case
    tolerances: Mapping[str, float]  # by the dtypes of their results

    @property
    def ok(self) -> bool:
        return not any(result.wrong for result in self.results)


def load(directory: Path) -> Golden:
    """Read the golden vectors of a directory, whole and unchanged.

    Raises ``NotComparable`` for what ``export`` has not written so, ``OSError`` for what cannot be read.
    """
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise NotComparable(f"{directory / MANIFEST} is no JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise NotComparable(f"{directory / MANIFEST} must have the format {FORMAT!r}: export it again")
    if manifest.get(OWN_HASH) != digest(manifest):
        raise NotComparable(
            f"{directory / MANIFEST} is not what was exported, or older: its hash differs; export it again"
        )
    path = next((directory / file for file in FILES if (directory / file).exists()), directory / FILES[0])
    if hashlib.sha256(path.read_bytes()).hexdigest() != manifest["sha256"][path.name]:
        raise NotComparable(f"{path} is not what was exported: its hash differs from the manifest's")
    return Golden(manifest, load_weights(path))


def load_theirs(path: Path, golden: Golden) -> dict[str, Array]:
    """Read somebody's results.

    Raises ``NotComparable`` for a file that cannot be read, unknown names, arrays that are not floating-point, and a
    file without results.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonFiniteWeightsWarning)  # the comparison says where
        try:
            theirs = load_weights(path)
        except ValueError as error:
            raise NotComparable(str(error)) from error
    if not theirs:
        raise NotComparable(f"{path} holds no arrays")
    for name, array in theirs.items():
        if name not in golden.tensors:
            raise NotComparable(
                f"{path} has the name {name!r}, expected CASE/TENSOR as in {MANIFEST}{_meant(name, golden)}"
            )
        if array.dtype.kind != "f":
            raise NotComparable(f"{name!r} of {path} must be of floating-point numbers, got {array.dtype}")
    if not any(map(golden.is_result, theirs)):
        raise NotComparable(f"{path} holds only what goes into a case, such as {next(iter(theirs))!r}, and no results")
    return theirs


def _meant(name: str, golden: Golden) -> str:
    """Ask for a name that is near in both its parts: long names of cases alone make any two names alike."""
    case, _, key = name.partition("/")
    cases = difflib.get_close_matches(case, golden.manifest["cases"], 1)
    keys = difflib.get_close_matches(key, golden.manifest["cases"][cases[0]]["tensors"], 1) if cases else []
    return f"; did you mean '{cases[0]}/{keys[0]}'?" if keys else ""


def check(golden: Golden, theirs: Mapping[str, Array], tolerance: float | None = None) -> Verdict:
    """Judge every tensor that theirs has, each by itself.

    ``tolerance``, of each tensor's largest entry, is by default the manifest's for the tensor's dtype.

    Raises ``NotComparable`` for a dtype that has no tolerance.
    """
    known, tolerances = golden.manifest["tolerances"], {}
    for dtype in sorted({array.dtype for array in theirs.values()}, key=lambda dtype: -dtype.itemsize):
        if tolerance is None and dtype.name not in known:
            raise NotComparable(f"theirs holds {dtype}, for which no tolerance is known: give one")
        tolerances[dtype.name] = float(known[dtype.name]) if tolerance is None else tolerance
    results, missing = [], {}
    for name in golden.manifest["cases"]:
        ours = golden.of_case(name)
        got = {key: theirs[f"{name}/{key}"] for key in ours if f"{name}/{key}" in theirs}
        if got:
            results.append(_case(golden, name, ours, got, tolerances))
        lacking = tuple(key for key in ours if key not in got and key not in golden.given(name))
        if lacking:
            missing[name] = lacking
    judged = {array.dtype.name for name, array in theirs.items() if golden.is_result(name)}
    shown = {dtype: within for dtype, within in tolerances.items() if dtype in judged}
    return Verdict(_likeliest_first(results), missing, shown)


def _case(
    golden: Golden, name: str, ours: Mapping[str, Array], got: Mapping[str, Array], tolerances: Mapping[str, float]
) -> CaseResult:
    tolerance = {key: tolerances[a.dtype.name] for key, a in got.items()}
    shapes = {
        key: f"{key} is {a.shape}, expected {ours[key].shape}" for key, a in got.items() if a.shape != ours[key].shape
    }
    rows = {key: compare(key, a.astype(np.float64), ours[key]) for key, a in got.items() if key not in shapes}
    wrong = {key: row for key, row in rows.items() if not row.relative <= tolerance[key]}
    steps = {key for key in ours if "/" in key}
    follows: set[str] = set()
    diagnosis = None
    core = {key: a for key, a in got.items() if key not in steps}
    if any(key in core for key in (*wrong, *shapes)):
        follows = steps & {*wrong, *shapes}
        diagnosis = diagnose(core, {k: ours[k] for k in ours if k not in steps}, golden.case(name), tolerance=tolerance)
    elif wrong or shapes:
        diagnosis = _optimizers(golden, name, ours, {key: a for key, a in got.items() if key in steps}, tolerance)
    shown = sorted((row for key, row in wrong.items() if key not in follows), key=lambda row: -row.relative)
    said = tuple(text for key, text in shapes.items() if key not in follows)
    counted = got.keys() - (golden.given(name) - {*wrong, *shapes})
    return CaseResult(name, tuple(shown), said, len(counted), len(follows), diagnosis)


def _optimizers(
    golden: Golden, name: str, ours: Mapping[str, Array], got: Mapping[str, Array], tolerance: Mapping[str, float]
) -> Diagnosis:
    """Where the gradients are right, or not given, and the steps are wrong."""
    case, found = golden.case(name), []
    for optimizer, settings in golden.manifest["optimizers"].items():
        theirs = {key: a for key, a in got.items() if key.startswith(f"{optimizer}/")}
        right = {key: a for key, a in ours.items() if key.startswith(f"{optimizer}/")}
        steps = int(settings["steps"])
        replays: dict[str, Callable[[], Mapping[str, Array]]] = {
            bug: partial(replay_steps, case, optimizer, settings, steps, bug) for bug in BUGS[optimizer]
        }
        found.append(diagnose(theirs, right, None, tolerance=tolerance, known=(BUGS[optimizer], replays)))
    groups = tuple(group for diagnosis in found for group in diagnosis.findings)
    return Diagnosis(groups, tuple(name for diagnosis in found for name in diagnosis.unexplained))


def _likeliest_first(results: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Where one case cannot tell bugs apart, let the one that explains most cases stand first."""
    votes = Counter(bug for r in results if r.diagnosis for bug in set(r.diagnosis.bugs))
    ordered = []
    for result in results:
        if result.diagnosis:
            groups = (tuple(sorted(group, key=lambda f: -votes[f.bug])) for group in result.diagnosis.findings)
            result = replace(result, diagnosis=replace(result.diagnosis, findings=tuple(groups)))
        ordered.append(result)
    return tuple(ordered)


ROWS = 8  # of one case's table


def text(verdict: Verdict) -> str:
    """Return what was found as text: a table for each case that is wrong, what is missing, and the verdict."""
    parts = []
    for result in verdict.results:
        if result.wrong:
            parts.append(_told(result))
    if verdict.missing:
        parts.append(_missing(verdict))
    compared = sum(result.compared for result in verdict.results)
    wrong = sum(result.wrong for result in verdict.results)
    within = " and ".join(f"{bound:.0e} of their scale ({dtype})" for dtype, bound in verdict.tolerances.items())
    if not wrong:
        parts.append(f"all {compared} tensors of {len(verdict.results)} cases are within {within}")
    else:
        lines = [f"{wrong} of {compared} tensors, in {sum(r.wrong > 0 for r in verdict.results)} of "
                 f"{len(verdict.results)} cases, differ by more than {within}"]  # fmt: skip
        parts.append("\n".join([*lines, *_summary(verdict)]))
    return "\n\n".join(parts)


def _told(result: CaseResult) -> str:
    lines = [f"{result.name}: {result.wrong} of {result.compared} differ"]
    if result.rows:
        table = Report(result.rows[:ROWS], 0, result.columns).table().splitlines()[:-1]
        lines += [line.removesuffix("FAIL").rstrip() for line in table]
    if len(result.rows) > ROWS:
        lines.append(f"and {len(result.rows) - ROWS} more")
    lines += result.shapes
    if result.steps_wrong:
        lines.append(f"and {result.steps_wrong} of the optimizers' steps, which follow from these")
    assert result.diagnosis is not None
    lines += result.diagnosis.lines()
    return "\n".join(lines)


def _missing(verdict: Verdict) -> str:
    cases = {result.name for result in verdict.results}
    lines = ["not in the file, so not judged:"]
    for name, lacking in verdict.missing.items():
        if name in cases:
            shown = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
            lines.append(f"  {name}: {shown}")
    rest = [name for name in verdict.missing if name not in cases]
    if rest:
        lines.append(f"  {len(rest)} whole cases: {', '.join(rest[:4])}{', ...' if len(rest) > 4 else ''}")
    return "\n".join(lines)


def _summary(verdict: Verdict) -> list[str]:
    """The bugs that explain the most cases, each once."""
    wrong = [result for result in verdict.results if result.diagnosis]
    firsts: dict[str, tuple[str, list[str]]] = {}
    for result in wrong:
        for group in result.diagnosis.findings if result.diagnosis else ():
            firsts.setdefault(group[0].bug, (group[0].text, []))[1].append(result.name)
    lines = [
        f"likely bug: {bug}: {explanation} ({len(cases)} of {len(wrong)} cases)"
        for bug, (explanation, cases) in sorted(firsts.items(), key=lambda item: -len(item[1][1]))
    ]
    unknown = [r.name for r in wrong if r.diagnosis and r.diagnosis.unexplained]
    if unknown:
        lines.append(f"no known bug has the signature of what is wrong in {len(unknown)} of {len(wrong)} cases")
    return lines
