"""Packing and padding against torch.nn.utils.rnn, and recurrent modules on sequences of different lengths."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.nn.utils import rnn as torch_rnn_utils

import numpy_rnn
from numpy_rnn import GRU, LSTM, RNN, PackedSequence, Tensor
from parity_tests.helpers import assert_parity, randomise
from torch_rnn import check_parity, twin

T, B, F = 6, 5, 3
LENGTHS = [3, 6, 1, 6, 2]
SORTED = sorted(LENGTHS, reverse=True)


def both(shape: tuple[int, ...]) -> tuple[Tensor, torch.Tensor]:
    array = np.random.default_rng(0).normal(size=shape)
    return Tensor(array.copy(), requires_grad=True), torch.from_numpy(array).requires_grad_()


def assert_same(ours: Any, theirs: Any) -> None:
    """Compare packed sequences, Tensors, arrays, and lists of them."""
    if isinstance(ours, PackedSequence):
        for a, b in zip(ours, theirs, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert_same(a, b)
    elif isinstance(ours, tuple | list):
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    else:
        assert_array_equal(ours, theirs.detach())


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(
    ("lengths", "enforce_sorted"), [(LENGTHS, False), (SORTED, True), (SORTED, False), ([4] * B, True)]
)
def test_there_and_back(lengths: list[int], enforce_sorted: bool, batch_first: bool) -> None:
    x, y = both((B, T, F) if batch_first else (T, B, F))
    ours = numpy_rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted)
    theirs = torch_rnn_utils.pack_padded_sequence(y, torch.tensor(lengths), batch_first, enforce_sorted)
    assert_same(ours, theirs)
    for total_length in (None, 8):
        padded = numpy_rnn.pad_packed_sequence(ours, batch_first, -1.5, total_length)
        torch_padded = torch_rnn_utils.pad_packed_sequence(theirs, batch_first, -1.5, total_length)
        assert_same(padded, torch_padded)
    assert_same(numpy_rnn.unpack_sequence(ours), torch_rnn_utils.unpack_sequence(theirs))
    upstream = np.random.default_rng(1).normal(size=padded[0].shape)
    padded[0].backward(upstream)
    torch_padded[0].backward(torch.from_numpy(upstream))
    assert_array_equal(x.grad, y.grad)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_pad_and_unpad(side: str, batch_first: bool) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, F)) for n in LENGTHS]
    ours, theirs = (
        [Tensor(a, requires_grad=True) for a in arrays],
        [torch.from_numpy(a.copy()).requires_grad_() for a in arrays],
    )
    padded = numpy_rnn.pad_sequence(ours, batch_first, 7.0, side)
    torch_padded = torch_rnn_utils.pad_sequence(theirs, batch_first, 7.0, side)
    assert_same(padded, torch_padded)
    upstream = rng.normal(size=padded.shape)
    padded.backward(upstream)
    torch_padded.backward(torch.from_numpy(upstream))
    for a, b in zip(ours, theirs, strict=True):
        assert_array_equal(a.grad, b.grad)
    assert_same(
        numpy_rnn.unpad_sequence(padded, LENGTHS, batch_first),
        torch_rnn_utils.unpad_sequence(torch_padded, torch.tensor(LENGTHS), batch_first),
    )
    assert_same(
        numpy_rnn.pack_sequence(ours, enforce_sorted=False), torch_rnn_utils.pack_sequence(theirs, enforce_sorted=False)
    )


@pytest.mark.parametrize("kind", [RNN, LSTM, GRU])
def test_a_packed_sequence_through_a_module_is_the_same_as_lengths_and_as_torch(kind: Any) -> None:
    rng = np.random.default_rng(0)
    module = randomise(kind(F, 4, 2, bidirectional=True, dtype="float64"), rng)
    theirs = twin(module)
    x, y = both((T, B, F))
    packed = numpy_rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    torch_packed = torch_rnn_utils.pack_padded_sequence(y, torch.tensor(LENGTHS), enforce_sorted=False)
    output, state = module(packed)
    torch_output, _ = theirs(torch_packed)
    assert_same(output[1:], torch_output[1:])
    assert_parity(output.data, torch_output.data, "packed output")
    padded, _ = numpy_rnn.pad_packed_sequence(output)
    direct, direct_state = module(x, lengths=LENGTHS)
    assert_array_equal(padded, direct)
    pairs = zip(*(s if isinstance(s, tuple) else (s,) for s in (state, direct_state)), strict=True)
    for a, b in pairs:
        assert_array_equal(a, b)
    upstream = rng.normal(size=padded.shape)
    padded.backward(upstream)
    torch_rnn_utils.pad_packed_sequence(torch_output)[0].backward(torch.from_numpy(upstream))
    assert_parity(x.grad, y.grad, "dx")
    for (name, a), b in zip(module.named_parameters(), theirs.parameters(), strict=True):
        assert_parity(a.grad, b.grad, name)


@pytest.mark.parametrize("kind", [RNN, LSTM, GRU])
@pytest.mark.parametrize("batch_first", [False, True])
def test_what_stands_in_the_padding_is_harmless(kind: Any, batch_first: bool) -> None:
    rng = np.random.default_rng(0)
    module = kind(F, 4, 2, bidirectional=True, batch_first=batch_first, dtype="float64", rng=0)
    clean = rng.normal(size=(B, T, F))
    dirty = clean.copy()
    for b, n in enumerate(LENGTHS):
        dirty[b, n:] = np.nan
    results = []
    for array in (clean, dirty):
        x = Tensor(array if batch_first else array.swapaxes(0, 1).copy(), requires_grad=True)
        module.zero_grad()
        output, _ = module(x, lengths=LENGTHS)
        by_sequence = output.numpy() if batch_first else output.numpy().swapaxes(0, 1)
        assert all(not by_sequence[b, n:].any() for b, n in enumerate(LENGTHS))
        output.backward(np.full(output.shape, 2.0))
        dx = x.grad.numpy() if batch_first else x.grad.numpy().swapaxes(0, 1)
        assert all(not dx[b, n:].any() for b, n in enumerate(LENGTHS))
        results.append([output.numpy(), x.grad.numpy(), *(p.grad.numpy() for p in module.parameters())])
    for a, b in zip(*results, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [RNN, LSTM, GRU])
def test_each_sequence_alone_gives_the_same(kind: Any) -> None:
    """No torch: outputs, final states and gradients of a ragged batch are those of its sequences one by one."""
    rng = np.random.default_rng(0)
    module = randomise(kind(F, 4, 2, bidirectional=True, dtype="float64"), rng)
    x = rng.normal(size=(T, B, F))
    output, state = module(x, lengths=LENGTHS)
    d_output = rng.normal(size=output.shape)
    output.backward(d_output)
    together = [p.grad.numpy().copy() for p in module.parameters()]
    module.zero_grad()
    states = state if isinstance(state, tuple) else (state,)
    for b, n in enumerate(LENGTHS):
        alone, final = module(x[:n, b])
        assert_parity(output.numpy()[:n, b], alone, f"output {b}")
        for a, s in zip(states, final if isinstance(final, tuple) else (final,), strict=True):
            assert_parity(a.numpy()[:, b], s, f"state {b}")
        alone.backward(d_output[:n, b])
    for a, p in zip(together, module.parameters(), strict=True):
        assert_parity(a, p.grad, "gradients")


def test_the_empty_batch_and_lengths() -> None:
    assert check_parity(LSTM(F, 4, 2, dtype="float64", rng=0), np.zeros((T, 0, F))).ok
    output, _ = GRU(F, 4, dtype="float64", rng=0)(np.zeros((T, 0, F)), lengths=np.zeros(0, int))
    assert output.shape == (T, 0, 4)


X = np.zeros((T, B, F))
MODULE = RNN(F, 4, dtype="float64", rng=0)
PACKED = numpy_rnn.pack_padded_sequence(X, SORTED)
CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: MODULE(X, lengths=[0, 6, 1, 6, 2]), ValueError, "lengths must be from 1 to T = 6, got 0"),
    (lambda: MODULE(X, lengths=[7, 6, 1, 6, 2]), ValueError, "lengths must be from 1 to T = 6, got 7"),
    (lambda: MODULE(X, lengths=[-1, 6, 1, 6, 2]), ValueError, "lengths must be from 1 to T = 6, got -1"),
    (lambda: MODULE(X, lengths=[6, 6]), ValueError, r"one for each sequence, \(B,\) = \(5,\), got \(2,\)"),
    (lambda: MODULE(X, lengths=[1.0] * 5), TypeError, "lengths must be whole numbers, got float64"),
    (lambda: MODULE(X[:, 0], lengths=[3]), ValueError, "lengths must be None for unbatched input"),
    (lambda: MODULE(PACKED, lengths=SORTED), ValueError, "lengths must be None for a PackedSequence"),
    (lambda: MODULE(PACKED._replace(batch_sizes=np.array([1, 2]))), ValueError, r"in decreasing order, got \[1, 2\]"),
    (lambda: MODULE(PACKED._replace(batch_sizes=np.array([5, 2]))), ValueError, "Σ batch_sizes = 7 rows, got 18"),
    (lambda: MODULE(PACKED, np.zeros((1, 4, 4))), ValueError, r"hx must be \(L\*D, B, H\) = \(1, 5, 4\)"),
    (lambda: MODULE(numpy_rnn.pack_padded_sequence(X[..., :2], SORTED)), ValueError, r"\(ΣT, I\) with I = 3, got"),
    (lambda: numpy_rnn.pack_padded_sequence(X, LENGTHS), ValueError, "decreasing order, got .* enforce_sorted=False"),
    (lambda: numpy_rnn.pack_padded_sequence(X, [9, 6, 6, 2, 1]), ValueError, "from 1 to T = 6, got 9"),
    (lambda: numpy_rnn.pack_padded_sequence(X[0, 0], [1]), ValueError, r"input must be \(T, B, ...\), got \(3,\)"),
    (
        lambda: numpy_rnn.pack_padded_sequence(np.zeros((T, 0, F)), np.zeros(0, int)),
        ValueError,
        "at least one sequence",
    ),
    (
        lambda: numpy_rnn.pad_packed_sequence(PACKED, total_length=5),
        ValueError,
        "the longest length, 6, got 5",
    ),
    (lambda: numpy_rnn.pad_sequence([]), ValueError, "sequences must hold at least one, got none"),
    (lambda: numpy_rnn.pad_sequence([np.ones((2, 3)), np.ones((2, 4))]), ValueError, r"sequences\[1\] must be"),
    (lambda: numpy_rnn.pad_sequence([np.ones(2)], padding_side="top"), ValueError, "'left' or 'right', got 'top'"),
    (lambda: numpy_rnn.unpad_sequence(X, [7] * 5), ValueError, "from 1 to T = 6, got 7"),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_bad_calls_by_message(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("B", [17, 40])
@pytest.mark.parametrize("equal", [True, False])
def test_many_sequences_of_tied_lengths(B: int, equal: bool) -> None:
    """PyTorch's sort is not stable, so its packed rows stand in another order than ours: both are unpacked rightly."""
    lengths = np.full(B, 4) if equal else 1 + np.arange(B) % 3
    x = np.random.default_rng(0).normal(size=(4, B, F))
    theirs = torch_rnn_utils.pack_padded_sequence(torch.from_numpy(x), torch.from_numpy(lengths), enforce_sorted=False)
    as_ours = PackedSequence(Tensor(theirs.data.numpy()), theirs.batch_sizes.numpy(), theirs.sorted_indices.numpy())
    assert_array_equal(as_ours.unsorted_indices, theirs.unsorted_indices)
    assert_same(numpy_rnn.pad_packed_sequence(as_ours), torch_rnn_utils.pad_packed_sequence(theirs))
    ours = numpy_rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    assert_same(numpy_rnn.pad_packed_sequence(ours), torch_rnn_utils.pad_packed_sequence(theirs))
    for dropout in (0.0, 0.5):
        module = LSTM(F, 4, 2, dropout=dropout, bidirectional=True, dtype="float64", rng=0)
        assert check_parity(module, x, lengths=lengths).ok
    output, _ = module.eval()(as_ours)
    assert_parity(output.data, twin(module)(theirs)[0].data, "packed by torch")


@pytest.mark.parametrize("indices", [[0, 0, 1, 2, 3], [0, 1], [0, 1, 2, 3, 9]])
def test_indices_that_are_no_order_are_refused(indices: list[int]) -> None:
    wrong = PACKED._replace(sorted_indices=np.array(indices), unsorted_indices=np.argsort(indices))
    for call in (lambda: numpy_rnn.pad_packed_sequence(wrong), lambda: MODULE(wrong)):
        with pytest.raises(ValueError, match="sorted_indices must hold each of 0 to B-1 = 4 once"):
            call()


@pytest.mark.parametrize("B", [8, 20, 100])
def test_sequences_of_one_length_keep_their_order(B: int) -> None:
    lengths = np.random.default_rng(B).integers(1, 4, B)
    packed = numpy_rnn.pack_padded_sequence(np.zeros((3, B)), lengths, enforce_sorted=False)
    assert_array_equal(packed.sorted_indices, sorted(range(B), key=lambda b: -lengths[b]))
