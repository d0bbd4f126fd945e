"""The LSTM: mistakes with a projection, mistakes between blocks, forwards of another cell, and gates at their ends."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.cells import lstm
from numpy_rnn.cells.sigmoid import sigmoid
from numpy_rnn.cells.steps import Steps
from parity_tests.helpers import assert_all_parity, randomise, run_both
from parity_tests.mutations import mutated
from parity_tests.mutations.lstm_cell import BLOCK_MISTAKES, FORWARD_MISTAKES, MISTAKES, PROJECTION_MISTAKES
from torch_rnn import check_parity


def larger_module(proj_size: int) -> tuple[numpy_rnn.Module, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    module = numpy_rnn.LSTM(3, 5, num_layers=2, bidirectional=True, proj_size=proj_size, dtype="float64", rng=rng)
    states = rng.normal(size=(4, 4, proj_size or 5)), rng.normal(size=(4, 4, 5))
    return randomise(module, rng), rng.normal(size=(7, 4, 3)), states


@pytest.mark.parametrize("edits", [*PROJECTION_MISTAKES, *(pytest.param(p.values[0], id=p.id) for p in MISTAKES)])
def test_each_mistake_is_noticed_with_a_projection(edits: list) -> None:
    larger, x, hx = larger_module(proj_size=2)
    with mutated("numpy_rnn.cells.lstm", "backward", *edits):
        assert not check_parity(larger, x, hx).ok
    assert check_parity(larger, x, hx).ok


def tables_of_blocks(k: int, monkeypatch: pytest.MonkeyPatch, proj_size: int = 2) -> list[str]:
    """What differs where ``k`` of 7 steps of 4 sequences fit the cache, and again where sequences end in between."""
    monkeypatch.setattr("numpy_rnn.cells.steps.CACHE", k * 4 * 5 * 4 * 8)
    assert [block.k for block in Steps([4] * 7).blocks(4 * 5 * 8)] == [k] * (7 // k) + [7 % k] * (7 % k > 0)
    larger, x, hx = larger_module(proj_size)
    reports = [check_parity(larger, x, hx, lengths=lengths) for lengths in (None, [2, 7, 4, 5])]
    return [report.table() for report in reports if not report.ok]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("proj_size", [0, 2])
def test_a_window_of_several_blocks(k: int, proj_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tables_of_blocks(k, monkeypatch, proj_size) == []


@pytest.mark.parametrize(("function", "edits"), BLOCK_MISTAKES)
def test_each_mistake_between_blocks_is_noticed(function: str, edits: list, monkeypatch: pytest.MonkeyPatch) -> None:
    with mutated("numpy_rnn.cells.lstm", function, *edits):
        larger, x, hx = larger_module(proj_size=2)
        assert check_parity(larger, x, hx).ok  # of one block
        assert tables_of_blocks(3, monkeypatch)


@pytest.mark.parametrize("edits", FORWARD_MISTAKES)
def test_a_forward_that_computes_another_cell_is_noticed(edits: list) -> None:
    larger, x, hx = larger_module(proj_size=2)
    with mutated("numpy_rnn.cells.lstm", "forward", *edits):
        assert not check_parity(larger, x, hx).ok


@pytest.mark.parametrize("name", lstm.Gradients._fields)
def test_only_the_gradients_that_are_wanted_are_returned(name: str) -> None:
    rng = np.random.default_rng(0)
    x, *states = (rng.normal(size=shape) for shape in [(7, 4, 3), (4, 2), (4, 5)])
    w_ih, w_hh, b_ih, b_hh, w_hr = (rng.normal(size=shape) for shape in [(20, 3), (20, 2), (20,), (20,), (2, 5)])
    h, *_, saved = lstm.forward(x, *states, w_ih, w_hh, b_ih, b_hh, w_hr)
    alone = lstm.backward(h, None, None, saved, w_ih, w_hh, w_hr, {name})._asdict()
    assert [other for other, gradient in alone.items() if gradient is not None] == [name]
    assert_allclose(alone[name], getattr(lstm.backward(h, None, None, saved, w_ih, w_hh, w_hr), name), rtol=0, atol=0)


PLACES = [each for n in (1, 2, 3) for each in itertools.combinations(range(3), n)]


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("read", PLACES, ids=str)
def test_one_projected_step_from_wherever_the_gradient_comes(read: tuple[int, ...]) -> None:
    """From the output, h_n or c_n, or some of them; the last alone never passes the projection."""
    rng = np.random.default_rng(0)
    module = randomise(numpy_rnn.LSTM(3, 5, proj_size=2, dtype="float64"), rng)

    def call(module: Any, x: Any) -> list[Any]:
        output, (h_n, c_n) = module(x)
        return [(output, h_n, c_n)[i] for i in read]

    assert_all_parity(run_both(module, [rng.normal(size=(1, 4, 3))], [True], call, rng), read)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("proj_size", [0, 1])
def test_gates_that_are_wide_open_or_shut_raise_nothing(dtype: str, proj_size: int) -> None:
    module = numpy_rnn.LSTM(1, 16, proj_size=proj_size, dtype=dtype, rng=0)
    signs = np.array([[(k >> gate) & 1 for k in range(16)] for gate in range(4)])  # every combination of four gates
    state = {name: np.zeros(p.shape) for name, p in module.named_parameters()}
    state["weight_ih_l0"] = 1e4 * (2.0 * signs - 1).reshape(64, 1)  # x is 1 or -1, so |z| = 1e4
    if proj_size:
        state["weight_hr_l0"] = np.linspace(-1, 1, 16)[None]
    module.load_state_dict(state)
    rng = np.random.default_rng(0)
    x = np.array([1, -1, 1, 1], dtype).reshape(4, 1, 1)
    hx = tuple(rng.normal(size=(1, 1, size)).astype(dtype) for size in (proj_size or 16, 16))
    with np.errstate(over="raise", invalid="raise", divide="raise", under="ignore"):
        for z in (1e4, -1e4):
            assert sigmoid(np.array([z], dtype)) == (z > 0)
        output, (h_n, c_n) = module(x, hx)
        numpy_rnn.backward([output, h_n, c_n], [np.ones(t.shape, dtype) for t in (output, h_n, c_n)])
    assert all(np.isfinite(p.grad.data).all() for p in module.parameters())
    assert check_parity(module, x, hx).ok


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_nearly_closed_gate_keeps_its_relative_accuracy(dtype: str) -> None:
    z = np.linspace(np.log(np.finfo(dtype).tiny), 80, 641, dtype=dtype)[1:]  # down to the smallest normal result
    exact = np.exp(-np.logaddexp(0, -z.astype(np.longdouble)))
    assert_allclose(sigmoid(z), exact.astype(dtype), rtol=4 * np.finfo(dtype).eps)
    lost = 0.5 * (1 + np.tanh(z / 2))
    assert np.abs(lost[z <= -20] / exact[z <= -20] - 1).max() > 1e-9


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_gate_is_exactly_shut_where_the_exponential_overflows_and_not_before(dtype: str) -> None:
    limits = np.finfo(dtype)
    end = -np.log(limits.max)
    z = np.array([-np.inf, 2 * end, 1.001 * end, 0.999 * end, 0.99 * end], dtype)
    gates = sigmoid(z)
    assert (gates[:3] == 0).all()
    assert_allclose(gates[3:], np.exp(z[3:]), rtol=4 * limits.eps, atol=4 * limits.smallest_subnormal)
    assert (gates[3:] > 0).all()
