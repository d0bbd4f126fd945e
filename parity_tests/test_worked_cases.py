"""The cases that the chapters work by hand, right and with each of the usual mistakes: one body for all cells."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.cells import gru, lstm, rnn
from parity_tests.helpers import randomise
from parity_tests.mutations import gru_cell, lstm_cell, mutated, rnn_cell
from torch_rnn import check_parity

X = np.array([1.0, -1.0, 0.5]).reshape(3, 1, 1)
DH = np.array([1.0, 2.0, -1.0]).reshape(3, 1, 1)
H_0, C_0 = np.array([[0.3]]), np.array([[0.4]])


def column(*values: float) -> np.ndarray:
    return np.array(values).reshape(-1, 1)


@dataclass(frozen=True)
class WorkedCase:
    """One unit of a cell over three steps: chapter 2, 6 or 7."""

    kind: Any
    cell: ModuleType
    states: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]  # w_ih, w_hh, b_ih, b_hh
    upstream: tuple[np.ndarray | None, ...]  # dh, dh_n, dc_n
    h: list[float]
    right: dict[str, Any]

    def gradients(self) -> dict[str, np.ndarray]:
        h, *_, saved = self.cell.forward(X, *self.states, *self.weights)
        assert_allclose(h.ravel(), self.h, rtol=0, atol=5.1e-10)
        gradients = self.cell.backward(*self.upstream, saved, *self.weights[:2])._asdict()
        return {name: gradient for name, gradient in gradients.items() if gradient is not None}

    def parity(self) -> bool:
        module = self.kind(1, 1, dtype="float64")
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        module.load_state_dict(dict(zip(names, self.weights, strict=True)))
        return check_parity(module, X, tuple(state[None] for state in self.states)).ok

    def parity_of_a_larger_one(self) -> bool:
        rng = np.random.default_rng(1)
        module = randomise(self.kind(3, 5, num_layers=2, bidirectional=True, dtype="float64"), rng)
        return check_parity(module, rng.normal(size=(7, 4, 3)), tuple(rng.normal(size=(len(self.states), 4, 4, 5)))).ok


CASES = {
    "rnn": WorkedCase(
        numpy_rnn.RNN,
        rnn,
        (H_0,),
        (column(0.5), column(0.8), np.array([0.06]), np.array([0.04])),
        (DH, None),
        [0.685809062, 0.147562004, 0.436622084],
        {
            "dx": [0.545145049, 0.661530381, -0.404680578],
            "dh_0": 0.872232078,
            "dw_ih": -0.637451242,
            "dw_hh": 1.115023136,
            "db_ih": 1.603989705,
            "db_hh": 1.603989705,
        },
    ),
    "lstm": WorkedCase(
        numpy_rnn.LSTM,
        lstm,
        (H_0, C_0),
        (
            column(0.5, -0.4, 0.9, 0.6),
            column(0.8, 0.3, -0.7, 0.2),
            np.array([0.06, 0.7, 0.15, -0.2]),
            np.array([0.04, 0.3, 0.05, -0.1]),
        ),
        (DH, None, np.array([[0.5]])),
        [0.378752612, 0.080479018, 0.236315202],
        {
            "dx": [0.363961640, 0.097972577, -0.024506119],
            "dh_0": -0.050391675,
            "dc_0": 0.540593375,
            "dw_ih": [0.245603324, 0.004273045, 0.170543009, -0.034741913],
            "dw_hh": [-0.006796076, 0.049059272, 0.137913251, 0.072039090],
            "db_ih": [0.018072397, 0.149365548, 0.458625650, 0.125625058],
            "db_hh": [0.018072397, 0.149365548, 0.458625650, 0.125625058],
        },
    ),
    "gru": WorkedCase(
        numpy_rnn.GRU,
        gru,
        (H_0,),
        (column(0.5, -0.3, 0.7), column(-0.4, 0.6, 0.8), np.array([0.1, 0.2, -0.1]), np.array([0.3, -0.5, 0.4])),
        (DH, None),
        [0.588119626, 0.175721131, 0.385750390],
        {
            "dx": [0.475186299, 0.294083019, -0.344764179],
            "dh_0": 0.972277205,
            "dw_ih": [-0.058961004, -0.555381209, -0.183446671],
            "dw_hh": [0.074037439, 0.146240421, 0.181455966],
            "db_ih": [0.124611028, 0.187656365, 0.597852193],
            "db_hh": [0.124611028, 0.187656365, 0.295555682],
        },
    ),
}
MISTAKES = [
    pytest.param(CASES[name], *mistake.values, id=f"{name}-{mistake.id}")
    for name, mistakes in (("rnn", rnn_cell.MISTAKES), ("lstm", lstm_cell.MISTAKES), ("gru", gru_cell.MISTAKES))
    for mistake in mistakes
]


@pytest.mark.parametrize("name", CASES)
def test_every_gradient(name: str) -> None:
    case = CASES[name]
    gradients = case.gradients()
    assert set(gradients) == set(case.right)
    for key, gradient in gradients.items():
        assert_allclose(gradient.ravel(), case.right[key], rtol=0, atol=5.1e-10, err_msg=key)
    assert case.parity()
    assert case.parity_of_a_larger_one()


@pytest.mark.parametrize(("case", "edits", "wrong"), MISTAKES)
def test_each_mistake_gives_its_known_wrong_numbers_and_is_noticed(
    case: WorkedCase, edits: list, wrong: dict[str, Any]
) -> None:
    with mutated(case.cell.__name__, "backward", *edits):
        gradients = case.gradients()
        for key, digits in wrong.items():
            assert_allclose(gradients[key].ravel(), digits, rtol=0, atol=5.1e-10, err_msg=key)
        assert not case.parity()
        assert not case.parity_of_a_larger_one()


@pytest.mark.parametrize("name", CASES)
def test_a_backward_that_writes_into_its_upstream_gradients_is_noticed(name: str) -> None:
    case = CASES[name]
    *_, saved = case.cell.forward(X, *case.states, *case.weights)
    upstream = [DH.copy(), H_0.copy(), C_0.copy()][: 1 + len(case.states)]
    for array in upstream:
        array.flags.writeable = False
    case.cell.backward(*upstream, saved, *case.weights[:2])
    by_column = [('block.columns(dh).copy("C")', "block.columns(dh)"), ("dh_n.T.astype(dtype)", "dh_n.T")]
    edits = {
        "rnn": [("dh_t += up", "dh_t += up; up[...] = 0"), ('dh_n.astype(h.dtype, order="C")', "dh_n")],
        "lstm": [*by_column, ("dc_n.T.astype(dtype)", "dc_n.T")],
        "gru": by_column,
    }
    for edit in edits[name]:
        with mutated(case.cell.__name__, "backward", edit), pytest.raises(ValueError, match="read-only"):
            case.cell.backward(*upstream, saved, *case.weights[:2])


def _larger(name: str, T: int) -> tuple[ModuleType, tuple[Any, ...], list[np.ndarray], list[np.ndarray]]:
    """Return a cell, its forward's arguments up to ``w_hh``, its two biases, and all upstream gradients."""
    rng, cell, gates = np.random.default_rng(5), CASES[name].cell, {"rnn": 1, "lstm": 4, "gru": 3}[name]
    states = [rng.normal(size=(4, 5)) for _ in CASES[name].states]
    weights = [rng.normal(size=(gates * 5, size)) for size in (3, 5)]
    upstream = [rng.normal(size=(T, 4, 5)), *(rng.normal(size=(4, 5)) for _ in states)]
    return cell, (rng.normal(size=(T, 4, 3)), *states, *weights), list(rng.normal(size=(2, gates * 5))), upstream


