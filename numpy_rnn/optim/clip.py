"""Clipping of gradients, by the norm of all together or entry by entry."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from numpy_rnn.optim.blocks import blocks
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> float:
    """Return the norm of all entries of ``tensors`` together: the norm of their norms (9.39).

    >>> get_total_norm([Tensor(np.array([3.0])), Tensor(np.array([4.0]))])
    5.0

    ``norm_type`` is p of the p-norm, ``float("inf")`` (or "inf") for the largest absolute value. With p = 0 the number
    of tensors that are not all zero comes out, as in PyTorch: for the norm of norms is not the norm then. Computed in
    the tensors' dtype; tensors without entries are passed over.

    Raises ``RuntimeError`` for nan or inf if ``error_if_nonfinite``; ``ValueError`` if ``norm_type`` is nan.
    """
    p = float(norm_type)
    if math.isnan(p):
        raise ValueError("norm_type must be a number or inf, got nan")
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    with np.errstate(divide="ignore"):  # 0 ** -1 of a negative p
        norms = [_norm(tensor.data, p) for tensor in tensors if tensor.data.size]
        total = float(np.linalg.norm(norms, p)) if norms else 0.0  # (9.39)
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(f"the total norm of the gradients is {total}, so they cannot be clipped; none was changed")
    return total


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> float:
    """Scale all gradients in place so that their total norm is at most ``max_norm``; return the norm before (9.40).

    >>> weight = Tensor(np.zeros(2), requires_grad=True)
    >>> weight.grad = Tensor(np.array([3.0, 4.0]))
    >>> clip_grad_norm_(weight, 1.0), weight.grad.data.round(6).tolist()
    (5.0, [0.6, 0.8])

    As in PyTorch every gradient is multiplied by min(1, max_norm / (norm + 1e-6)), whatever the norm, which raises the
    gradients' versions; an infinite norm makes the infinite entries nan and the others zero, a nan norm makes all nan.
    Parameters without a gradient are skipped. ``norm_type`` as in ``get_total_norm``.

    Raises ``RuntimeError`` for a nan or infinite norm if ``error_if_nonfinite``; no gradient is changed then.
    ``ValueError`` if ``max_norm`` is negative (PyTorch turns the gradients round) or nan.
    """
    if not max_norm >= 0:
        raise ValueError(f"max_norm must be at least 0, got {max_norm}")
    gradients = _gradients(parameters)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    coefficient = max_norm / (total + 1e-6)
    coefficient = 1.0 if coefficient > 1 else coefficient  # a nan stays a nan
    with np.errstate(invalid="ignore"):
        for gradient in gradients:
            gradient.data *= coefficient  # (9.40)
            gradient._bump_version("clip_grad_norm_")
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clip every entry of every gradient in place into [-clip_value, clip_value] (9.41).

    >>> weight = Tensor(np.zeros(3), requires_grad=True)
    >>> weight.grad = Tensor(np.array([3.0, -0.5, -4.0]))
    >>> clip_grad_value_(weight, 1.0)
    >>> weight.grad.data
    array([ 1. , -0.5, -1. ])

    A nan stays nan. PyTorch's default writes twice, once for each end, so the gradients' versions go up by two.
    Parameters without a gradient are skipped; if none has one, nothing happens (PyTorch raises).

    Raises ``ValueError`` if ``clip_value`` is negative (PyTorch makes every entry equal to it) or nan.
    """
    if not clip_value >= 0:
        raise ValueError(f"clip_value must be at least 0, got {clip_value}")
    for gradient in _gradients(parameters):
        np.clip(gradient.data, -clip_value, clip_value, out=gradient.data)  # (9.41)
        gradient._bump_version("clip_grad_value_")
        gradient._bump_version("clip_grad_value_")


def _norm(array: Array, p: float) -> np.floating[Any]:
    """Return the p-norm of all entries, as the norm of those of the blocks; for p = 0, whether any is not zero."""
    norms = [np.linalg.norm(block.ravel(), p) for (block,) in blocks(array)]
    return norms[0] if len(norms) == 1 else np.linalg.norm(norms, p)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [parameter.grad for parameter in parameters if parameter.grad is not None]
