"""The scalar case of derivations/06-lstm.md, right and with each of the usual mistakes, and gates at their ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.cells import lstm as cell
from numpy_rnn.cells.sigmoid import sigmoid
from parity_tests.helpers import randomise
from parity_tests.mutations import mutated
from parity_tests.mutations.lstm_cell import MISTAKES, PROJECTION_MISTAKES
from torch_rnn import check_parity

X = np.array([1.0, -1.0, 0.5]).reshape(3, 1, 1)
H_0, C_0 = np.array([[0.3]]), np.array([[0.4]])
W_IH, W_HH = np.array([[0.5], [-0.4], [0.9], [0.6]]), np.array([[0.8], [0.3], [-0.7], [0.2]])
B_IH, B_HH = np.array([0.06, 0.7, 0.15, -0.2]), np.array([0.04, 0.3, 0.05, -0.1])
DH, DC_N = np.array([1.0, 2.0, -1.0]).reshape(3, 1, 1), np.array([[0.5]])
RIGHT = {
    "dx": [0.363961640, 0.097972577, -0.024506119],
    "dh_0": -0.050391675,
    "dc_0": 0.540593375,
    "dw_ih": [0.245603324, 0.004273045, 0.170543009, -0.034741913],
    "dw_hh": [-0.006796076, 0.049059272, 0.137913251, 0.072039090],
    "db_ih": [0.018072397, 0.149365548, 0.458625650, 0.125625058],
    "db_hh": [0.018072397, 0.149365548, 0.458625650, 0.125625058],
}


def scalar_gradients() -> dict[str, np.ndarray]:
    h, _, c_n, saved = cell.forward(X, H_0, C_0, W_IH, W_HH, B_IH, B_HH)
    assert_allclose(h.ravel(), [0.378752612, 0.080479018, 0.236315202], rtol=0, atol=5.1e-10)
    assert_allclose(c_n.ravel(), 0.508604486, rtol=0, atol=5.1e-10)
    return cell.backward(DH, None, DC_N, saved, W_IH, W_HH)._asdict()


def scalar_module(dtype: str = "float64") -> numpy_rnn.LSTM:
    lstm = numpy_rnn.LSTM(1, 1, dtype=dtype)
    lstm.load_state_dict({"weight_ih_l0": W_IH, "weight_hh_l0": W_HH, "bias_ih_l0": B_IH, "bias_hh_l0": B_HH})
    return lstm


def larger_module(proj_size: int) -> tuple[numpy_rnn.Module, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    lstm = numpy_rnn.LSTM(3, 5, num_layers=2, bidirectional=True, proj_size=proj_size, dtype="float64", rng=rng)
    states = rng.normal(size=(4, 4, proj_size or 5)), rng.normal(size=(4, 4, 5))
    return randomise(lstm, rng), rng.normal(size=(7, 4, 3)), states


def test_every_gradient() -> None:
    gradients = scalar_gradients()
    assert gradients.pop("dw_hr") is None
    assert set(gradients) == set(RIGHT)
    for name, gradient in gradients.items():
        assert_allclose(gradient.ravel(), RIGHT[name], rtol=0, atol=5.1e-10, err_msg=name)
    assert check_parity(scalar_module(), X, (H_0[None], C_0[None])).ok


@pytest.mark.parametrize(("edits", "wrong"), MISTAKES)
def test_each_mistake_gives_its_known_wrong_numbers_and_is_noticed(edits: list, wrong: dict[str, float]) -> None:
    larger, x, hx = larger_module(proj_size=0)
    with mutated("numpy_rnn.cells.lstm", "backward", *edits):
        gradients = scalar_gradients()
        for name, digits in wrong.items():
            assert_allclose(gradients[name].ravel(), digits, rtol=0, atol=5.1e-10, err_msg=name)
        assert not check_parity(scalar_module(), X, (H_0[None], C_0[None])).ok
        assert not check_parity(larger, x, hx).ok
    assert check_parity(larger, x, hx).ok


@pytest.mark.parametrize("edits", [*PROJECTION_MISTAKES, *(pytest.param(p.values[0], id=p.id) for p in MISTAKES)])
def test_each_mistake_is_noticed_with_a_projection(edits: list) -> None:
    larger, x, hx = larger_module(proj_size=2)
    with mutated("numpy_rnn.cells.lstm", "backward", *edits):
        assert not check_parity(larger, x, hx).ok
    assert check_parity(larger, x, hx).ok


def test_a_backward_that_writes_into_its_upstream_gradients_is_noticed() -> None:
    _h, _, _, saved = cell.forward(X, H_0, C_0, W_IH, W_HH, B_IH, B_HH)
    upstream = DH.copy(), H_0.copy(), DC_N.copy()
    for array in upstream:
        array.flags.writeable = False
    cell.backward(*upstream, saved, W_IH, W_HH)
    for edit in [("dh_t += dh[t]", "dh_t += dh[t]; dh[t] = 0"), ("dc_n.astype(h.dtype)", "dc_n")]:
        with mutated("numpy_rnn.cells.lstm", "backward", edit), pytest.raises(ValueError, match="read-only"):
            cell.backward(*upstream, saved, W_IH, W_HH)


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
