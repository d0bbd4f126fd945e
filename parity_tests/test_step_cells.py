"""RNNCell, LSTMCell, GRUCell, Embedding and Dropout, and dropout between layers."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import numpy_rnn
from numpy_rnn import (
    GRU,
    LSTM,
    RNN,
    Dropout,
    Embedding,
    GRUCell,
    InPlaceModificationError,
    LSTMCell,
    RNNCell,
    SequenceModel,
    Tensor,
)
from numpy_rnn.training import NUMPY
from parity_tests.helpers import assert_parity, randomise
from torch_rnn import check_parity, to_numpy, twin
from torch_rnn.dropout import next_dropout_masks

KINDS: list[Any] = [RNNCell, lambda *a, **k: RNNCell(*a, nonlinearity="relu", **k), LSTMCell, GRUCell]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(4,), ()])
def test_one_step(kind: Any, bias: bool, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    cell = randomise(kind(3, 5, bias=bias, dtype="float64"), rng)
    x, h = rng.normal(size=(*shape, 3)), rng.normal(size=(*shape, 5))
    state = (h, rng.normal(size=(*shape, 5))) if isinstance(cell, LSTMCell) else h
    for report in (check_parity(cell, x, state), check_parity(cell, x)):
        assert report.ok, report.table()
    assert repr(to_numpy(twin(cell))) == repr(cell)
    assert check_parity(cell, np.zeros((0, 3))).ok


@pytest.mark.parametrize(("cell", "module"), [(RNNCell, RNN), (LSTMCell, LSTM), (GRUCell, GRU)])
def test_steps_in_a_row_are_the_module(cell: Any, module: Any) -> None:
    rng = np.random.default_rng(0)
    whole = randomise(module(3, 5, dtype="float64"), rng)
    steps = cell(3, 5, dtype="float64")
    steps.load_state_dict({name.removesuffix("_l0"): array for name, array in whole.state_dict().items()})
    x = rng.normal(size=(6, 4, 3))
    output, _ = whole(x)
    state, outputs = None, []
    for t in range(6):
        state = steps(x[t], state)
        outputs.append(state[0] if isinstance(state, tuple) else state)
    d = rng.normal(size=output.shape)
    output.backward(d)
    numpy_rnn.backward(outputs, list(d))
    for t, h in enumerate(outputs):
        assert_parity(h, output[t], f"h {t}")
    for (name, a), b in zip(whole.named_parameters(), steps.parameters(), strict=True):
        assert_parity(b.grad, a.grad, name)


def test_embedding() -> None:
    rng = np.random.default_rng(0)
    for padding in (None, 2, -1):
        embedding = Embedding(6, 3, padding, dtype="float64", rng=0)
        index = rng.integers(0, 6, (7, 4))
        assert check_parity(embedding, index).ok
        assert embedding.weight.version == twin(embedding).weight._version == (1 if padding is None else 2)
        assert padding is None or not embedding.weight.numpy()[padding].any()
    assert [e.weight.version for e in (Embedding(6, 3), Embedding(6, 3, 0))] == [
        torch.nn.Embedding(6, 3).weight._version,
        torch.nn.Embedding(6, 3, 0).weight._version,
    ]
    index = np.array([0, 1])
    output = embedding(index)
    index[:] = 5  # the caller's array is the caller's
    output.backward(np.ones((2, 3)))
    assert_array_equal(embedding.weight.grad.numpy().sum(axis=1), [3, 3, 0, 0, 0, 0])


def test_dropout_on_its_own() -> None:
    dropout = Dropout(0.25, rng=0)
    x = Tensor(np.ones((200, 200)), requires_grad=True)
    y = dropout(x)
    kept = y.numpy() != 0
    assert_allclose(y.numpy()[kept], 4 / 3)
    assert_allclose(kept.mean(), 0.75, atol=0.01)
    y.backward(np.full(y.shape, 3.0))
    assert_array_equal(x.grad, y.numpy() * 3)
    mask = np.full((200, 200), 2.0)
    assert_array_equal(dropout(x, mask=mask), mask)
    assert dropout.eval()(x) is x
    assert not Dropout(1.0)(x).numpy().any()
    assert_array_equal(Dropout(0.0)(x), x)


@pytest.mark.parametrize("kind", [torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU])
@pytest.mark.parametrize("p", [0.3, 1.0])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_masks_that_torch_will_draw(kind: Any, p: float, batch_first: bool, dtype: torch.dtype) -> None:
    theirs = kind(3, 5, 3, dropout=p, batch_first=batch_first, bidirectional=True, dtype=dtype)
    ours = to_numpy(theirs)
    x = np.random.default_rng(0).normal(size=(7, 4, 3)).astype(ours.dtype)
    before = torch.random.get_rng_state()
    masks = next_dropout_masks(theirs, x.shape)
    assert torch.equal(torch.random.get_rng_state(), before)
    output, _ = ours(x, dropout_masks=masks)
    torch_output, _ = theirs(torch.from_numpy(x))
    assert_parity(output, torch_output, "output")
    plain, _ = ours.eval()(x)
    assert np.abs(plain.numpy() - output.numpy()).max() > 0.01
    assert next_dropout_masks(theirs.eval(), x.shape) == []


def test_dropout_draws_from_the_modules_generator_and_only_in_training() -> None:
    x = np.random.default_rng(0).normal(size=(7, 4, 3)).astype(np.float32)
    a, b = (GRU(3, 5, 2, dropout=0.5, rng=1) for _ in range(2))
    first, second = a(x)[0].numpy(), a(x)[0].numpy()
    assert_array_equal(first, b(x)[0])
    assert not np.array_equal(first, second)
    a.eval()
    assert_array_equal(a(x)[0], a(x)[0])
    b.dropout = 0.0
    assert_array_equal(a(x)[0], b(x)[0])
    with pytest.warns(UserWarning, match="dropout=0.5 does nothing with num_layers=1"):
        GRU(3, 5, dropout=0.5)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_a_training_run_with_dropout_matches_step_by_step(cell: str) -> None:
    model = SequenceModel(cell, 4, 5, 3, num_layers=3, dropout=0.4, vocabulary=7, dtype="float64", rng=0)
    theirs = twin(model)
    optimizers = (
        NUMPY.optimizers["sgd"](model.parameters(), lr=0.1, momentum=0.9),
        torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9),
    )
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    state = torch_state = None
    for _ in range(40):
        x, y = rng.integers(0, 7, (6, 4)), rng.normal(size=(6, 4, 3))
        masks = next_dropout_masks(theirs.rnn, (6, 4, 4))
        for optimizer in optimizers:
            optimizer.zero_grad()
        output, state = model(x, state, dropout_masks=masks)
        loss = numpy_rnn.mse_loss(output, y)
        loss.backward()
        torch_output, torch_state = theirs(torch.from_numpy(x), torch_state)
        torch_loss = torch.nn.functional.mse_loss(torch_output, torch.from_numpy(y))
        torch_loss.backward()
        assert_allclose(loss.item(), torch_loss.item(), rtol=1e-12)
        for optimizer in optimizers:
            optimizer.step()
        detach: Any = lambda s: tuple(t.detach() for t in s) if isinstance(s, tuple) else s.detach()  # noqa: E731
        state, torch_state = detach(state), detach(torch_state)
    for (name, a), b in zip(model.named_parameters(), theirs.parameters(), strict=True):
        assert_parity(a, b, name)


X = np.zeros((6, 4, 3))
LSTM64 = LSTM(3, 5, 2, proj_size=2, dtype="float64", rng=0)
S, C = np.zeros((2, 4, 2)), np.zeros((2, 4, 5))
CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: LSTM64(X, S), TypeError, r"hx must be a pair \(h_0, c_0\), got ndarray"),
    (lambda: LSTM64(X, (S, C, C)), TypeError, r"hx must be a pair \(h_0, c_0\), got tuple"),
    (lambda: LSTM64(X, (C, C)), ValueError, r"h_0 of hx must be \(L\*D, B, P\) = \(2, 4, 2\), got \(2, 4, 5\)"),
    (lambda: LSTM64(X, (S, S)), ValueError, r"c_0 of hx must be \(L\*D, B, H\) = \(2, 4, 5\), got \(2, 4, 2\)"),
    (lambda: LSTM64(X, (S, C.astype("f"))), TypeError, "c_0 of hx must be float64 like the weights, got float32"),
    (lambda: LSTM(3, 5, proj_size=5), ValueError, "proj_size must be from 0 to hidden_size - 1 = 4, got 5"),
    (lambda: LSTM(3, 5, proj_size=-1), ValueError, "proj_size must be from 0 to hidden_size - 1 = 4, got -1"),
    (lambda: LSTM(3, 5, proj_size=2.0), TypeError, "proj_size must be an int, got float"),
    (lambda: SequenceModel("gru", 3, 5, 2, proj_size=2), ValueError, "proj_size must be 0 for cell gru"),
    (lambda: LSTM64(X, dropout_masks=[]), ValueError, "dropout_masks must be L-1 = 1 arrays, got 0"),
    (lambda: LSTM64(X, dropout_masks=[X]), ValueError, r"dropout_masks\[0\] must be \(6, 4, 2\) float64"),
    (lambda: LSTM64(X.repeat(2, axis=2)), ValueError, r"input must be \(T, B, I\) with I = 3, got \(6, 4, 6\)"),
    (lambda: Dropout(1.5), ValueError, r"p must be a number in \[0, 1\], got 1.5"),
    (lambda: Dropout(-0.5), ValueError, r"p must be a number in \[0, 1\], got -0.5"),
    (lambda: Dropout("a"), TypeError, r"p must be a number in \[0, 1\], got 'a'"),
    (lambda: Dropout(0.5)(X, mask=X[0]), ValueError, r"mask must be \(6, 4, 3\) float64 like the input"),
    (lambda: Dropout(0.5)(X, mask=X.astype("f")), ValueError, r"mask must be \(6, 4, 3\) float64 like the input"),
    (lambda: Dropout(0.5)(X.astype("f"), mask=X), ValueError, r"mask must be \(6, 4, 3\) float32 like the input"),
    (lambda: Dropout(0.5).eval()(X, mask=X), ValueError, "mask must be None in evaluation mode"),
    (lambda: Embedding(5, 3)([5]), ValueError, "input must be from 0 to K-1 = 4, got 5"),
    (lambda: Embedding(5, 3)([-1]), ValueError, "input must be from 0 to K-1 = 4, got -1"),
    (lambda: Embedding(5, 3)([1.0]), TypeError, "input must be whole numbers, got float64"),
    (lambda: Embedding(5, 3, 5), ValueError, "padding_idx must be from -5 to 4, got 5"),
    (lambda: Embedding(5, 3, -6), ValueError, "padding_idx must be from -5 to 4, got -6"),
    (lambda: Embedding(0, 3), ValueError, "num_embeddings must be at least 1, got 0"),
    (lambda: RNNCell(3, 5, nonlinearity="elu"), ValueError, "nonlinearity must be 'tanh' or 'relu', got 'elu'"),
    (lambda: RNNCell(3, 5)(X), TypeError, "input must be float32 like the weights, got float64"),
    (lambda: CELL(X), ValueError, r"input must be \(B, I\) or unbatched \(I,\), got \(6, 4, 3\)"),
    (lambda: CELL(X[0, :, :2]), ValueError, r"input must be \(B, I\) with I = 3, got \(4, 2\)"),
    (lambda: CELL(X[0], X[0]), TypeError, r"hx must be a pair \(h, c\), got ndarray"),
    (lambda: CELL(X[0], (C[0], S[0])), ValueError, r"c of hx must be \(B, H\) = \(4, 5\), got \(4, 2\)"),
    (lambda: CELL(X[0, 0], (C[0], C[0])), ValueError, r"h of hx must be \(H,\) = \(5,\), got \(4, 5\)"),
]
CELL = LSTMCell(3, 5, dtype="float64", rng=0)


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_bad_calls_by_message(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_dropout_alone_in_check_parity_and_on_whole_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(30, 40))
    for p in (0.3, 1.0):
        assert check_parity(Dropout(p), x).ok
        assert check_parity(torch.nn.Dropout(p), x).ok
    with pytest.raises(TypeError, match="input must be float32 or float64, got int64"):
        Dropout(0.1)(np.arange(8))
    with pytest.raises(TypeError, match="lengths must be None for a LSTMCell"):
        check_parity(LSTMCell(3, 5), np.zeros((4, 3), np.float32), lengths=[1])
    assert Embedding(5, 3)([]).shape == (0, 3)
    assert not Embedding(5, 3, -5).weight.data[0].any()


def test_tied_weights_stay_tied() -> None:
    theirs = torch.nn.LSTM(3, 3, 2, bias=False, dtype=torch.float64)
    theirs.weight_hh_l1 = theirs.weight_hh_l0
    ours = to_numpy(theirs)
    assert ours.weight_hh_l1 is ours.weight_hh_l0
    x = np.random.default_rng(0).normal(size=(6, 4, 3))
    assert check_parity(ours, x).ok
    back = twin(ours)
    assert back.weight_hh_l1 is back.weight_hh_l0
    model = SequenceModel("gru", 5, 5, 7, vocabulary=7, dtype="float64", rng=0)
    model.linear.weight = model.embedding.weight
    back = twin(model)
    assert back.linear.weight is back.embedding.weight
    assert check_parity(model, np.random.default_rng(0).integers(0, 7, (6, 4))).ok


@pytest.mark.parametrize("kind", [RNNCell, LSTMCell, GRUCell])
def test_what_comes_out_is_the_users_to_write_into(kind: Any) -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))
    gradients = []
    for spoil in (False, True):
        module = kind(3, 5, dtype="float64", rng=0)
        outputs = module(x)
        tensors = outputs if isinstance(outputs, tuple) else (outputs,)
        if spoil:
            for tensor in tensors:
                tensor.data[...] = 7
        numpy_rnn.backward(tensors, [np.ones(tensor.shape) for tensor in tensors])
        gradients.append([p.grad.numpy() for p in module.parameters()])
    for a, b in zip(*gradients, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(4, 5), (5,)], ids=["batch", "unbatched"])
@pytest.mark.parametrize(("kind", "written"), [(RNNCell, 0), (GRUCell, 0), (LSTMCell, 0), (LSTMCell, 1)])
def test_a_state_written_in_place_after_the_step_is_an_error_as_in_pytorch(
    kind: Any, written: int, shape: tuple[int, ...]
) -> None:
    cell = kind(3, 5, dtype="float64", rng=0)
    theirs = twin(cell)
    states = [np.ones(shape) for _ in range(2 if kind is LSTMCell else 1)]
    for module, tensor in ((cell, Tensor), (theirs, torch.from_numpy)):
        hx = [tensor(state.copy()) for state in states]
        x = tensor(np.ones((*shape[:-1], 3)))
        module(x)
        new = module(x, tuple(hx) if len(hx) > 1 else hx[0])
        hx[written].add_(np.ones(shape) if tensor is Tensor else 1)
        output = new[0] if isinstance(new, tuple) else new
        message = "modified by an inplace operation"
        if module is cell:
            message += rf"(.|\n)*call 2 of {kind.__name__}\(3, 5\)"
        with pytest.raises((InPlaceModificationError, RuntimeError), match=message):
            output.backward(tensor(np.ones(shape)))
