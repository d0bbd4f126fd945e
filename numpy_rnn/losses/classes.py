"""Losses of a choice among K classes. The equations are derived in derivations/08-losses.md.

The plain functions work on arrays (N, K, ...), the classes along axis 1, and on class indices (N, ...).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from numpy_rnn.losses.reduction import check_dtype, check_input, check_no_gradient, check_reduction, reduce, spread
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import FLOATS, Tensor, as_tensor, record
from numpy_rnn.typing import Array, MaybeArray


def cross_entropy(
    input: Tensor | ArrayLike,
    target: Tensor | ArrayLike,
    weight: Tensor | ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy between the classes ``target`` and the softmax of ``input``, reduced as in PyTorch.

    >>> logits = Tensor(np.log([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]]), requires_grad=True)
    >>> loss = cross_entropy(logits, np.array([0, 2]))
    >>> loss.backward()
    >>> f"{loss:.6f}", logits.grad.numpy().round(3).tolist()
    ('0.636483', [[-0.15, 0.1, 0.05], [0.05, 0.25, -0.3]])
    >>> f"{cross_entropy(logits, np.array([[0.7, 0.2, 0.1], [0.0, 0.0, 1.0]])):.6f}"
    '0.859055'

    Arguments: ``input`` the logits, (K,), (N, K) or (N, K, d1, ...). ``target`` either class indices, of any integer
    dtype and the shape of ``input`` without its K, or class probabilities, of the shape and dtype of ``input``.
    ``weight`` (K,) of the classes. ``ignore_index``: positions with this target cost nothing (indices only).
    ``reduction`` "none", "sum", or "mean": for indices the sum divided by the weights of the targets that count, for
    probabilities divided by the number of positions. ``label_smoothing`` in [0, 1]: this share of each target is
    spread evenly over all K. If no target counts, the mean is nan and the gradient zero. ``input`` may require a
    gradient; with probabilities ``target`` and ``weight`` may too. Equations (8.14) to (8.25).

    The classes of a batch of sequences stand on axis 1: (N, K, T). Logits (N, T, K) with targets (N, T) raise, but if
    T = K nothing can tell the two layouts apart, and the loss is silently that of other numbers.

    Raises ``ValueError`` for a wrong shape, an unknown reduction, a label smoothing outside [0, 1] (PyTorch takes a
    negative one for 0) or an ``ignore_index`` of 0 or more with probabilities; ``IndexError`` for a target that is no
    class; ``TypeError`` for a wrong dtype; ``RuntimeError`` for a weight that requires a gradient with indices.
    """
    input, target = as_tensor("input", input), as_tensor("target", target)
    weight = None if weight is None else as_tensor("weight", weight)
    _check_classes(input, weight, ignore_index, reduction)
    label_smoothing = float(label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be in [0, 1], got {label_smoothing}")
    if target.shape == input.shape:
        _check_probabilities(target, input, ignore_index)
        return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing)
    _check_indices(target, input, weight, ignore_index, ", or class probabilities of the shape of input")
    return _record_indices("cross_entropy", input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input: Tensor | ArrayLike,
    target: Tensor | ArrayLike,
    weight: Tensor | ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-probability that ``input`` gives to the class ``target``, reduced as in PyTorch.

    >>> log_probabilities = Tensor(np.log([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]]), requires_grad=True)
    >>> loss = nll_loss(log_probabilities, np.array([0, 2]))
    >>> loss.backward()
    >>> f"{loss:.6f}", log_probabilities.grad.numpy().tolist()
    ('0.636483', [[-0.5, 0.0, 0.0], [0.0, 0.0, -0.5]])

    Arguments: ``input`` log-probabilities, (K,), (N, K) or (N, K, d1, ...); the others as the class indices of
    ``cross_entropy``, which is this loss of the log-softmax of its input. Raises what ``cross_entropy`` raises.
    Equations (8.17) to (8.19).
    """
    input, target = as_tensor("input", input), as_tensor("target", target)
    weight = None if weight is None else as_tensor("weight", weight)
    _check_classes(input, weight, ignore_index, reduction)
    _check_indices(target, input, weight, ignore_index)
    return _record_indices("nll_loss", input, target, weight, ignore_index, reduction, 0.0)


def log_softmax(z: Array) -> Array:
    with np.errstate(over="ignore"):  # logits further apart than the dtype reaches: -inf is right
        shifted = z - z.max(axis=1, keepdims=True)  # (N, K, ...): at most 0, so exp cannot overflow
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))  # (N, K, ...) (8.14)


def log_softmax_backward(d_logp: Array, logp: Array) -> Array:
    return np.asarray(d_logp - np.exp(logp) * d_logp.sum(axis=1, keepdims=True))  # (N, K, ...) (8.15)


class Indices(NamedTuple):
    """What class indices say."""

    classes: Array  # (N, 1, ...) 0 where ignored
    counts: Array  # (N, ...) False where ignored
    w: Array  # (N, ...) the weight of that class


def read_indices(target: Array, weight: MaybeArray, ignore_index: int, like: Array) -> Indices:
    counts = target != ignore_index  # (N, ...)
    classes = np.where(counts, target, 0).astype(np.intp)  # (N, ...)
    w = np.ones(target.shape, like.dtype) if weight is None else weight[classes]  # (N, ...)
    return Indices(classes[:, None], counts, w)


def indices_forward(
    logp: Array, target: Array, weight: MaybeArray, ignore_index: int, label_smoothing: float
) -> tuple[Array, Array]:
    """Return the losses (N, ...) and the number that their sum is divided by for the mean."""
    classes, counts, w = read_indices(target, weight, ignore_index, logp)
    losses = -w * np.take_along_axis(logp, classes, axis=1)[:, 0]  # (N, ...) (8.17)
    if label_smoothing > 0:
        share = label_smoothing / logp.shape[1]
        even = -(logp * class_weights(weight, logp)).sum(axis=1)  # (N, ...)
        losses = (1 - label_smoothing) * losses + share * even  # (N, ...) (8.24)
    total = w[counts].sum()  # () (8.18)
    return np.where(counts, losses, 0), total if total else np.full_like(total, np.nan)  # the mean of nothing is nan


def indices_backward(
    d: Array, logp: Array, target: Array, weight: MaybeArray, ignore_index: int, label_smoothing: float
) -> Array:
    """Return the gradient of ``logp``, of which only shape and dtype are used; ``d`` is that of the losses."""
    classes, counts, w = read_indices(target, weight, ignore_index, logp)
    d = np.where(counts, d, 0)  # (N, ...): d is nan if nothing counts
    d_logp = np.zeros_like(logp)  # (N, K, ...)
    if label_smoothing > 0:
        share = label_smoothing / logp.shape[1]
        d_logp -= share * class_weights(weight, logp) * d[:, None]  # (N, K, ...) (8.25)
    at_target = np.take_along_axis(d_logp, classes, axis=1) - (1 - label_smoothing) * (w * d)[:, None]  # (N, 1, ...)
    np.put_along_axis(d_logp, classes, at_target, axis=1)  # (N, K, ...) (8.19)
    return d_logp


def class_weights(weight: MaybeArray, like: Array) -> Array:
    """Return ``weight`` (K,), or ones, in a shape that broadcasts over ``like`` (N, K, ...)."""
    ones = np.ones(like.shape[1], like.dtype) if weight is None else weight
    return ones.reshape(-1, *[1] * (like.ndim - 2))


def _record_indices(
    name: str,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Enter ``nll_loss``, or the cross entropy of class indices, in the graph."""
    from_logits = name == "cross_entropy"
    shape, x, t = input.shape, _batched(input.data, input), _batched(target.data, input)
    w = None if weight is None else weight.data
    with np.errstate(invalid="ignore"):  # inf - inf and 0 inf are nan, as in PyTorch
        logp = log_softmax(x) if from_logits else x  # (N, K, ...)
        losses, total = indices_forward(logp, t, w, ignore_index, label_smoothing)
    # PyTorch keeps, and checks, the input of nll_loss and the output of log_softmax, which nobody else can write to.
    saved_logp = Saved(logp, None if from_logits else input, "the log-softmax" if from_logits else "input", name)
    saved_target = Saved(t, target, "target", name)
    saved_weight = None if weight is None else Saved(w, weight, "weight", name)

    def backward(d_loss: Array) -> list[Array | None]:
        logp, t = saved_logp.read(), saved_target.read()
        w = None if saved_weight is None else saved_weight.read()
        with np.errstate(invalid="ignore"):
            d = np.broadcast_to(spread(d_loss, reduction, total), t.shape)  # (N, ...)
            d_x = indices_backward(d, logp, t, w, ignore_index, label_smoothing)  # (N, K, ...)
            if from_logits:
                d_x = log_softmax_backward(d_x, logp)  # (N, K, ...)
        return [d_x.reshape(shape)]

    saved = [s for s in (saved_logp, saved_target, saved_weight) if s]
    output = reduce(losses.reshape(target.shape), reduction, total)
    return record(name, [output], [input], backward, saved)[0]


