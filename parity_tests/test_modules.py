"""Modules: names, state dicts, modes, and every error by message."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from numpy_rnn import (
    GRU,
    LSTM,
    RNN,
    Embedding,
    GRUCell,
    Linear,
    LSTMCell,
    Module,
    Parameter,
    RNNCell,
    SequenceModel,
    Tensor,
)
from numpy_rnn.cells import gru, lstm, rnn
from parity_tests.helpers import assert_all_parity, run_both
from torch_rnn import check_parity, to_numpy, twin


def f64(*shape: int) -> np.ndarray:
    return np.zeros(shape)


MODULES = [
    RNN(3, 5, 2, "relu", bidirectional=True, rng=0),
    RNN(3, 5, bias=False, batch_first=True, dtype="float64", rng=0),
    LSTM(3, 5, 2, proj_size=2, dropout=0.5, bidirectional=True, rng=0),
    GRU(3, 5, bias=False, dtype="float64", rng=0),
    RNNCell(3, 5, nonlinearity="relu", rng=0),
    LSTMCell(3, 5, bias=False, rng=0),
    GRUCell(3, 5, dtype="float64", rng=0),
    Embedding(7, 3, padding_idx=2, rng=0),
    Linear(3, 2, rng=0),
    Linear(3, 2, bias=False, dtype="float64", rng=0),
    SequenceModel("rnn", 3, 5, 2, num_layers=2, bidirectional=True, rng=0),
    SequenceModel("rnn-relu", 3, 5, 2, dtype="float64", rng=0),
    SequenceModel("lstm", 3, 5, 7, vocabulary=7, dtype="float64", rng=0),
]


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_a_state_dict_passes_either_way_unrenamed(module: Module) -> None:
    torch_module = twin(module)
    ours, theirs = module.state_dict(), torch_module.state_dict()
    assert list(ours) == list(theirs)
    for name, array in ours.items():
        assert array.dtype == theirs[name].numpy().dtype
        assert_array_equal(array, theirs[name])
    changed = {name: torch.from_numpy(array + 1) for name, array in ours.items()}
    torch_module.load_state_dict(changed)
    module.load_state_dict(torch_module.state_dict())
    assert_array_equal(module.state_dict()[name], ours[name] + 1)
    module.load_state_dict(ours)


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_there_and_back_again(module: Module) -> None:
    next(module.parameters()).requires_grad = False
    module.eval()
    state = torch.random.get_rng_state()
    torch_module = twin(module)
    assert torch.equal(torch.random.get_rng_state(), state)
    back = to_numpy(torch_module)
    assert repr(back) == repr(module)
    assert not back.training
    for (name, a), (other, b), c in zip(
        module.named_parameters(), back.named_parameters(), torch_module.parameters(), strict=True
    ):
        assert name == other
        assert a.requires_grad == b.requires_grad == c.requires_grad
        assert b.version == c._version == (2 if isinstance(module, Embedding) else 1)
        assert_array_equal(a, b)
        assert not np.shares_memory(a.data, b.data)
        assert not np.shares_memory(a.data, c.detach().numpy())
    module.train()
    module.requires_grad_(True)
    assert module.training


def test_to_numpy_of_what_it_cannot_convert() -> None:
    cases: list[tuple[Any, str]] = [
        (
            torch.nn.Conv1d(1, 1, 1),
            "one of torch's Dropout, .*, SequenceModel, got torch.nn.modules.conv.Conv1d",
        ),
        (torch.nn.RNN(1, 1).half(), "all float32 or all float64, got torch.float16"),
    ]
    for module, message in cases:
        with pytest.raises(TypeError, match=message):
            to_numpy(module)
    with pytest.raises(
        TypeError, match=r"one of numpy_rnn's Dropout, .*, SequenceModel.*your own with its torch_module"
    ):
        twin(Module())
    with pytest.raises(TypeError, match="an Embedding without max_norm, scale_grad_by_freq and sparse"):
        to_numpy(torch.nn.Embedding(3, 2, max_norm=1.0))


def test_state_dict_is_a_copy() -> None:
    linear = Linear(2, 2, rng=0)
    before = linear.state_dict()
    before["weight"][:] = 7
    assert not (linear.weight.numpy() == 7).any()


def test_load_state_dict_lists_every_problem_and_loads_nothing() -> None:
    model = SequenceModel("rnn", 3, 5, 2, rng=0)
    before = model.state_dict()
    bad = {name: array + 1 for name, array in before.items()}
    del bad["rnn.bias_hh_l0"]
    bad["linear.extra"] = np.zeros(1)
    bad["linear.weight"] = bad["linear.weight"].T
    bad["linear.bias"] = np.array(["a", "b"])
    with pytest.raises(ValueError, match="nothing was loaded") as caught:
        model.load_state_dict(bad)
    assert str(caught.value).splitlines()[1:] == [
        "  missing: rnn.bias_hh_l0",
        "  unexpected: linear.extra",
        "  shape of linear.weight: expected (2, 5), got (5, 2)",
        "  dtype of linear.bias: expected real numbers, got <U1",
    ]
    for name, array in model.state_dict().items():
        assert_array_equal(array, before[name])
    assert {p.version for p in model.parameters()} == {1}


def test_load_state_dict_casts_to_the_modules_dtype() -> None:
    linear = Linear(2, 2, rng=0)
    linear.load_state_dict({"weight": np.full((2, 2), 0.5), "bias": np.arange(2)})
    assert linear.weight.dtype == np.float32
    assert_array_equal(linear.bias, [0, 1])


def test_a_shared_parameter_is_one_parameter_under_two_names() -> None:
    model = Module()
    model.a, model.b = Linear(2, 2, dtype="float64", rng=0), Linear(2, 2, dtype="float64", rng=1)
    model.b.weight = model.a.weight
    assert [name for name, _ in model.named_parameters()] == ["a.weight", "a.bias", "b.bias"]
    assert set(model.state_dict()) == {"a.weight", "a.bias", "b.weight", "b.bias"}
    model.b(model.a(np.ones((1, 2)))).backward(np.ones((1, 2)))
    tied = model.a.weight.grad.numpy().copy()
    model.b.weight = Parameter(model.a.weight.numpy().copy())
    model.zero_grad()
    model.b(model.a(np.ones((1, 2)))).backward(np.ones((1, 2)))
    np.testing.assert_allclose(tied, model.a.weight.grad.numpy() + model.b.weight.grad.numpy(), rtol=1e-15)


def test_zero_grad_sets_none_and_modes_reach_the_modules_inside() -> None:
    model = SequenceModel("rnn", 1, 2, 1, rng=0)
    output, _ = model(np.ones((2, 1, 1), np.float32))
    output.backward(np.ones(output.shape, np.float32))
    assert all(p.grad is not None for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    assert model.eval() is model
    assert not model.rnn.training
    assert not model.linear.training
    model.train()
    assert model.rnn.training


@pytest.mark.parametrize("shape", [(3,), (4, 3), (6, 4, 3), (2, 6, 4, 3), (0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_on_any_leading_shape(shape: tuple[int, ...], bias: bool) -> None:
    rng = np.random.default_rng(0)
    module = Linear(3, 2, bias=bias, dtype="float64", rng=0)
    for learn in (True, False):
        module.weight.requires_grad = learn
        pairs = run_both(module, [rng.normal(size=shape)], [True], lambda m, x: [m(x)], rng)
        assert_all_parity(pairs, (shape, bias, learn))


def test_check_parity_leaves_the_users_gradients_alone_and_takes_torch_modules() -> None:
    rnn = RNN(3, 5, dtype="float64", rng=0)
    rnn.weight_hh_l0.grad = Tensor(np.full((5, 5), 3.0))
    x = np.random.default_rng(0).normal(size=(4, 2, 3))
    assert check_parity(rnn, x).ok
    assert_array_equal(rnn.weight_hh_l0.grad, np.full((5, 5), 3.0))
    assert rnn.bias_hh_l0.grad is None
    report = check_parity(torch.nn.RNN(3, 5, 2, batch_first=True).double(), x, f64(2, 4, 5))
    assert report.ok
    assert report.worst.relative == max(row.relative for row in report.rows)
    assert report.table().splitlines()[-1] == "all 12 within 1e-12 of their scale"
    assert repr(report) == report.table()
    rnn = torch.nn.RNN(3, 5, dtype=torch.float64)
    with torch.no_grad():
        assert check_parity(rnn, torch.from_numpy(x), torch.ones((1, 2, 5), dtype=torch.float64, requires_grad=True)).ok
    frozen = check_parity(RNN(3, 5, dtype="float64", rng=0).requires_grad_(False), x)
    assert [row.name for row in frozen.rows] == ["output", "h_n", "dx"]


class Doubled(Module):
    """A user's own module, with a gradient that is wrong on demand."""

    def __init__(self, wrong: bool) -> None:
        self.weight = Parameter(np.array([[1.0, 2.0]]))
        self.linear = Linear(2, 1, bias=False, dtype="float64", rng=0)
        self.linear.weight = self.weight
        self.wrong = wrong

    def forward(self, input: Any) -> Tensor:
        output = self.linear(input)
        return output + (output.detach() if self.wrong else output)


