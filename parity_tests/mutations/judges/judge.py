"""What all judges share: the names of the weak tests, and the comparison that stops at the first difference."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import closing
from typing import Any, Protocol, Self

import numpy as np
import torch

TOLERANCE = 1e-12  # of a tensor's largest entry, as torch_rnn.tolerances has it for float64
LOOSE = 1e-2

# Each name, and what it changes in the strong check.
WEAK_TESTS = {
    "ones": "the upstream gradients are ones",
    "sum": "one window and `output.sum().backward()`: ones, one call, no final state in the loss",
    "T=1": "windows of one step",
    "h₀=0": "every window starts from zeros",
    "b=0": "all biases are zero",
    "equal": "all parameters are one number",
    "I=H=B": "square shapes",
    "B=1": "a batch of one",
    "1 layer": "one layer, of a list of tensors one",
    "1 call": "one call and one backward, one step of an optimizer or a schedule",
    "weights": "gradients of weights alone compared; of an optimizer the weights, not its state",
    "1e-2": "tolerance 1e-2",
    "W/1000": "tolerance 1e-2, and recurrent weights of a thousandth, as where people divide their initial weights",
    "all": "all of these at once",
    "falls": "no comparison: the loss falls",
}
Events = Generator[tuple[str, Any], None, None]


class Judge(Protocol):
    """A check of one kind of code, as a value: equal ones give equal results."""

    def weakened(self, weak_test: str) -> Self | None:
        """The same check with one thing weakened, None where that changes nothing."""

    def expected(self) -> dict[str, Any]:
        """Every number of PyTorch's."""

    def found(self) -> Events:
        """The same of ours, as they are computed."""

    def falls(self) -> bool:
        """Whether a few steps of training lower the loss."""

    @property
    def tolerance(self) -> float: ...


def notices(judge: Judge) -> bool:
    """Whether the check fails now: by a difference, by a warning or by an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            with closing(judge.found()) as events:
                return any(differs(value, judge.expected()[name], judge.tolerance) for name, value in events)
        except Exception:  # a test that runs into an error fails, whichever it is
            return True


def notices_no_fall(judge: Judge) -> bool:
    """The same for the test that only looks whether the loss falls."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return not judge.falls()
        except Exception:
            return True


def verdicts(judge: Judge) -> dict[str, bool | None]:
    """For each weak test whether it notices what is wrong now, None where it is not weaker than the strong check."""
    found: dict[str, bool | None] = {}
    for name in WEAK_TESTS:
        if name == "falls":
            found[name] = notices_no_fall(judge)
        else:
            weakened = judge.weakened(name)
            found[name] = None if weakened is None or weakened == judge else notices(weakened)
    return found


def differs(got: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, str) or expected is None or got is None:
        return bool(type(got) is not type(expected) or got != expected)
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return True
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    return not np.allclose(got, expected, rtol=0, atol=tolerance * scale, equal_nan=True)


def array_of(tensor: Any) -> Any:
    """The numbers of a Tensor of either library, copied; None of None."""
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach().numpy()
    return None if tensor is None else np.array(tensor)