def probabilities_forward(logp: Array, t: Array, weight: MaybeArray) -> Array:
    return np.asarray(-(logp * t * class_weights(weight, logp)).sum(axis=1))  # (N, ...) (8.20)


def probabilities_backward(d: Array, t: Array, weight: MaybeArray) -> Array:
    return -(t * class_weights(weight, t)) * d[:, None]  # (N, K, ...) (8.21)


def smooth(t: Array, label_smoothing: float) -> Array:
    return np.asarray((1 - label_smoothing) * t + label_smoothing / t.shape[1])  # (N, K, ...) (8.23)


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    name = "cross_entropy"
    shape, x, t = input.shape, _batched(input.data, input), _batched(target.data, input)
    w = None if weight is None else weight.data
    t = smooth(t, label_smoothing) if label_smoothing > 0 else t
    with np.errstate(invalid="ignore"):
        logp = log_softmax(x)  # (N, K, ...)
        losses = probabilities_forward(logp, t, w)  # (N, ...)
        product = logp * t if weight is not None and weight.requires_grad else None  # (N, K, ...)
    needs_input, needs_target = input.requires_grad, target.requires_grad
    saved_logp = Saved(logp, None, "the log-softmax", name)
    saved_t = Saved(t, None if label_smoothing > 0 else target, "target", name)  # a smoothed target is an array apart
    saved_weight = None if weight is None else Saved(w, weight, "weight", name)
    saved_product = Saved(product, None, "log-softmax times target", name) if product is not None else None
    total = losses.size

    def backward(d_loss: Array) -> list[Array | None]:
        logp, d_input, d_target, d_weight = saved_logp.read(), None, None, None
        with np.errstate(invalid="ignore"):
            d = np.broadcast_to(spread(d_loss, reduction, total), (logp.shape[0], *logp.shape[2:]))  # (N, ...)
            w = saved_weight.read() if saved_weight is not None and (needs_input or needs_target) else None
            if needs_input:
                d_logp = probabilities_backward(d, saved_t.read(), w)  # (N, K, ...)
                d_input = log_softmax_backward(d_logp, logp).reshape(shape)
            if needs_target:
                d_smoothed = probabilities_backward(d, logp, w)  # (N, K, ...) (8.22)
                d_target = ((1 - label_smoothing) * d_smoothed).reshape(shape)
            if saved_product is not None:
                terms = saved_product.read() * d[:, None]  # (N, K, ...)
                d_weight = -terms.sum(axis=(0, *range(2, terms.ndim)))  # (K,) (8.22)
        return [d_input, d_target, d_weight]

    saved = [s for s in (saved_logp, saved_t, saved_weight, saved_product) if s]
    output = reduce(losses.reshape(_positions(input)), reduction, total)
    return record(name, [output], [input, target, weight], backward, saved)[0]


