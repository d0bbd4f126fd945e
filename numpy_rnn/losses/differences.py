"""Losses that read nothing but the difference of input and target: squared, absolute, and the two between them.

The equations are derived in derivations/08-losses.md. Each loss has a pair of plain functions of the difference d: the
loss itself, and its slope.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from numpy_rnn.losses.reduction import check_input, check_like_input, check_no_gradient, check_reduction, reduce, spread
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Tensor, as_tensor, record
from numpy_rnn.typing import Array


def mse_loss(
    input: Tensor | ArrayLike,
    target: Tensor | ArrayLike,
    reduction: str = "mean",
    weight: Tensor | ArrayLike | None = None,
) -> Tensor:
    """Return the squared error (input - target)², reduced as in ``torch.nn.functional.mse_loss``.

    >>> prediction = Tensor(np.array([1.0, 2.0]), requires_grad=True)
    >>> loss = mse_loss(prediction, np.array([0.0, 4.0]))
    >>> loss.backward()
    >>> loss.item(), prediction.grad
    (2.5, Tensor([ 1., -2.]))

    Arguments: ``input`` and ``target`` of one shape and dtype; ``reduction`` "mean" over all elements, "sum", or
    "none"; ``weight`` of the shape of input multiplies the losses, and the mean then divides by its sum. Input and
    target may require a gradient: d input = 2 (input - target) / N for the mean of N elements, and d target = -d input.
    Equations (1.10), (2.31).

    Raises ``ValueError`` for unequal shapes (PyTorch only warns, and broadcasts) or an unknown reduction, ``TypeError``
    for unequal dtypes or integers.
    """
    return _record("mse_loss", input, target, reduction, square, square_slope, weight)


def square(d: Array) -> Array:
    return d * d  # input.shape (1.10)


def square_slope(d: Array) -> Array:
    return 2 * d  # input.shape (2.31)


def l1_loss(
    input: Tensor | ArrayLike,
    target: Tensor | ArrayLike,
    reduction: str = "mean",
    weight: Tensor | ArrayLike | None = None,
) -> Tensor:
    """Return the absolute error |input - target|, reduced as in ``torch.nn.functional.l1_loss``.

    >>> prediction = Tensor(np.array([1.0, 2.0, 3.0]), requires_grad=True)
    >>> loss = l1_loss(prediction, np.array([0.0, 4.0, 3.0]), reduction="sum")
    >>> loss.backward()
    >>> loss.item(), prediction.grad
    (3.0, Tensor([ 1., -1.,  0.]))

    Arguments and errors as for ``mse_loss``. The slope is 1 above the target, -1 below, and 0 where the two are equal,
    or where one of them is nan. Equations (8.7), (8.8).
    """
    return _record("l1_loss", input, target, reduction, absolute, sign, weight, saves_slope=True)


def absolute(d: Array) -> Array:
    return np.asarray(np.abs(d))  # input.shape (8.7)


def sign(d: Array) -> Array:
    return np.subtract(d > 0, d < 0, dtype=d.dtype)  # input.shape (8.8)


def huber_loss(
    input: Tensor | ArrayLike,
    target: Tensor | ArrayLike,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | ArrayLike | None = None,
) -> Tensor:
    """Return a loss that is d²/2 up to |d| = delta and a straight line from there on, d = input - target.

    >>> prediction = Tensor(np.array([0.5, 3.0]), requires_grad=True)
    >>> loss = huber_loss(prediction, np.zeros(2), reduction="sum", delta=2.0)
    >>> loss.backward()
    >>> loss.item(), prediction.grad
    (4.125, Tensor([0.5, 2. ]))

    Arguments and errors as for ``mse_loss``, reduced as in ``torch.nn.functional.huber_loss``, whose
    weighted mean divides by N and not by the sum of the weights; ``delta`` greater than 0, else ``ValueError``.
    Equations (8.9), (8.10).
    """
    delta = float(delta)
    if not delta > 0:
        raise ValueError(f"delta must be greater than 0, got {delta}")
    loss, slope = partial(huber, delta=delta), partial(huber_slope, delta=delta)
    return _record("huber_loss", input, target, reduction, loss, slope, weight)


def huber(d: Array, delta: float) -> Array:
    size = np.abs(d)  # input.shape
    clipped = np.minimum(size, delta)  # input.shape
    return np.asarray(clipped * (size - clipped / 2))  # input.shape (8.9)


def huber_slope(d: Array, delta: float) -> Array:
    return np.clip(d, -delta, delta)  # input.shape (8.10)


def smooth_l1_loss(
    input: Tensor | ArrayLike, target: Tensor | ArrayLike, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Return a loss that is d²/(2 beta) up to |d| = beta and |d| - beta/2 from there on, d = input - target.

    >>> prediction = Tensor(np.array([0.5, 3.0]), requires_grad=True)
    >>> loss = smooth_l1_loss(prediction, np.zeros(2), reduction="sum", beta=2.0)
    >>> loss.backward()
    >>> loss.item(), prediction.grad
    (2.0625, Tensor([0.25, 1.  ]))

    Arguments and errors as for ``mse_loss``, reduced as in ``torch.nn.functional.smooth_l1_loss``; ``beta`` at least 0,
    else ``ValueError``; with 0 it is ``l1_loss``. Equation (8.11).
    """
    beta = float(beta)
    if not beta >= 0:
        raise ValueError(f"beta must be at least 0, got {beta}")
    if as_tensor("input", input).dtype.type(beta) == 0:  # in float32 this may be less than there is
        return l1_loss(input, target, reduction)
    loss, slope = partial(smooth_l1, beta=beta), partial(smooth_l1_slope, beta=beta)
    return _record("smooth_l1_loss", input, target, reduction, loss, slope)


