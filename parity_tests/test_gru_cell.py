"""The GRU: forwards that compute another cell, windows of several blocks, and saturated gates."""

import numpy as np
import pytest

import numpy_rnn
from numpy_rnn.cells.steps import Steps
from parity_tests.helpers import assert_all_parity, randomise, run_both
from parity_tests.mutations import mutated
from parity_tests.mutations.gru_cell import BLOCK_MISTAKES, FORWARD_MISTAKES
from torch_rnn import check_parity


@pytest.mark.parametrize("edits", FORWARD_MISTAKES)
def test_a_forward_that_computes_another_cell_is_noticed(edits: list) -> None:
    rng = np.random.default_rng(2)
    with mutated("numpy_rnn.cells.gru", "forward", *edits):
        gru = numpy_rnn.GRU(3, 5, dtype="float64", rng=rng)
        assert not check_parity(gru, rng.normal(size=(7, 4, 3)), rng.normal(size=(1, 4, 5))).ok


def parity_in_blocks(k: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Parity of two layers and directions over 7 steps, of which ``k`` together fit the cache."""
    T, B, H = 7, 4, 5
    monkeypatch.setattr("numpy_rnn.cells.steps.CACHE", k * 3 * H * B * 8)
    assert [block.k for block in Steps([B] * T).blocks(3 * H * 8)] == [k] * (T // k) + [T % k] * (T % k > 0)
    rng = np.random.default_rng(4)
    gru = randomise(numpy_rnn.GRU(3, H, num_layers=2, bidirectional=True, dtype="float64"), rng)
    return check_parity(gru, rng.normal(size=(T, B, 3)), rng.normal(size=(4, B, H))).ok


@pytest.mark.parametrize("k", [1, 3])
def test_a_window_of_several_blocks(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parity_in_blocks(k, monkeypatch)


@pytest.mark.parametrize(("function", "edits"), BLOCK_MISTAKES)
def test_what_goes_wrong_between_blocks_is_noticed(function: str, edits: list, monkeypatch: pytest.MonkeyPatch) -> None:
    with mutated("numpy_rnn.cells.gru", function, *edits):
        assert not parity_in_blocks(3, monkeypatch)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("signs", [(r, z, n) for r in (1, -1) for z in (1, -1) for n in (1, -1)])
@pytest.mark.parametrize("side", ["input", "state"])
def test_saturated_gates_do_nothing_that_floating_point_complains_of(signs: tuple, side: str, dtype: str) -> None:
    """At |argument| = 1e4 nothing divides by zero or is invalid, and a gradient may underflow to zero.

    The exponential of a shut gate does overflow, and 1 / inf = 0 is its value: the forward alone may see that.
    """
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
