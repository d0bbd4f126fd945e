"""The scalar case of derivations/02-bptt.md, right and with each of the usual mistakes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.cells import rnn as cell
from parity_tests.mutations import mutated
from parity_tests.mutations.rnn_cell import MISTAKES
from torch_rnn import check_parity

X = np.array([1.0, -1.0, 0.5]).reshape(3, 1, 1)
H_0 = np.array([[0.3]])
W_IH, W_HH, B_IH, B_HH = np.array([[0.5]]), np.array([[0.8]]), np.array([0.06]), np.array([0.04])
DH = np.array([1.0, 2.0, -1.0]).reshape(3, 1, 1)
RIGHT = {
    "dx": [0.545145049, 0.661530381, -0.404680578],
    "dh_0": 0.872232078,
    "dw_ih": -0.637451242,
    "dw_hh": 1.115023136,
    "db_ih": 1.603989705,
    "db_hh": 1.603989705,
}


def scalar_gradients() -> dict[str, np.ndarray]:
    h, _, saved = cell.forward(X, H_0, W_IH, W_HH, B_IH, B_HH)
    assert_allclose(h.ravel(), [0.685809062, 0.147562004, 0.436622084], rtol=0, atol=5e-10)
    return cell.backward(DH, None, saved, W_IH, W_HH)._asdict()


def scalar_module() -> numpy_rnn.RNN:
    rnn = numpy_rnn.RNN(1, 1, dtype="float64")
    rnn.load_state_dict({"weight_ih_l0": W_IH, "weight_hh_l0": W_HH, "bias_ih_l0": B_IH, "bias_hh_l0": B_HH})
    return rnn


def test_every_gradient() -> None:
    for name, gradient in scalar_gradients().items():
        assert_allclose(gradient.ravel(), RIGHT[name], rtol=0, atol=5e-10, err_msg=name)
    assert check_parity(scalar_module(), X, H_0[None]).ok


@pytest.mark.parametrize(("edits", "wrong"), MISTAKES)
def test_each_mistake_gives_its_known_wrong_numbers_and_is_noticed(edits: list, wrong: dict[str, float]) -> None:
    rng = np.random.default_rng(1)
    larger = numpy_rnn.RNN(3, 5, num_layers=2, bidirectional=True, dtype="float64", rng=rng)
    x, hx = rng.normal(size=(7, 4, 3)), rng.normal(size=(4, 4, 5))
    with mutated("numpy_rnn.cells.rnn", "backward", *edits):
        for name, gradient in scalar_gradients().items():
            if name in wrong:
                assert_allclose(gradient.item(), wrong[name], rtol=0, atol=5e-10, err_msg=name)
        assert not check_parity(scalar_module(), X, H_0[None]).ok
        assert not check_parity(larger, x, hx).ok
    assert check_parity(larger, x, hx).ok


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_a_backward_that_writes_into_its_upstream_gradient_is_noticed(nonlinearity: str) -> None:
    _h, _, saved = cell.forward(X, H_0, W_IH, W_HH, B_IH, B_HH, nonlinearity)
    dh = DH.copy()
    dh.flags.writeable = False
    cell.backward(dh, None, saved, W_IH, W_HH, nonlinearity)
    with (
        mutated("numpy_rnn.cells.rnn", "backward", ("dh_t += dh[t]", "dh_t += dh[t]; dh[t] = 0")),
        pytest.raises(ValueError, match="read-only"),
    ):
        cell.backward(dh, None, saved, W_IH, W_HH, nonlinearity)