def _assert_same(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)


@pytest.mark.parametrize("left_out", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_a_bias_that_is_left_out_is_zero(name: str, left_out: int) -> None:
    cell, given, biases, _ = _larger(name, 6)
    zero, none = list(biases), list[Any](biases)
    zero[left_out], none[left_out] = np.zeros_like(biases[left_out]), None
    (h, *final, _), (h_zero, *final_zero, _) = cell.forward(*given, *none), cell.forward(*given, *zero)
    _assert_same([h, *final], [h_zero, *final_zero])
    assert not np.array_equal(h, cell.forward(*given, *biases)[0])


@pytest.mark.parametrize(
    ("name", "left_out"), [(name, i) for name, case in CASES.items() for i in range(1 + len(case.states))]
)
def test_an_upstream_gradient_that_is_left_out_is_zero(name: str, left_out: int) -> None:
    cell, given, biases, upstream = _larger(name, 6)
    zero, none = list(upstream), list[Any](upstream)
    zero[left_out], none[left_out] = np.zeros_like(upstream[left_out]), None
    saved = cell.forward(*given, *biases)[-1]
    got, expected, other = (cell.backward(*each, saved, *given[-2:]) for each in (none, zero, upstream))
    _assert_same(got, expected)
    assert not np.array_equal(got.dx, other.dx)


@pytest.mark.parametrize("T", [1, 2, 6])
@pytest.mark.parametrize("name", CASES)
def test_each_gradient_alone_is_as_among_all_and_needs_no_weight_that_it_does_not_pass(name: str, T: int) -> None:
    cell, given, biases, upstream = _larger(name, T)
    saved, (w_ih, w_hh) = cell.forward(*given, *biases)[-1], given[-2:]
    every = cell.backward(*upstream, saved, w_ih, w_hh)
    for field in cell.Gradients._fields:
        weights = w_ih if field == "dx" else None, w_hh if T > 1 or field == "dh_0" else None
        alone = cell.backward(*upstream, saved, *weights, wanted={field})
        expected = every._asdict() if field != "dw_hr" else {}
        _assert_same(alone, [expected.get(other) if other == field else None for other in cell.Gradients._fields])


@pytest.mark.parametrize("name", CASES)
def test_every_argument_may_be_given_by_name(name: str) -> None:
    cell, given, biases, upstream = _larger(name, 2)
    names = ("x", *("h_0", "c_0")[: len(CASES[name].states)], "w_ih", "w_hh", "b_ih", "b_hh")
    *results, saved = cell.forward(*given, *biases)
    *by_name, _ = cell.forward(**dict(zip(names, [*given, *biases], strict=True)))
    _assert_same(by_name, results)
    names = (*("dh", "dh_n", "dc_n")[: len(upstream)], "saved", "w_ih", "w_hh")
    by_name = cell.backward(**dict(zip(names, [*upstream, saved, *given[-2:]], strict=True)))
    _assert_same(by_name, cell.backward(*upstream, saved, *given[-2:]))
