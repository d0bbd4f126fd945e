"""What all losses share: many losses become one number, and the checks of the arguments."""

from typing import Any

import numpy as np

from numpy_rnn.tensor import FLOATS, Tensor, is_recording
from numpy_rnn.typing import Array

REDUCTIONS = ("mean", "sum", "none")


def reduce(losses: Array, reduction: str, total: Any) -> Array:
    """Return the ``losses`` themselves, their sum, or their sum divided by ``total``; 0 / 0 is nan, as in PyTorch."""
    if reduction == "none":
        return losses
    with np.errstate(divide="ignore", invalid="ignore"):
        summed = losses.sum()  # () (8.2)
        return np.asarray(summed / total if reduction == "mean" else summed)  # () (8.1)


def spread(d_loss: Array, reduction: str, total: Any) -> Array:
    """Return the gradient of each of the losses, or one number that is the gradient of all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(d_loss / total if reduction == "mean" else d_loss)  # () or as the losses (8.3)


def check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")


def check_input(input: Tensor) -> None:
    if input.dtype not in FLOATS:
        raise TypeError(f"input must be float32 or float64, got {input.dtype}")


def check_dtype(name: str, tensor: Tensor, input: Tensor) -> None:
    if tensor.dtype != input.dtype:
        raise TypeError(f"{name} must have the dtype of input, {input.dtype}, got {tensor.dtype}")


def check_like_input(name: str, tensor: Tensor, input: Tensor) -> None:
    if tensor.shape != input.shape:
        raise ValueError(f"{name} must have the shape of input, {input.shape}, got {tensor.shape}")
    check_dtype(name, tensor, input)


def check_no_gradient(name: str, tensor: Tensor | None) -> None:
    """PyTorch derives no gradient for these weights either, and refuses too."""
    if is_recording([tensor]):
        raise RuntimeError(f"{name} must not require a gradient: this loss has none for it; pass {name}.detach()")
