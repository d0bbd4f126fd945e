"""Losses: each is one node of the graph, with its hand-written backward."""

import numpy as np
from numpy.typing import ArrayLike

from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Tensor, as_tensor, record
from numpy_rnn.typing import Array

REDUCTIONS = ("mean", "sum", "none")


def mse_loss(input: Tensor | ArrayLike, target: Tensor | ArrayLike, reduction: str = "mean") -> Tensor:
    """Return the squared error (input - target)², reduced as in ``torch.nn.functional.mse_loss``.

    >>> prediction = Tensor(np.array([1.0, 2.0]), requires_grad=True)
    >>> loss = mse_loss(prediction, np.array([0.0, 4.0]))
    >>> loss.backward()
    >>> loss.item(), prediction.grad
    (2.5, Tensor([ 1., -2.]))

    Arguments: ``input`` and ``target`` of one shape and dtype; ``reduction`` "mean" over all elements, "sum", or
    "none". Either may require a gradient: d input = 2 (input - target) / N for the mean of N elements, and
    d target = -d input.

    Raises ``ValueError`` for unequal shapes (PyTorch only warns, and broadcasts) or an unknown reduction, ``TypeError``
    for unequal dtypes.
    """
    input, target = as_tensor("input", input), as_tensor("target", target)
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    if input.shape != target.shape:
        raise ValueError(f"target must have the shape of input, {input.shape}, got {target.shape}")
    if input.dtype != target.dtype:
        raise TypeError(f"target must have the dtype of input, {input.dtype}, got {target.dtype}")
    difference = input.data - target.data
    squares = difference * difference
    loss = squares if reduction == "none" else squares.sum() if reduction == "sum" else squares.mean()  # (1.10)
    saved_input = Saved(input.data, input, "input", "mse_loss")
    saved_target = Saved(target.data, target, "target", "mse_loss")

    def backward(d_loss: Array) -> list[Array]:
        difference = saved_input.read() - saved_target.read()
        factor = 2 / difference.size if reduction == "mean" else 2
        d_input = np.asarray(factor * difference * d_loss)  # input.shape (2.31)
        return [d_input, -d_input]

    return record("mse_loss", [np.asarray(loss)], [input, target], backward, [saved_input, saved_target])[0]
