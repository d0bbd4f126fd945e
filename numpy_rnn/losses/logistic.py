"""The loss of yes-or-no answers. The equations are derived in derivations/08-losses.md."""

import numpy as np
from numpy.typing import ArrayLike

from numpy_rnn.cells.sigmoid import sigmoid
from numpy_rnn.losses.reduction import (
    check_dtype,
    check_input,
    check_like_input,
    check_no_gradient,
    check_reduction,
    reduce,
    spread,
)
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Tensor, as_tensor, record
from numpy_rnn.typing import Array, MaybeArray

NAME = "binary_cross_entropy_with_logits"


def binary_cross_entropy_with_logits(
    input: Tensor | ArrayLike,
    target: Tensor | ArrayLike,
    weight: Tensor | ArrayLike | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | ArrayLike | None = None,
) -> Tensor:
    """Return the cross entropy between the probabilities ``target`` and σ(input), reduced as in PyTorch.

    >>> logits = Tensor(np.array([0.0, 10000.0, -10000.0]), requires_grad=True)
    >>> loss = binary_cross_entropy_with_logits(logits, np.array([1.0, 1.0, 1.0]), reduction="none")
    >>> loss.numpy().round(6).tolist()
    [0.693147, 0.0, 10000.0]
    >>> loss.backward(np.ones(3))
    >>> logits.grad
    Tensor([-0.5,  0. , -1. ])

    Arguments: ``input`` the logits, of any shape, and ``target`` of the same shape and dtype; ``weight`` of each loss
    and ``pos_weight`` of the yes-term, of a shape that broadcasts to that of ``input``; ``reduction`` "mean" over all
    elements (whatever their weights), "sum", or "none". ``input`` and ``target`` may require gradients. Equations
    (8.28) to (8.31).

    Where the sure answer is right, the loss keeps its relative accuracy. (PyTorch's form subtracts and rounds it to 0
    from |input| = 40 on.) An infinite logit may give nan.

    Raises ``ValueError`` for a shape that does not fit or an unknown reduction, ``TypeError`` for unequal dtypes or
    integers, ``RuntimeError`` for a weight that requires a gradient.
    """
    input, target = as_tensor("input", input), as_tensor("target", target)
    check_reduction(reduction)
    check_input(input)
    check_like_input("target", target, input)
    weights = [None if w is None else as_tensor(n, w) for n, w in (("weight", weight), ("pos_weight", pos_weight))]
    for name, tensor in zip(("weight", "pos_weight"), weights, strict=True):
        _check_weight(name, tensor, input)
    w, p = (None if tensor is None else tensor.data for tensor in weights)
    with np.errstate(invalid="ignore"):
        losses = _weighted(logistic(input.data, target.data, p), w)  # input.shape (8.29)
        output, size = reduce(losses, reduction, losses.size), losses.size
    saved = [Saved(input.data, input, "input", NAME), Saved(target.data, target, "target", NAME)]
    saved_weights = [
        None if tensor is None else Saved(tensor.data, tensor, name, NAME)
        for name, tensor in zip(("weight", "pos_weight"), weights, strict=True)
    ]
    needs_input, needs_target = input.requires_grad, target.requires_grad

    def backward(d_loss: Array) -> list[Array | None]:
        z, t = (s.read() for s in saved)
        w, p = (None if s is None else s.read() for s in saved_weights)
        with np.errstate(invalid="ignore"):
            d = _weighted(spread(d_loss, reduction, size), w)  # broadcasts to input.shape
            d_input = np.asarray(d * logistic_slope(z, t, p)) if needs_input else None  # input.shape (8.30)
            d_target = np.asarray(d * target_slope(z, p)) if needs_target else None  # input.shape (8.31)
        return [d_input, d_target]

    return record(NAME, [output], [input, target], backward, [*saved, *(s for s in saved_weights if s)])[0]


def costs(z: Array) -> tuple[Array, Array]:
    """Return -log σ(z) and -log(1 - σ(z)): what the answer yes and the answer no would cost."""
    tail = np.log1p(np.exp(np.minimum(z, -z)))  # z.shape: of -|z|, which cannot overflow
    return np.maximum(-z, 0) + tail, np.maximum(z, 0) + tail  # z.shape each (8.28)


def logistic(z: Array, t: Array, p: MaybeArray) -> Array:
    cost_yes, cost_no = costs(z)
    yes = t if p is None else p * t
    return np.asarray(yes * cost_yes + (1 - t) * cost_no)  # z.shape (8.29)


def logistic_slope(z: Array, t: Array, p: MaybeArray) -> Array:
    yes = t if p is None else p * t
    return np.asarray((1 - t) * sigmoid(z) - yes * sigmoid(-z))  # z.shape (8.30)


def target_slope(z: Array, p: MaybeArray) -> Array:
    return np.asarray(-z if p is None else (p - 1) * costs(z)[0] - z)  # z.shape (8.31)


def _weighted(values: Array, w: MaybeArray) -> Array:
    return values if w is None else np.asarray(w * values)


def _check_weight(name: str, weight: Tensor | None, input: Tensor) -> None:
    if weight is not None:
        check_dtype(name, weight, input)
        fits = weight.ndim <= input.ndim and all(
            ours in (1, theirs) for ours, theirs in zip(weight.shape[::-1], input.shape[::-1], strict=False)
        )
        if not fits:
            raise ValueError(f"{name} must broadcast to the shape of input, {input.shape}, got {weight.shape}")
        check_no_gradient(name, weight)
