"""The GRU: forwards that compute another cell, and saturated gates."""

import numpy as np
import pytest

import numpy_rnn
from parity_tests.helpers import assert_all_parity, run_both
from parity_tests.mutations import mutated
from torch_rnn import check_parity


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
