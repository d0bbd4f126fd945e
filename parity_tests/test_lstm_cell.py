"""The LSTM: mistakes with a projection, and gates at their ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.cells.sigmoid import sigmoid
from parity_tests.helpers import randomise
from parity_tests.mutations import mutated
from parity_tests.mutations.lstm_cell import MISTAKES, PROJECTION_MISTAKES
from torch_rnn import check_parity


def larger_module(proj_size: int) -> tuple[numpy_rnn.Module, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    lstm = numpy_rnn.LSTM(3, 5, num_layers=2, bidirectional=True, proj_size=proj_size, dtype="float64", rng=rng)
    states = rng.normal(size=(4, 4, proj_size or 5)), rng.normal(size=(4, 4, 5))
    return randomise(lstm, rng), rng.normal(size=(7, 4, 3)), states


@pytest.mark.parametrize("edits", [*PROJECTION_MISTAKES, *(pytest.param(p.values[0], id=p.id) for p in MISTAKES)])
def test_each_mistake_is_noticed_with_a_projection(edits: list) -> None:
    larger, x, hx = larger_module(proj_size=2)
    with mutated("numpy_rnn.cells.lstm", "backward", *edits):
        assert not check_parity(larger, x, hx).ok
    assert check_parity(larger, x, hx).ok


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("proj_size", [0, 1])
def test_gates_that_are_wide_open_or_shut_raise_nothing(dtype: str, proj_size: int) -> None:
    lstm = numpy_rnn.LSTM(1, 16, proj_size=proj_size, dtype=dtype, rng=0)
    signs = np.array([[(k >> gate) & 1 for k in range(16)] for gate in range(4)])  # every combination of four gates
    state = {name: np.zeros(p.shape) for name, p in lstm.named_parameters()}
    state["weight_ih_l0"] = 1e4 * (2.0 * signs - 1).reshape(64, 1)  # x is 1 or -1, so |z| = 1e4
    if proj_size:
        state["weight_hr_l0"] = np.linspace(-1, 1, 16)[None]
    lstm.load_state_dict(state)
    rng = np.random.default_rng(0)
    x = np.array([1, -1, 1, 1], dtype).reshape(4, 1, 1)
    hx = tuple(rng.normal(size=(1, 1, size)).astype(dtype) for size in (proj_size or 16, 16))
    with np.errstate(over="raise", invalid="raise", divide="raise", under="ignore"):
        for z in (1e4, -1e4):
            assert sigmoid(np.array([z], dtype)) == (z > 0)
        output, (h_n, c_n) = lstm(x, hx)
        numpy_rnn.backward([output, h_n, c_n], [np.ones(t.shape, dtype) for t in (output, h_n, c_n)])
    assert all(np.isfinite(p.grad.data).all() for p in lstm.parameters())
    assert check_parity(lstm, x, hx).ok


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_nearly_closed_gate_keeps_its_relative_accuracy(dtype: str) -> None:
    z = np.linspace(-80, 80, 641, dtype=dtype)
    exact = np.exp(-np.logaddexp(0, -z.astype(np.longdouble)))
    assert_allclose(sigmoid(z), exact.astype(dtype), rtol=4 * np.finfo(dtype).eps)
    lost = 0.5 * (1 + np.tanh(z / 2))
    assert np.abs(lost[z <= -20] / exact[z <= -20] - 1).max() > 1e-9
