"""The GRU: the worked case of derivations/07-gru.md, right and with each of the usual mistakes, and saturated gates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.cells import gru as cell
from parity_tests.helpers import assert_all_parity, run_both
from parity_tests.mutations import mutated
from parity_tests.mutations.gru_cell import MISTAKES
from torch_rnn import check_parity

X = np.array([1.0, -1.0, 0.5]).reshape(3, 1, 1)
H_0 = np.array([[0.3]])
W_IH, W_HH = np.array([[0.5], [-0.3], [0.7]]), np.array([[-0.4], [0.6], [0.8]])
B_IH, B_HH = np.array([0.1, 0.2, -0.1]), np.array([0.3, -0.5, 0.4])
DH = np.array([1.0, 2.0, -1.0]).reshape(3, 1, 1)
RIGHT = {
    "dx": [0.475186299, 0.294083019, -0.344764179],
    "dh_0": [0.972277205],
    "dw_ih": [-0.058961004, -0.555381209, -0.183446671],
    "dw_hh": [0.074037439, 0.146240421, 0.181455966],
    "db_ih": [0.124611028, 0.187656365, 0.597852193],
    "db_hh": [0.124611028, 0.187656365, 0.295555682],
}


def scalar_gradients() -> dict[str, np.ndarray]:
    h, _, saved = cell.forward(X, H_0, W_IH, W_HH, B_IH, B_HH)
    assert_allclose(h.ravel(), [0.588119626, 0.175721131, 0.385750390], rtol=0, atol=5e-10)
    return cell.backward(DH, None, saved, W_IH, W_HH)._asdict()


def scalar_module() -> numpy_rnn.GRU:
    gru = numpy_rnn.GRU(1, 1, dtype="float64")
    gru.load_state_dict({"weight_ih_l0": W_IH, "weight_hh_l0": W_HH, "bias_ih_l0": B_IH, "bias_hh_l0": B_HH})
    return gru


def test_every_gradient() -> None:
    for name, gradient in scalar_gradients().items():
        assert_allclose(gradient.ravel(), RIGHT[name], rtol=0, atol=5e-10, err_msg=name)
    assert check_parity(scalar_module(), X, H_0[None]).ok


@pytest.mark.parametrize(("edits", "wrong"), MISTAKES)
def test_each_mistake_gives_its_known_wrong_numbers_and_is_noticed(edits: list, wrong: dict[str, list]) -> None:
    rng = np.random.default_rng(1)
    larger = numpy_rnn.GRU(3, 5, num_layers=2, bidirectional=True, dtype="float64", rng=rng)
    x, hx = rng.normal(size=(7, 4, 3)), rng.normal(size=(4, 4, 5))
    with mutated("numpy_rnn.cells.gru", "backward", *edits):
        gradients = scalar_gradients()
        for name, digits in wrong.items():
            assert_allclose(gradients[name].ravel(), digits, rtol=0, atol=5e-10, err_msg=name)
        assert not check_parity(scalar_module(), X, H_0[None]).ok
        assert not check_parity(larger, x, hx).ok
    assert check_parity(larger, x, hx).ok


@pytest.mark.parametrize(
    "edit",
    [
        ("n[...] = np.tanh(n + r * s[t])", "n[...] = np.tanh(n + (r * h_previous[:B]) @ w_hh.T[:, 2 * H :])"),
        ("h[t] = n + z * (h_previous[:B] - n)", "h[t] = h_previous[:B] + z * (n - h_previous[:B])"),
        ("r[...] = sigmoid(r + a[:, :H])", "r[...] = sigmoid(2 * (r + a[:, :H]))"),
    ],
    ids=["reset-before-the-product", "z-for-1-minus-z", "sigmoid-of-2x"],
)
def test_a_forward_that_computes_another_cell_is_noticed(edit: tuple[str, str]) -> None:
    rng = np.random.default_rng(2)
    with mutated("numpy_rnn.cells.gru", "forward", edit):
        gru = numpy_rnn.GRU(3, 5, dtype="float64", rng=rng)
        assert not check_parity(gru, rng.normal(size=(7, 4, 3)), rng.normal(size=(1, 4, 5))).ok


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("signs", [(r, z, n) for r in (1, -1) for z in (1, -1) for n in (1, -1)])
@pytest.mark.parametrize("side", ["input", "state"])
def test_saturated_gates_do_nothing_that_floating_point_complains_of(signs: tuple, side: str, dtype: str) -> None:
    """At |argument| = 1e4 nothing overflows, divides by zero or is invalid; a gradient may underflow to zero."""
    T, B, H = 4, 3, 5
    rng = np.random.default_rng(3)
    gru = numpy_rnn.GRU(2, H, dtype=dtype, rng=rng)
    values = {name: np.array(p) for name, p in gru.named_parameters()}
    values["bias_ih_l0" if side == "input" else "bias_hh_l0"] += 1e4 * np.repeat(signs, H).astype(dtype)
    gru.load_state_dict(values)
    x, hx = rng.normal(size=(T, B, 2)).astype(dtype), rng.normal(size=(1, B, H)).astype(dtype)
    with np.errstate(over="raise", invalid="raise", divide="raise", under="ignore"):
        pairs = run_both(gru, [x, hx], [True, True], lambda module, *inputs: list(module(*inputs)), rng)
    assert all(np.isfinite(np.asarray(got)).all() for got, _ in pairs.values())
    assert_all_parity(pairs, (signs, side, dtype))


def test_nothing_is_written_into_the_upstream_gradients() -> None:
    _h, _, saved = cell.forward(X, H_0, W_IH, W_HH, B_IH, B_HH)
    dh, dh_n = DH.copy(), np.array([[0.5]])
    dh.flags.writeable = dh_n.flags.writeable = False
    cell.backward(dh, dh_n, saved, W_IH, W_HH)
    with (
        mutated("numpy_rnn.cells.gru", "backward", ("dh_n.astype(h.dtype)", "dh_n")),
        pytest.raises(ValueError, match="read-only"),
    ):
        cell.backward(dh, dh_n, saved, W_IH, W_HH)
