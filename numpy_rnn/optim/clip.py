"""Clipping by the norm of all gradients together."""

import math
from collections.abc import Iterable

import numpy as np

from numpy_rnn.tensor import Tensor


def get_total_norm(tensors: Iterable[Tensor], error_if_nonfinite: bool = False) -> float:
    """Return the 2-norm of all entries of ``tensors`` together: the norm of their norms.

    >>> get_total_norm([Tensor(np.array([3.0])), Tensor(np.array([4.0]))])
    5.0

    Computed in the tensors' dtype. Raises ``RuntimeError`` for nan or inf if ``error_if_nonfinite``.
    """
    norms = [np.linalg.norm(tensor.data) for tensor in tensors]
    total = float(np.linalg.norm(norms)) if norms else 0.0
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(f"the total norm of the gradients is {total}, so they cannot be clipped; none was changed")
    return total


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, *, error_if_nonfinite: bool = False
) -> float:
    """Scale all gradients in place so that their total 2-norm is at most ``max_norm``; return the norm before.

    >>> weight = Tensor(np.zeros(2), requires_grad=True)
    >>> weight.grad = Tensor(np.array([3.0, 4.0]))
    >>> clip_grad_norm_(weight, 1.0), weight.grad.data.round(6).tolist()
    (5.0, [0.6, 0.8])

    As in PyTorch every gradient is multiplied by min(1, max_norm / (norm + 1e-6)), whatever the norm, which raises the
    gradients' versions; an infinite norm makes the infinite entries nan and the others zero, a nan norm makes all nan.
    Parameters without a gradient are skipped.

    Raises ``RuntimeError`` for a nan or infinite norm if ``error_if_nonfinite``; no gradient is changed then.
    ``ValueError`` if ``max_norm`` is negative or nan.
    """
    if not max_norm >= 0:
        raise ValueError(f"max_norm must be at least 0, got {max_norm}")
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = get_total_norm(gradients, error_if_nonfinite)
    coefficient = max_norm / (total + 1e-6)
    coefficient = 1.0 if coefficient > 1 else coefficient  # a nan stays a nan
    with np.errstate(invalid="ignore"):
        for gradient in gradients:
            gradient.data *= coefficient
            gradient._bump_version("clip_grad_norm_")
    return total