class TorchDoubled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0]], dtype=torch.float64))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * (input @ self.weight.T)


def test_check_parity_on_a_users_own_modules() -> None:
    x = np.random.default_rng(0).normal(size=(4, 2))
    assert check_parity(Doubled(False), x, torch_module=TorchDoubled()).ok
    report = check_parity(Doubled(True), x, torch_module=TorchDoubled())
    assert [row.name for row in report.rows if row.relative > report.tolerance] == ["dx", "dweight"]
    assert report.table().splitlines()[-2:] == [
        "2 of 3 differ by more than 1e-12 of their scale",
        "likely bug: factor-1/2: the gradient is halved (dx, dweight)",
    ]
    frozen = Doubled(False)
    frozen.weight.requires_grad = False
    assert check_parity(frozen, x, torch_module=TorchDoubled()).worst.name == "dweight"
    theirs = TorchDoubled()
    theirs.weight.requires_grad_(False)
    assert check_parity(Doubled(False), x, torch_module=theirs).worst.name == "dweight"
    other = TorchDoubled()
    other.weight.data += 1
    with pytest.raises(ValueError, match="weight must have the same values in both modules"):
        check_parity(Doubled(False), x, torch_module=other)
    with pytest.raises(ValueError, match=r"only in module \['weight'\], only in torch_module \['bias_hh_l0'"):
        check_parity(Doubled(False), x, torch_module=torch.nn.RNN(2, 1).double().requires_grad_(False))
    with pytest.raises(TypeError, match="got two torch modules"):
        check_parity(TorchDoubled(), x, torch_module=TorchDoubled())


CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: RNN(0, 5), ValueError, "input_size must be at least 1, got 0"),
    (lambda: RNN(3, -1), ValueError, "hidden_size must be at least 1, got -1"),
    (lambda: RNN(3, 5, 0), ValueError, "num_layers must be at least 1, got 0"),
    (lambda: RNN(3, 5.0), TypeError, "hidden_size must be an int, got float"),
    (lambda: RNN(3, 5, True), TypeError, "num_layers must be an int, got bool"),
    (lambda: RNN(3, 5, nonlinearity="sigmoid"), ValueError, "nonlinearity must be 'tanh' or 'relu', got 'sigmoid'"),
    (lambda: RNN(3, 5, 2, dropout=1.5), ValueError, r"dropout must be a number in \[0, 1\], got 1.5"),
    (lambda: RNN(3, 5, 2, dropout=True), TypeError, r"dropout must be a number in \[0, 1\], got True"),
    (lambda: RNN(3, 5, dtype="float16"), TypeError, "dtype must be float32 or float64, got 'float16'"),
    (lambda: RNN(3, 5, dtype=None), TypeError, "dtype must be float32 or float64, got None"),
    (lambda: RNN(3, 5, dtype="flaot"), TypeError, "dtype must be float32 or float64, got 'flaot'"),
    (lambda: Linear(0, 5), ValueError, "in_features must be at least 1, got 0"),
    (lambda: Linear(3, None), TypeError, "out_features must be an int, got NoneType"),
    (lambda: SequenceModel("gru2", 1, 1, 1), ValueError, "cell must be one of rnn, rnn-relu, lstm, gru, got 'gru2'"),
    (lambda: RNN64(f64(6, 4, 2)), ValueError, r"input must be \(T, B, I\) with I = 3, got \(6, 4, 2\)"),
    (lambda: RNN64(f64(6, 2)), ValueError, r"input must be \(T, I\) with I = 3, got \(6, 2\)"),
    (lambda: BATCH(f64(4, 6, 2)), ValueError, r"input must be \(B, T, I\) with I = 3, got \(4, 6, 2\)"),
    (lambda: RNN64(f64(3)), ValueError, r"input must be \(T, B, I\) or unbatched \(T, I\), got \(3,\)"),
    (lambda: RNN64(f64(0, 4, 3)), ValueError, r"at least one time step, got \(0, 4, 3\)"),
    (lambda: BATCH(f64(4, 0, 3)), ValueError, r"at least one time step, got \(4, 0, 3\)"),
    (lambda: RNN64(np.zeros((6, 4, 3), np.float32)), TypeError, "input must be float64 like the weights, got float32"),
    (lambda: RNN64(np.zeros((6, 4, 3), int)), TypeError, "input must be float64 like the weights, got int64"),
    (lambda: RNN64([["a"]]), TypeError, "input must be a Tensor or an array of float32 or float64"),
    (lambda: RNN64(None), TypeError, "input must be a Tensor or an array"),
    (
        lambda: RNN64(f64(6, 4, 3), f64(3, 2, 5)),
        ValueError,
        r"hx must be \(L\*D, B, H\) = \(2, 4, 5\), got \(3, 2, 5\)",
    ),
    (
        lambda: BATCH(f64(4, 6, 3), f64(4, 1, 5)),
        ValueError,
        r"hx must be \(L\*D, B, H\) = \(1, 4, 5\), got \(4, 1, 5\)",
    ),
    (lambda: RNN64(f64(6, 3), f64(2, 1, 5)), ValueError, r"hx must be \(L\*D, H\) = \(2, 5\), got \(2, 1, 5\)"),
    (lambda: RNN64(f64(6, 4, 3), f64(2, 5)), ValueError, r"hx must be \(L\*D, B, H\) = \(2, 4, 5\), got \(2, 5\)"),
    (
        lambda: RNN64(f64(6, 4, 3), np.zeros((2, 4, 5), np.float32)),
        TypeError,
        "hx must be float64 like the weights, got float32",
    ),
    (lambda: HEAD(f64(4, 2)), ValueError, r"input must be \(..., in_features\) = \(..., 3\), got \(4, 2\)"),
    (lambda: HEAD(f64()), ValueError, r"got \(\)"),
    (lambda: HEAD(np.zeros(3, np.float32)), TypeError, "input must be float64 like the weights, got float32"),
]
RNN64 = RNN(3, 5, 2, dtype="float64", rng=0)
BATCH = RNN(3, 5, batch_first=True, dtype="float64", rng=0)
HEAD = Linear(3, 2, dtype="float64", rng=0)


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_bad_input_is_refused_by_message(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_linears_law_of_initial_weights() -> None:
    linear = Linear(50, 400, rng=0)
    for parameter in linear.parameters():
        values = parameter.numpy() * np.sqrt(50)
        assert np.abs(values).max() <= 1
        np.testing.assert_allclose(values.var(), 1 / 3, atol=0.05)


def test_a_module_without_a_forward_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        Module()(1)


@pytest.mark.parametrize("cell", [rnn, lstm, gru], ids=["rnn", "lstm", "gru"])
@pytest.mark.parametrize(("T", "wanted"), [(2, ("dw_ih",)), (1, ("dh_0",))], ids=["two-steps", "dh_0"])
def test_a_cell_without_the_w_hh_that_it_needs_does_not_go_on(cell, T, wanted):
    """It would give the gradient of a network without the way back."""
    G, states = {rnn: 1, lstm: 4, gru: 3}[cell], [np.ones((1, 2))] * (2 if cell is lstm else 1)
    x, w_ih, w_hh = np.ones((T, 1, 3)), np.ones((2 * G, 3)), np.ones((2 * G, 2))
    h, *final, saved = cell.forward(x, *states, w_ih, w_hh)
    with pytest.raises((TypeError, AttributeError)):
        cell.backward(np.ones_like(h), *[None for _ in final], saved, w_ih, None, wanted=wanted)


@pytest.mark.parametrize("vocabulary", [None, 7])
def test_check_parity_takes_a_whole_model_with_lengths(vocabulary: int | None) -> None:
    model = SequenceModel("gru", 3, 5, 2, vocabulary=vocabulary, dtype="float64", rng=0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 4, 3)) if vocabulary is None else rng.integers(vocabulary, size=(6, 4))
    report = check_parity(model, x, lengths=[2, 6, 3, 6])
    assert report.ok, report