def _batched(array: Array, input: Tensor) -> Array:
    """Return an array that belongs to ``input`` with the axis N, which an input (K,) lacks."""
    return array[None] if input.ndim == 1 else array


def _positions(input: Tensor) -> tuple[int, ...]:
    """The shape of ``input`` without its K."""
    return input.shape[:1] + input.shape[2:] if input.ndim > 1 else ()


def _classes(input: Tensor) -> int:
    return input.shape[min(input.ndim - 1, 1)]


def _check_classes(input: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> None:
    check_reduction(reduction)
    check_input(input)
    if input.ndim == 0 or _classes(input) == 0:
        raise ValueError(f"input must be (K,), (N, K) or (N, K, d1, ...) with K at least 1, got {input.shape}")
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, int | np.integer):
        raise TypeError(f"ignore_index must be an int, got {type(ignore_index).__name__}")
    if weight is not None:
        if weight.shape != (_classes(input),):
            raise ValueError(f"weight must be (K,) = ({_classes(input)},), got {weight.shape}")
        check_dtype("weight", weight, input)


def _check_probabilities(target: Tensor, input: Tensor, ignore_index: int) -> None:
    if target.dtype not in FLOATS:
        raise TypeError(
            f"target has the shape of input and must be class probabilities, {input.dtype}, got {target.dtype}; "
            f"class indices must be {_positions(input)}"
        )
    check_dtype("target", target, input)
    if ignore_index >= 0:
        raise ValueError(f"ignore_index must be negative for class probabilities, which have none, got {ignore_index}")


def _check_indices(
    target: Tensor, input: Tensor, weight: Tensor | None, ignore_index: int, otherwise: str = ""
) -> None:
    shape, K = _positions(input), _classes(input)
    if target.shape != shape:
        letters = "(N, d1, ...)" if input.ndim > 2 else "(N,)" if input.ndim > 1 else "()"
        raise ValueError(f"target must be class indices {letters} = {shape}{otherwise}, got {target.shape}")
    if target.dtype.kind not in "iu":
        raise TypeError(f"target must be class indices of an integer dtype, got {target.dtype}")
    outside = (target.data != ignore_index) & ((target.data < 0) | (target.data >= K))
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        raise IndexError(
            f"target must be in [0, K) = [0, {K}) or ignore_index = {ignore_index}, "
            f"got {target.data[where]} at {list(where)}"
        )
    check_no_gradient("weight", weight)
