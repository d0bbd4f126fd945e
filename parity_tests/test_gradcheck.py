"""gradcheck on a cell, against torch, and on itself; every cell by the complex step is in test_oracles.py."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from numpy_rnn.cells import rnn as cell
from numpy_rnn.gradcheck import Report, check_backward, compare
from parity_tests.mutations import mutated
from parity_tests.mutations.rnn_cell import MISTAKES

T, B, I, H = 6, 4, 3, 5  # noqa: E741


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"x": (T, B, I), "h_0": (B, H), "w_ih": (H, I), "w_hh": (H, H), "b_ih": (H,), "b_hh": (H,)}
    return {name: 0.5 * rng.normal(size=shape) for name, shape in shapes.items()}


def forward(*arguments: Any, nonlinearity: str = "tanh") -> Any:
    return cell.forward(*arguments, nonlinearity)[:2]


def backward(upstream: Any, *arguments: Any, nonlinearity: str = "tanh") -> Any:
    saved = cell.forward(*arguments, nonlinearity)[2]
    return cell.backward(*upstream, saved, arguments[2], arguments[3], nonlinearity)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_both_cells_by_central_differences(nonlinearity: str) -> None:
    def run(*arguments: Any) -> Any:
        return forward(*arguments, nonlinearity=nonlinearity)

    def back(*arguments: Any) -> Any:
        return backward(*arguments, nonlinearity=nonlinearity)

    report = check_backward(run, back, inputs(), method="central")
    assert report.ok, report.table()


@pytest.mark.parametrize("method", ["complex", "central"])
@pytest.mark.parametrize(("edits", "_"), MISTAKES)
def test_every_mistake_is_noticed(edits: Any, _: Any, method: str) -> None:
    with mutated("numpy_rnn.cells.rnn", "backward", *edits):
        assert not check_backward(forward, backward, inputs(), method=method).ok


def test_an_error_of_a_thousandth_in_one_entry_is_noticed_and_located() -> None:
    def slightly_wrong(*arguments: Any) -> Any:
        gradients = backward(*arguments)
        gradients.dw_hh[2, 3] *= 1.001
        return gradients

    for method in ("complex", "central"):
        report = check_backward(forward, slightly_wrong, inputs(), method=method)
        assert not report.ok
        assert (report.worst.name, report.worst.index) == ("w_hh", (2, 3))
        assert_allclose(report.worst.got / report.worst.expected, 1.001, rtol=1e-6)
        assert "FAIL\n" in report.table()
        assert "1 of 6 differ" in report.table()


def test_it_agrees_with_torch_on_a_function_of_torchs() -> None:
    def torch_gradients(upstream: np.ndarray, x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
        tensors = [torch.from_numpy(a.copy()).requires_grad_() for a in (x, w)]
        (tensors[0] @ tensors[1]).tanh().backward(torch.from_numpy(upstream.copy()))
        return [t.grad.numpy() for t in tensors]

    rng = np.random.default_rng(0)
    report = check_backward(
        lambda x, w: np.tanh(x @ w),
        torch_gradients,
        {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=(3, 2))},
        tolerance=1e-14,
    )
    assert report.ok, report.table()


def test_none_leaves_an_input_out() -> None:
    report = check_backward(lambda a, b: a * b, lambda d, a, b: (d * b, None), {"a": np.ones(2), "b": np.ones(2)})
    assert [row.name for row in report.rows] == ["a"]


def test_a_derivative_that_is_truly_zero_agrees_with_rounding() -> None:
    """The softmax does not change when a number is added to a whole row."""

    def softmax(x: np.ndarray, c: np.ndarray) -> np.ndarray:
        e = np.exp(x + c[:, None])
        return e / e.sum(axis=1, keepdims=True)

    def back(d: np.ndarray, x: np.ndarray, c: np.ndarray, wrong: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        y = softmax(x, c)
        dx = y * (d - (d * y).sum(axis=1, keepdims=True))
        return dx, dx.sum(axis=1) + wrong

    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(4, 3)), "c": rng.normal(size=4)}
    for method in ("complex", "central"):
        assert check_backward(softmax, back, arrays, method=method).ok
        turned = dict(reversed(arrays.items()))
        assert check_backward(lambda c, x: softmax(x, c), lambda d, c, x: back(d, x, c)[::-1], turned, method=method).ok
        report = check_backward(softmax, lambda d, x, c: back(d, x, c, 1e-8), arrays, method=method)
        assert not report.ok
        assert all(len(line) < 200 for line in report.table().splitlines())
    assert check_backward(softmax, lambda d, x, c: (None, back(d, x, c)[1]), arrays).ok


def test_a_tiny_gradient_is_checked_by_the_complex_step() -> None:
    """However large the loss is: the imaginary parts do not carry its rounding."""
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=4), "w": rng.normal(size=4)}
    for factor, ok in ((1e-10, True), (-1e-10, False), (0.0, False), (1e-10 * (1 + 1e-9), False)):
        report = check_backward(
            lambda x, w: (1e6 * x, 1e-10 * w), lambda d, x, w, f=factor: (1e6 * d[0], f * d[1]), arrays
        )
        assert report.ok == ok, report.table()

    def gate(x: np.ndarray, b: np.ndarray) -> np.ndarray:
        return x / (1 + np.exp(-b)) + x

    def back(d: np.ndarray, x: np.ndarray, b: np.ndarray, sign: int = 1) -> Any:
        s = 1 / (1 + np.exp(-b))
        return d * (1 + s), sign * d * x * s * (1 - s)

    arrays = {"x": rng.normal(size=4), "b": np.full(4, -36.0)}
    assert check_backward(gate, back, arrays).ok
    report = check_backward(gate, lambda *a: back(*a, sign=-1), arrays)
    assert [row.name for row in report.rows if row.relative > 1] == ["b"], report.table()


def test_what_is_left_of_terms_that_cancel_is_checked_to_the_digits_that_are_left() -> None:
    def forward(x: np.ndarray, c: np.ndarray) -> np.ndarray:
        e = np.exp(x + c[:, None])
        return e / e.sum(axis=1, keepdims=True) + 1e-13 * c[:, None]

    def back(d: np.ndarray, x: np.ndarray, c: np.ndarray, factor: float = 1) -> tuple[np.ndarray, np.ndarray]:
        y = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        dx = y * (d - (d * y).sum(axis=1, keepdims=True))
        return dx, factor * (dx.sum(axis=1) + 1e-13 * d.sum(axis=1))

    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(4, 3)), "c": rng.normal(size=4)}
    report = check_backward(forward, back, arrays)
    assert report.ok
    assert [line.split()[0] for line in report.table().splitlines() if line.endswith("  rounding")] == ["c"]
    for factor in (-1, 0, 1.1):
        assert not check_backward(forward, lambda *a, f=factor: back(*a, f), arrays).ok


def test_compare_at_the_edges() -> None:
    nan, inf = np.nan, np.inf
    assert compare("a", np.array([nan, inf, -inf]), np.array([nan, inf, -inf])).relative == 0
    assert compare("a", np.array([inf]), np.array([-inf])).relative == inf
    assert compare("a", np.array([1.0, 2.0]), np.array([nan, 2.0])).relative == inf
    assert compare("a", np.array([1e-300]), np.array([0.0])).relative == inf
    assert compare("a", np.zeros((0, 3)), np.zeros((0, 3))).relative == 0
    row = compare("a", np.array([[1.0, 2.0], [3.0, 4.5]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert (row.max_abs, row.relative, row.index, row.got, row.expected) == (0.5, 0.125, (1, 1), 4.5, 4.0)
    assert compare("a", np.array([1 + 2.0**-52]), np.array([1.0])).ulps == 1
    assert compare("a", np.array([1 + 2.0**-23], np.float32), np.array([1.0], np.float32)).ulps == 1
    assert compare("a", np.array([1e-300]), np.array([0.0])).ulps == inf
    assert compare("a", np.array([1e-17, 0.0]), np.array([0.0, 1e-18]), noise=1e-16).relative == 0
    assert compare("a", np.array([1e-17, 1.0]), np.array([0.0, 1.0]), noise=1e-16).relative == 1e-17
    with pytest.raises(ValueError, match=r"a must have the shape of its reference, \(2,\), got \(3,\)"):
        compare("a", np.ones(3), np.ones(2))


def test_the_table_marks_what_is_beyond_the_tolerance_and_nothing_else() -> None:
    rows = [compare(name, np.array([x]), np.array([2.0])) for name, x in (("exact", 2.0), ("at", 2.5), ("beyond", 3.0))]
    lines = Report(tuple(rows), 0.25).table().splitlines()
    assert [line.split()[0] for line in lines if line.endswith("FAIL")] == ["beyond"]
    assert lines[-1] == "1 of 3 differ by more than 2e-01 of their scale"
    assert Report(tuple(rows[:2]), 0.25).ok


def test_the_upstream_gradients_have_the_dtype_of_what_they_are_gradients_of() -> None:
    def back(d: np.ndarray, x: np.ndarray) -> np.ndarray:
        assert d.dtype == x.dtype
        return d * (1 - np.tanh(x) ** 2)

    for dtype in (np.float64, np.longdouble):
        assert check_backward(np.tanh, back, {"x": np.ones((3, 2), dtype)}).ok


def test_one_input_needs_no_tuple_around_its_gradient() -> None:
    assert check_backward(np.tanh, lambda d, x: d * (1 - np.tanh(x) ** 2), {"x": np.ones((3, 2))}).ok


def writes(d: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    x[0] = 0
    return [d]


X = {"x": np.ones(2)}
CALLS: list[tuple[Any, type[Exception], str]] = [
    (
        lambda: check_backward(np.tanh, np.tanh, X, method="forward"),
        ValueError,
        "'complex' or 'central', got 'forward'",
    ),
    (
        lambda: check_backward(np.tanh, np.tanh, {"x": np.ones(2, np.float32)}),
        TypeError,
        r"inputs\['x'\] must be float64 or longdouble, got float32",
    ),
    (lambda: check_backward(np.abs, lambda d, x: [d], X), TypeError, "forward must pass complex numbers through"),
    (lambda: check_backward(lambda x: x * np.abs(x), lambda d, x: [d], X), TypeError, "must be analytic"),
    (
        lambda: check_backward(lambda x: (x, np.abs(x)), lambda d, x: [d[0]], X),
        TypeError,
        "forward must pass complex numbers through",
    ),
    (
        lambda: check_backward(lambda x: (x, {"x": x}), lambda d, x: [d], X),
        TypeError,
        "an array or a tuple of arrays, got a dict: wrap it, so that a cache does not come back",
    ),
    (
        lambda: check_backward(np.tanh, lambda d, x: {"x": d}, X),
        TypeError,
        "must return a tuple of gradients, got dict",
    ),
    (lambda: check_backward(np.tanh, lambda d, x: [d], [np.ones(2)]), TypeError, "must be a mapping .* got list"),
    (lambda: check_backward(np.tanh, lambda d, x: [d, d], X), ValueError, "one gradient for each of 1 inputs, got 2"),
    (lambda: check_backward(np.tanh, lambda d, x: [d[:1]], X), ValueError, r"gradient of x must be \(2,\), got \(1,\)"),
    (lambda: check_backward(np.tanh, lambda d, x: [None], X), ValueError, "at least one gradient, got only None"),
    (lambda: check_backward(lambda x: (), lambda d, x: [d], X), TypeError, "a tuple of arrays, got an empty one"),
    (lambda: check_backward(np.tanh, lambda d, x: [1j * d], X), TypeError, "the gradient of x .* real .* complex128"),
    (lambda: check_backward(np.tanh, lambda d, x: [d.astype(object)], X), TypeError, "the gradient of x .* got object"),
    (lambda: check_backward(np.tanh, lambda d, x: [{}], X), TypeError, "the gradient of x .* real .* got dict"),
    (lambda: check_backward(np.tanh, lambda d, x: [[[1], [1, 2]]], X), TypeError, "the gradient of x .* unequal"),
    (
        lambda: check_backward(lambda x: x + 0j, lambda d, x: [d], X, method="central"),
        TypeError,
        "what forward returns for real inputs .* real .* complex128",
    ),
    (lambda: check_backward(lambda x: x.astype(str), lambda d, x: [d], X), TypeError, "what forward .* real .* <U32"),
    (lambda: check_backward(np.tanh, np.tanh, {"x": [[1.0], []]}), TypeError, r"inputs\['x'\] .* unequal lengths"),
    (
        lambda: check_backward(lambda x: x * np.random.default_rng().random(), lambda d, x: [d], X),
        ValueError,
        "forward must return the same for the same arguments.*random",
    ),
    *(
        (lambda seed=seed: check_backward(np.tanh, np.tanh, X, seed=seed), ValueError, "seed must be a whole number")
        for seed in (-1, True, 0.5)
    ),
    (lambda: compare("dx", np.ones(2), 1j * np.ones(2)), TypeError, "the reference of dx .* real .* complex128"),
    (lambda: check_backward(np.tanh, writes, X), ValueError, "backward must not write into its arguments: .*read-only"),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_bad_calls_by_message(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_a_backward_that_writes_into_its_upstream_gradient_is_refused() -> None:
    with pytest.raises(ValueError, match="backward must not write into its arguments"):
        check_backward(lambda x: x * x, lambda d, x: [np.multiply(d, 2 * x, out=d)], X)


def test_an_error_of_the_function_itself_is_not_taken_for_ours() -> None:
    def forward(x: np.ndarray) -> np.ndarray:
        raise ValueError("x comes from nowhere")

    with pytest.raises(ValueError, match=r"^x comes from nowhere$"):
        check_backward(forward, lambda d, x: [d], X)


def test_numbers_and_arrays_of_another_kind_are_taken() -> None:
    report = check_backward(
        np.tanh,
        lambda d, x: [(d * (1 - np.tanh(x) ** 2)).astype(">f8")],
        {"x": np.linspace(0, 1, 3).astype(">f8")},
        tolerance=np.int64(1),  # type: ignore[arg-type]
        seed=np.int64(0),  # type: ignore[arg-type]
    )
    assert report.worst.relative < 1e-14


@pytest.mark.parametrize("step", [0, -1.0, np.nan, np.inf, "a", True])
def test_a_step_that_is_none_is_refused(step: Any) -> None:
    with pytest.raises(ValueError, match="step must be a finite number above 0"):
        check_backward(np.tanh, lambda d, x: [d], X, method="central", step=step)


def test_small_true_gradients_are_not_lost_in_the_noise() -> None:
    """A state 40 steps back: its gradient is 1e-20 of the others', and still checked to its last digits."""
    rng = np.random.default_rng(0)
    shapes = {"x": (40, 1, 1), "h_0": (1, 1), "w_ih": (1, 1), "w_hh": (1, 1)}
    arrays = {name: 0.3 * rng.normal(size=shape) for name, shape in shapes.items()}

    def run(*a: Any) -> Any:
        return cell.forward(*a)[1]

    def back(d: Any, *a: Any, wrong: float = 0.0) -> Any:
        g = cell.backward(None, d, cell.forward(*a)[2], a[2], a[3])
        return g.dx, g.dh_0 + wrong, g.dw_ih, g.dw_hh

    assert check_backward(run, back, arrays).ok
    assert not check_backward(run, lambda *a: back(*a, wrong=1e-10), arrays).ok


def test_a_forward_that_gives_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="numerical derivative by x must be finite"):
        check_backward(lambda x: x * np.nan, lambda d, x: [d * np.nan], X)
