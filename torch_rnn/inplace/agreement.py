"""Whether two libraries did the same in one experiment."""

from __future__ import annotations

import numpy as np

from numpy_rnn.gradcheck import compare
from numpy_rnn.typing import Array
from torch_rnn.inplace.experiment import Experiment, Outcome, Window
from torch_rnn.tolerances import PARITY


def differences(experiment: Experiment, ours: Outcome, theirs: Outcome) -> list[str]:
    """Return what differs between NumPy's outcome and PyTorch's, in words; nothing if they did the same.

    The same is: both ran, or both raised the matching error in the same window, with the same two versions, for an
    array of one shape up to transposition; and in every window before, equal versions of every parameter, equal sharing
    of memory, and losses and gradients equal within the parity tolerance of the dtype.
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
    pairs: dict[str, tuple[Array | None, Array | None]] = {"loss": (np.array(ours.loss), np.array(theirs.loss))}
    pairs |= {f"d{name}": (gradient, theirs.gradients[name]) for name, gradient in ours.gradients.items()}
    for name, (a, b) in pairs.items():
        if a is None or b is None:
            if a is not b:
                found.append(f"{name} is None on one side only")
        elif (row := compare(name, a, b)).relative > tolerance:
            found.append(f"{name} differs by {row.relative:.1e} of its scale")
    return found