def smooth_l1(d: Array, beta: float) -> Array:
    return np.asarray(huber(d, beta) / beta)  # input.shape (8.11)


def smooth_l1_slope(d: Array, beta: float) -> Array:
    return np.asarray(huber_slope(d, beta) / beta)  # input.shape (8.11)


def _record(
    name: str,
    input: Tensor | ArrayLike,
    target: Tensor | ArrayLike,
    reduction: str,
    loss: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    weight: Tensor | ArrayLike | None = None,
    saves_slope: bool = False,
) -> Tensor:
    """Enter a loss of the difference in the graph.

    PyTorch keeps input and target for the backward, which are then version-checked, and for the absolute error the
    slopes themselves, which nobody else can write to: ``saves_slope``.
    """
    input, target = as_tensor("input", input), as_tensor("target", target)
    check_reduction(reduction)
    check_input(input)
    check_like_input("target", target, input)
    d = np.asarray(input.data - target.data)  # input.shape (8.5)
    losses, w, total = loss(d), np.ones((), d.dtype), d.size
    saved_weight = []
    if weight is not None:
        weight = as_tensor("weight", weight)
        check_like_input("weight", weight, input)
        check_no_gradient("weight", weight)
        losses, total = losses * weight.data, d.size if name == "huber_loss" else weight.data.sum()
        saved_weight = [Saved(weight.data, weight, "weight", name)]
    output, needs_target = reduce(losses, reduction, total), target.requires_grad
    saved = [Saved(input.data, input, "input", name), Saved(target.data, target, "target", name)]
    if saves_slope:
        saved = [Saved(slope(d), None, "the slopes", name)]

    def backward(d_loss: Array) -> list[Array | None]:
        read = [s.read() for s in saved]
        slopes = read[0] if saves_slope else slope(np.asarray(read[0] - read[1]))  # input.shape
        factor = saved_weight[0].read() if saved_weight else w  # input.shape or ()
        d_input = np.asarray(slopes * factor * spread(d_loss, reduction, total))  # input.shape (8.6)
        return [d_input, np.asarray(-d_input) if needs_target else None]  # input.shape (8.6)

    return record(name, [output], [input, target], backward, saved + saved_weight)[0]
