"""Sequences of different lengths: packed rows, padding, and the way between them, as in ``torch.nn.utils.rnn``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from numpy_rnn.tensor import Tensor, as_tensor, record
from numpy_rnn.typing import Array


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Array
    sorted_indices: Array | None = None
    unsorted_indices: Array | None = None


class PackedSequence(_Fields):
    """Sequences as rows, longest first: the first step of each, then the second step of those that have one, ...

    >>> packed = pack_sequence([np.array([[1.0], [2.0]]), np.array([[3.0]])])
    >>> packed.data.numpy().ravel().tolist(), packed.batch_sizes.tolist()
    ([1.0, 3.0, 2.0], [2, 1])

    ``data`` (ΣT, ...); ``batch_sizes`` (T,): how many sequences each step has; ``sorted_indices`` (B,): which of the
    user's sequences is the longest, the second longest, ...; ``unsorted_indices`` (B,): the way back, found from the
    first where it is not given; both None where the order is the user's own.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Array,
        sorted_indices: Array | None = None,
        unsorted_indices: Array | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = np.argsort(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)


class Places(NamedTuple):
    """Where the rows of a packed sequence stand in a padded one (T, B, ...)."""

    t: Array  # (N,)
    b: Array  # (N,)
    batch_sizes: Array  # (T,)
    order: Array  # (B,) longest first, equal ones as they came


def check_lengths(lengths: ArrayLike | Tensor, T: int, B: int) -> Array:
    """Return ``lengths`` (B,) if they are whole numbers from 1 to T, else raise an error that names a wrong one."""
    try:
        array = np.asarray(lengths)
    except ValueError:
        raise TypeError(f"lengths must be whole numbers (B,), got {lengths!r}") from None
    array = array.astype(np.intp) if array.size == 0 else array  # an empty list has no dtype of its own
    if array.dtype.kind not in "iu":
        raise TypeError(f"lengths must be whole numbers, got {array.dtype}")
    if array.shape != (B,):
        raise ValueError(f"lengths must be one for each sequence, (B,) = ({B},), got {array.shape}")
    for wrong in array[(array < 1) | (array > T)]:
        raise ValueError(f"lengths must be from 1 to T = {T}, got {wrong}")
    return array.astype(np.intp)


def places(lengths: Array) -> Places:
    """Return where packed rows stand, for lengths (B,) of at least 1; equal ones keep their order.

    (PyTorch's sort does not, from 17 sequences on: its packed rows can then stand in another order than ours, which
    their ``sorted_indices`` tell.)

    >>> places(np.array([1, 2])).t.tolist(), places(np.array([1, 2])).b.tolist()
    ([0, 0, 1], [1, 0, 1])
    """
    order = np.argsort(-lengths, kind="stable")  # (B,) (5.22)
    runs = lengths[order][None, :] > np.arange(lengths.max(initial=0))[:, None]  # (T, B) does sequence b reach step t
    t, k = np.nonzero(runs)
    return Places(t, order[k], runs.sum(axis=1), order)  # (5.15)


