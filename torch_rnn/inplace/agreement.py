"""Whether two libraries did the same in one experiment."""

from __future__ import annotations

import numpy as np

from numpy_rnn.gradcheck import compare
from numpy_rnn.typing import Array
from torch_rnn.inplace.experiment import Experiment, Outcome, Window
from torch_rnn.tolerances import PARITY

# The scale of a gradient is at least this part of the largest one of its window. Where tanh is saturated, or the
# network tiny, the terms of one gradient can cancel to almost nothing; rounding is then of the size of what was added
# up, which the largest gradient tells and the sum does not. In float64 it came to 1e-9 of such a sum.
LEAST_SCALE = 0.01


def differences(experiment: Experiment, ours: Outcome, theirs: Outcome) -> list[str]:
    """Return what differs between NumPy's outcome and PyTorch's, in words; nothing if they did the same.

    The same is: both ran, or both raised the matching error in the same window, with the same two versions, for an
    array of one shape up to transposition; and in every window before, equal versions of every parameter, equal sharing
    of memory, and losses and gradients equal within the parity tolerance of the dtype. The scale of a gradient is its
    largest entry, or ``LEAST_SCALE`` of the largest entry of all gradients of its window.
    """
    found = []
    if _what(ours) != _what(theirs):
        found.append(f"numpy: {_what(ours)}; torch: {_what(theirs)}")
    for i, (a, b) in enumerate(zip(ours.windows, theirs.windows, strict=False)):
        found += [f"window {i}: {difference}" for difference in _window_differences(experiment, a, b)]
    return found


def _what(outcome: Outcome) -> tuple[object, ...]:
    failure = outcome.failure
    if failure is None:
        return ("ran", len(outcome.windows))
    shape = None if failure.shape is None else sorted(failure.shape)
    return (failure.kind, outcome.at, failure.version, failure.expected, shape)


def _window_differences(experiment: Experiment, ours: Window, theirs: Window) -> list[str]:
    found = []
    for field in ("versions_before", "versions_after", "shares_memory"):
        if getattr(ours, field) != getattr(theirs, field):
            found.append(f"{field} {getattr(ours, field)} and {getattr(theirs, field)}")
    tolerance = PARITY[np.dtype(experiment.dtype)]
    if (row := compare("loss", np.array(ours.loss), np.array(theirs.loss))).relative > tolerance:
        found.append(f"loss differs by {row.relative:.1e} of its scale")
    least = LEAST_SCALE * max((_largest(g) for g in theirs.gradients.values() if g is not None), default=0.0)
    for name in dict.fromkeys((*ours.gradients, *theirs.gradients)):
        a, b = ours.gradients.get(name), theirs.gradients.get(name)
        if a is None or b is None:
            if a is not b:
                found.append(f"d{name} is None on one side only")
        elif a.shape != b.shape:
            found.append(f"d{name} has the shapes {a.shape} and {b.shape}")
        else:
            row = compare(f"d{name}", a, b)
            relative = min(row.relative, row.max_abs / least if least > 0 else np.inf)
            if relative > tolerance:
                found.append(f"d{name} differs by {relative:.1e} of its scale")
    return found


def _largest(gradient: Array) -> float:
    """The largest finite entry by size, 0 if there is none."""
    finite = np.abs(gradient[np.isfinite(gradient)])
    return float(finite.max()) if finite.size else 0.0
