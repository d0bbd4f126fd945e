"""What two loss curves look like where no controls show what rounding does: marks of rounding or a bug, no proof."""

from __future__ import annotations

import numpy as np

from torch_rnn.curves.compare_logs import LogComparison
from torch_rnn.curves.statistic import FLOOR
from torch_rnn.tolerances import PARITY

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
JUMP = 100  # a difference that grows by this factor from one logged step to the next has jumped


def hints(found: LogComparison) -> list[str]:
    """Say how the curves start and, where there are steps to see it at, how their difference grows."""
    if found.first_different is None:
        return []
    return [start(found), shape(found)] if len(found.steps) > 1 else [start(found)]


def start(found: LogComparison) -> str:
    """Say whether the first losses can be those of the same weights and data."""
    if not found.from_the_start:
        return f"The logs begin with {found.a.step_column} {found.steps[0]:.10g}: whether both start alike is not seen."
    first = "The first losses" if found.by == "step" else "The losses of the first row"
    if found.evidence.difference[0] == 0:
        return f"{first} are equal in all digits of the logs, as from equal weights and data."
    share = float(found.evidence.difference[0] / found.evidence.loss[0])
    text = f"{first} differ by {share:.0e} of the loss"
    if share <= PARITY[FLOAT64]:
        return f"{text}, as from equal weights and data."
    if share <= PARITY[FLOAT32]:
        beyond = f", and not in float64, where it is at most {PARITY[FLOAT64]:.0e}" if found.dtype == "float64" else ""
        return f"{text}, as from equal weights and data in float32{beyond}."
    unless = "" if found.by == "step" else ", if that is the loss of one step"
    return (
        f"{text}; from equal weights and data rounding makes at most {PARITY[FLOAT32]:.0e}, even in float32. So the "
        f"weights, the data or the loss differ{unless}."
    )


def shape(found: LogComparison) -> str:
    """Say whether the difference jumps or grows."""
    floor = np.maximum(FLOOR * np.finfo(found.dtype).eps * found.evidence.loss, found.unit)
    largest = np.maximum.accumulate(np.maximum(found.difference, floor))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        factors = largest[1:] / largest[:-1]
    if (factors >= JUMP).any():
        row = int(np.nanargmax(factors)) + 1
        small = largest[row] < JUMP * np.finfo(np.float32).eps * found.evidence.loss[row]
        float64 = " in float64" if found.dtype == "float64" and small else ""
        return (
            f"At step {found.steps[row]:.10g} the difference jumps, from {largest[row - 1]:.0e} or less to "
            f"{largest[row]:.0e}. Rounding{float64} seldom jumps; a bug does so where it first acts."
        )
    if found.growth is not None and found.growth > 1.0005:
        return (
            f"The difference grows without a jump, by a factor of {found.growth:.4g} a step, as rounding does that "
            "training multiplies. A small bug can do so too."
        )
    return "The difference neither jumps nor grows steadily."
