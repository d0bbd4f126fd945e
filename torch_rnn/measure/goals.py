"""The goals, and whether a figure meets them. They are aims, not tests: an exit status never depends on them."""

from __future__ import annotations

from typing import Any

from torch_rnn.measure.grid import NEAR_THE_LIMIT, Row
from torch_rnn.measure.timing import geometric_mean

LARGE = 1024  # B*H from which on the goal of float32 LSTM is higher
MEANS = {"rnn": ("rnn", None, 4.0), "gru": ("gru", None, 2.0), "lstm float64": ("lstm", "float64", 2.0)}
WHOLE_GRID = 2.7
OVERHEAD = 20.0  # calls of a ufunc on ten elements, a window and layer
IMPORT = 1.5  # times the import of numpy
OPTIMIZER = 1.0  # PyTorch's time in a for-loop over NumPy's
TEMPORARIES = 0.5  # of a step, over the largest parameter: less than any that has its size
SAVED = 1.0  # bytes saved over PyTorch's
LINEAR = 1.05  # an exponent that is called linear, with room for what does not grow at all


def ratio_goal(row: Row) -> float:
    """Return the least ratio, PyTorch's time over NumPy's for forward and backward, aimed at."""
    if row.cell == "lstm" and row.dtype == "float32":
        return 0.75 if row.B * row.H >= LARGE else 0.5
    return 1.0


def limit_goal(row: Row) -> float | None:
    """Return the least fraction of the limit aimed at, None where there is no such goal."""
    if not row.plain or row.shape not in NEAR_THE_LIMIT:
        return None
    return 0.8 if row.cell == "rnn" else 0.7


def judge(name: str, value: float, goal: float, *, at_most: bool = False) -> dict[str, Any]:
    """Return a goal with what was reached.

    >>> judge("ratio", 1.25, 1.0)
    {'name': 'ratio', 'value': 1.25, 'goal': 1.0, 'at_most': False, 'met': True}
    """
    met = value <= goal if at_most else value >= goal
    return {"name": name, "value": value, "goal": goal, "at_most": at_most, "met": met}


def of_row(row: Row, ratio: float, of_limit: float) -> list[dict[str, Any]]:
    """Return the goals of a row, judged."""
    judged = [judge("ratio", ratio, ratio_goal(row))]
    if (goal := limit_goal(row)) is not None:
        judged.append(judge("of the limit", of_limit, goal))
    return judged


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the geometric mean of the ratios of each cell and dtype, of each cell, and of the whole grid, judged."""

    def mean(name: str, cell: str | None, dtype: str | None, goal: float | None) -> dict[str, Any] | None:
        chosen = [row for row in rows if cell in (None, row["cell"]) and dtype in (None, row["dtype"])]
        if not chosen:
            return None
        value = geometric_mean([row["ratio"]["both"]["median"] for row in chosen])
        judged = {"name": name, "value": value} if goal is None else judge(name, value, goal)
        return {**judged, "cell": cell, "dtype": dtype, "rows": len(chosen)}

    pairs = dict.fromkeys((row["cell"], row["dtype"]) for row in rows)
    goals = {(cell, dtype): goal for cell, dtype, goal in MEANS.values()}
    found = [mean(f"{cell} {dtype}", cell, dtype, goals.get((cell, dtype))) for cell, dtype in pairs]
    found += [mean(name, cell, dtype, goal) for name, (cell, dtype, goal) in MEANS.items() if dtype is None]
    found.append(mean("whole grid", None, None, WHOLE_GRID))
    return [entry for entry in found if entry is not None]
