"""What ``rnn-parity accuracy`` prints: the errors of both libraries side by side, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from torch_rnn.measure.accuracy import NOWHERE, ratio
from torch_rnn.measure.bench import Record
from torch_rnn.measure.report import WIDTH, pairs, verdict

LETTERS = """\
Each error is the largest of a tensor, in units of the last place of the tensor's largest entry; N is NumPy's, P
PyTorch's, and N/P the ratio of their medians over the seeds, neither taken for less than {floor:g} unit: below 1 NumPy
is the more accurate. "median" and "worst" are over the seeds; of several tensors, what has the largest. Truth is the
same pass in a wider type. Rows are T, B, I, H."""
FUNCTIONS = """\
The functions that the cells are built of, in units of the last place of their own values, mean and worst: a cell cannot
be more accurate than its tanh where that is saturated, nor than its sigmoid where a gate is nearly shut."""
NOT_MEASURED = """\
{dtype} is not measured: longdouble is float64 on this machine, and mpmath is not installed."""
BY_MPMATH = "{dtype} is measured by mpmath, on the smallest shapes only: longdouble is float64 on this machine."
OUTPUTS = ("output", "h_n", "c_n")


def text(record: Record) -> str:
    """Return the whole report."""
    parts = [_fill(_conditions(record)), _fill(LETTERS.format(floor=record["settings"]["floor"]))]
    for dtype, truth in record["truth"].items():
        if truth in (None, "mpmath"):
            parts.append(_fill((BY_MPMATH if truth else NOT_MEASURED).format(dtype=dtype)))
    for cell, dtype in pairs(record):
        rows = [row for row in record["rows"] if (row["cell"], row["dtype"]) == (cell, dtype)]
        parts += [_cases(f"{cell.upper()} {dtype}", rows), _tensors(f"{cell.upper()} {dtype}", rows)]
    if record["rows"]:
        parts += [_functions(record), _goals(record)]
    return "\n\n".join(parts)


def units(value: float) -> str:
    """Return an error in at most six characters.

    >>> units(0.5), units(12.345), units(902.2), units(1.2e7), units(float("inf"))
    ('0.50', '12.3', '902', '1.2e7', 'inf')
    """
    if value < 9.995:
        return f"{value:.2f}"
    if value < 9999.5:
        return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _conditions(record: Record) -> str:
    machine, versions, settings = record["machine"], record["versions"], record["settings"]
    seeds = sorted({row["seeds"] for row in record["rows"]})
    quick = ", with --quick" if settings["quick"] else ""
    return (
        f"Measured {record['date']} on {machine['processor']} ({machine['system']}), one thread each; "
        f"NumPy {versions['numpy']} with {machine['blas']}, PyTorch {versions['torch']} "
        f"{'with' if machine['onednn'] else 'without'} oneDNN, Python {versions['python']}; "
        f"{' to '.join(map(str, seeds)) or 'no'} seeds{quick}."
    )


def _both(tensors: Sequence[Record], figure: str) -> str:
    """Return the largest figure of some tensors, of each library, in 14 columns."""
    return "".join(f"{units(max(t[library][figure] for t in tensors)):>7}" for library in ("numpy", "torch"))


def _cases(title: str, rows: list[Record]) -> str:
    head = "".join(f"{name:>14}" for name in ("outputs N, P", "grads N, P", "worst N, P"))
    lines = [f"{title:<26}{head}{'N/P':>6}{'most':>6}  of      <= {NOWHERE:g}"]
    for row in rows:
        tensors = row["tensors"]
        parts = [[t for name, t in tensors.items() if (name not in OUTPUTS) == grads] for grads in (False, True)]
        figures = "".join(_both(part, "median") for part in parts)
        most = max(tensors, key=lambda name: float(tensors[name]["ratio"]))
        ratios = [tensor["ratio"] for tensor in tensors.values()]
        met = "met" if tensors[most]["ratio"] <= NOWHERE else "MISSED"
        lines.append(
            f"{row['label']:<26}{figures}{_both(list(tensors.values()), 'worst')}"
            f"{units(float(np.median(ratios))):>6}{units(max(ratios)):>6}  {most:<8}{met}"
        )
    return "\n".join(lines)


def _tensors(title: str, rows: list[Record]) -> str:
    """Return the table of the tensors: of the medians the median over the cases, the worst of all, the ratios."""
    head = "".join(f"{name:>14}" for name in ("median N, P", "worst N, P"))
    lines = [f"{title:<26}{head}{'N/P':>6}{'most':>6}  at"]
    for name in rows[0]["tensors"]:
        of_cases = [row["tensors"][name] for row in rows]
        middle = {
            library: {"median": float(np.median([tensor[library]["median"] for tensor in of_cases]))}
            for library in ("numpy", "torch")
        }
        most = max(rows, key=lambda row: float(row["tensors"][name]["ratio"]))
        lines.append(
            f"{name:<26}{_both([middle], 'median')}{_both(of_cases, 'worst')}{units(ratio(middle)):>6}"
            f"{units(most['tensors'][name]['ratio']):>6}  {most['label']}"
        )
    return "\n".join(lines)


def _functions(record: Record) -> str:
    lines = [_fill(FUNCTIONS), f"{'':<34}{'mean N':>7}{'P':>7}{'worst N':>9}{'P':>7}"]
    for entry in record["functions"]:
        name = f"{entry['name']} {entry['range']}"
        mean, worst = (
            [units(entry[library][figure]) for library in ("numpy", "torch")] for figure in ("mean", "worst")
        )
        lines.append(f"{name:<26}{entry['dtype']}{mean[0]:>8}{mean[1]:>7}{worst[0]:>9}{worst[1]:>7}")
    return "\n".join(lines)


def _goals(record: Record) -> str:
    lines = [f"{'NumPy over PyTorch':<34}{'value':>7}  goal"]
    for goal in record["goals"]:
        lines.append(f"{goal['cell']} {goal['dtype']} {goal['name']}".ljust(34) + _goal(goal))
    return "\n".join(lines)


def _goal(goal: dict[str, Any]) -> str:
    where = ""
    if "where" in goal and not goal["met"]:
        where = f"  {goal['where'][1]} of {goal['where'][0]}"
    if "worst" in goal:
        where = f"  {units(goal['worst']['numpy'])} over {units(goal['worst']['torch'])}"
    return f"{units(goal['value']):>7}  {verdict([goal])}{where}"


def _fill(paragraph: str) -> str:
    return textwrap.fill(" ".join(paragraph.split()), WIDTH, break_on_hyphens=False)