def pack_padded_sequence(
    input: Tensor | ArrayLike, lengths: ArrayLike, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch (T, B, ...), with ``batch_first`` (B, T, ...).

    >>> packed = pack_padded_sequence(np.arange(6.0).reshape(3, 2), [1, 3], enforce_sorted=False)
    >>> packed.data.numpy().tolist(), packed.sorted_indices.tolist()
    ([1.0, 0.0, 3.0, 5.0], [1, 0])

    What stands in the padding is not read, and its gradient is zero.

    Raises ``ValueError`` for lengths that are not from 1 to T (PyTorch packs one above T wrongly), not one for each
    sequence, or with ``enforce_sorted`` not in decreasing order; ``TypeError`` for lengths that are not whole numbers.
    """
    input = as_tensor("input", input)
    if input.ndim < 2:
        raise ValueError(f"input must be {'(B, T, ...)' if batch_first else '(T, B, ...)'}, got {input.shape}")
    B, T = input.shape[:2] if batch_first else input.shape[1::-1]
    checked = check_lengths(lengths, T, B)
    if B == 0:
        raise ValueError(f"input must have at least one sequence, got {input.shape}")
    if enforce_sorted and (np.diff(checked) > 0).any():
        raise ValueError(
            f"lengths must be in decreasing order, got {checked.tolist()}: sort them or give enforce_sorted=False"
        )
    p = places(checked)
    data = input[p.b, p.t] if batch_first else input[p.t, p.b]  # (N, ...) (5.20)
    if enforce_sorted:
        return PackedSequence(data, p.batch_sizes)
    return PackedSequence(data, p.batch_sizes, p.order, np.argsort(p.order))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Array]:
    """Unpack into a padded batch (T, B, ...), with ``batch_first`` (B, T, ...), and the lengths (B,).

    >>> padded, lengths = pad_packed_sequence(pack_sequence([np.ones((2, 1)), np.ones((1, 1))]))
    >>> padded.numpy()[:, :, 0].tolist(), lengths.tolist()
    ([[1.0, 1.0], [1.0, 0.0]], [2, 1])

    T is the longest length, or ``total_length``.

    Raises ``ValueError`` for a ``total_length`` below the longest.
    """
    lengths = packed_lengths(sequence)
    T = int(lengths.max())
    if total_length is not None:
        if isinstance(total_length, bool) or not isinstance(total_length, int | np.integer):
            raise TypeError(f"total_length must be an int or None, got {type(total_length).__name__}")
        if total_length < T:
            raise ValueError(f"total_length must be at least the longest length, {T}, got {total_length}")
        T = int(total_length)
    t, b = np.nonzero(np.asarray(sequence.batch_sizes)[:, None] > np.arange(len(lengths)))
    b = b if sequence.sorted_indices is None else np.asarray(sequence.sorted_indices)[b]
    index = (b, t) if batch_first else (t, b)
    data = as_tensor("data", sequence.data)
    shape = (len(lengths), T) if batch_first else (T, len(lengths))
    padded = np.full((*shape, *data.shape[1:]), padding_value, data.dtype)
    padded[index] = data.data  # (T, B, ...) (5.20)
    (output,) = record("pad_packed_sequence", [padded], [data], lambda d_output: [d_output[index]])
    return output, lengths


def packed_lengths(sequence: PackedSequence) -> Array:
    """Return the lengths (B,) of a packed sequence's sequences, in the user's order.

    Raises ``ValueError`` where its parts do not fit together.
    """
    sizes = np.asarray(sequence.batch_sizes)
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"batch_sizes must be whole numbers, got {sizes.dtype}")
    if sizes.ndim != 1 or sizes.size == 0 or sizes[-1] < 1 or (np.diff(sizes) > 0).any():
        raise ValueError(f"batch_sizes must be at least one, positive and in decreasing order, got {sizes.tolist()}")
    if len(sequence.data) != sizes.sum():
        raise ValueError(f"data must have Σ batch_sizes = {sizes.sum()} rows, got {len(sequence.data)}")
    for name in ("sorted_indices", "unsorted_indices"):
        indices = getattr(sequence, name)
        if indices is not None and not np.array_equal(np.sort(indices), np.arange(sizes[0])):
            raise ValueError(f"{name} must hold each of 0 to B-1 = {sizes[0] - 1} once, got {np.asarray(indices)}")
    lengths: Array = (sizes[:, None] > np.arange(sizes[0])).sum(axis=0)
    return lengths if sequence.unsorted_indices is None else lengths[sequence.unsorted_indices]


def pad_sequence(
    sequences: Sequence[Tensor | ArrayLike],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (T_b, ...) into one padded batch (T, B, ...), with ``batch_first`` (B, T, ...).

    >>> pad_sequence([np.array([1.0]), np.array([2.0, 3.0])]).numpy().tolist()
    [[1.0, 2.0], [0.0, 3.0]]

    Raises ``ValueError`` for no sequences, or trailing shapes or dtypes that differ.
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f"padding_side must be 'left' or 'right', got {padding_side!r}")
    tensors = [as_tensor(f"sequences[{b}]", sequence) for b, sequence in enumerate(sequences)]
    if not tensors:
        raise ValueError("sequences must hold at least one, got none")
    first = tensors[0]
    for b, tensor in enumerate(tensors):
        if tensor.ndim == 0 or tensor.shape[1:] != first.shape[1:] or tensor.dtype != first.dtype:
            raise ValueError(
                f"sequences[{b}] must be (T_b, *{first.shape[1:]}) {first.dtype} like the first, "
                f"got {tensor.shape} {tensor.dtype}"
            )
    T, B = max(map(len, tensors)), len(tensors)
    padded = np.full((B, T, *first.shape[1:]), padding_value, first.dtype)
    parts = [(b, slice(T - len(t), T) if padding_side == "left" else slice(len(t))) for b, t in enumerate(tensors)]
    for part, tensor in zip(parts, tensors, strict=True):
        padded[part] = tensor.data

    def backward(d_output: Array) -> list[Array]:
        d_batch = d_output if batch_first else d_output.swapaxes(0, 1)
        return [d_batch[part].copy() for part in parts]

    output = padded if batch_first else padded.swapaxes(0, 1)
    return record("pad_sequence", [output], tensors, backward)[0]


def unpad_sequence(padded: Tensor | ArrayLike, lengths: ArrayLike, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences (T_b, ...) of a padded batch.

    >>> [len(sequence) for sequence in unpad_sequence(np.ones((3, 2)), [3, 1])]
    [3, 1]

    Raises as ``pack_padded_sequence`` does.
    """
    padded = as_tensor("padded", padded)
    if padded.ndim < 2:
        raise ValueError(f"padded must be {'(B, T, ...)' if batch_first else '(T, B, ...)'}, got {padded.shape}")
    B, T = padded.shape[:2] if batch_first else padded.shape[1::-1]
    checked = check_lengths(lengths, T, B)
    return [padded[b, :n] if batch_first else padded[:n, b] for b, n in enumerate(checked.tolist())]


def pack_sequence(sequences: Sequence[Tensor | ArrayLike], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (T_b, ...); with ``enforce_sorted`` they must come longest first.

    >>> pack_sequence([np.ones((2, 3)), np.ones((1, 3))]).data.shape
    (3, 3)

    Raises as ``pad_sequence`` and ``pack_padded_sequence`` do.
    """
    padded = pad_sequence(sequences)
    return pack_padded_sequence(padded, [len(np.asarray(s)) for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a packed one, in the user's order.

    >>> [len(sequence) for sequence in unpack_sequence(pack_sequence([np.ones((2, 3)), np.ones((1, 3))]))]
    [2, 1]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
