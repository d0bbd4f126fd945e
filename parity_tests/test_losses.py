"""Losses in both libraries: values, gradients, what is saved and checked, and every error by message."""

import inspect
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import numpy_rnn
from numpy_rnn import Linear, Tensor
from numpy_rnn.gradcheck import check_backward
from numpy_rnn.losses import classes, differences, logistic
from parity_tests.helpers import assert_all_parity, assert_parity, run_both
from parity_tests.mutations import mutated
from parity_tests.mutations.losses import MISTAKES

BCE = "binary_cross_entropy_with_logits"
DIFFERENCES = ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss")
LOSSES = (*DIFFERENCES, "cross_entropy", "nll_loss", BCE)
REDUCTIONS = ("mean", "sum", "none")
# What is special for the logits: nothing, all equal, a sure answer, an answer surer than exp can say, none of it.
SCALES = (1.0, 0.0, 40.0, 1e4, 1e-7)


class Case(NamedTuple):
    arrays: dict[str, np.ndarray]
    options: dict[str, Any]
    grads: tuple[str, ...]  # which of the arrays require a gradient


def difference_cases(loss: str, rng: np.random.Generator) -> Iterator[Case]:
    options: dict[str, list[dict[str, Any]]] = {
        "huber_loss": [{}, {"delta": 0.5}, {"delta": 3}, {"delta": np.inf}],
        "smooth_l1_loss": [{}, {"beta": 0.5}, {"beta": 3}, {"beta": 0}],
    }
    corners = np.array([0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 1e-7, -1e-7, 1e4, -1e4, 0.5000001])
    for keywords, grads in itertools.product(options.get(loss, [{}]), [("input",), ("target",), ("input", "target")]):
        for shape in [(6, 4, 3), (5,), (), (0, 3)]:
            yield Case({"input": rng.normal(size=shape), "target": rng.normal(size=shape)}, keywords, grads)
        yield Case({"input": corners, "target": np.zeros(12)}, keywords, grads)
        yield Case({"input": np.full(12, 2.0), "target": 2.0 - corners}, keywords, grads)


def layouts() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Shapes of the logits and of the class indices."""
    yield (5,), ()
    yield (4, 5), (4,)
    yield (4, 5, 6), (4, 6)
    yield (4, 5, 2, 3), (4, 2, 3)
    yield (2, 5, 2, 3, 2), (2, 2, 3, 2)
    yield (4, 1), (4,)
    yield (0, 5), (0,)
    yield (2, 5, 0), (2, 0)


def class_cases(loss: str, rng: np.random.Generator) -> Iterator[Case]:
    smoothings = (0.0, 0.1, 1.0) if loss == "cross_entropy" else (0.0,)
    for (shape, positions), weighted, scale, smoothing in itertools.product(
        layouts(), (False, True), SCALES, smoothings
    ):
        K = shape[min(len(shape) - 1, 1)]
        if scale != 1 and shape not in ((4, 5), (4, 5, 6)):
            continue
        if smoothing == 1 and (scale < 1 or K == 1):
            continue  # softmax and target are equal: the gradient is 0 and what is left of it is rounding
        options = {"label_smoothing": smoothing} if smoothing else {}
        weight = {"weight": rng.uniform(0.1, 2, size=K)} if weighted else {}
        logits = {"input": scale * rng.normal(size=shape)}
        indices = rng.integers(K, size=positions)
        yield Case(logits | {"target": indices} | weight, options, ("input",))
        ignored = np.where(rng.uniform(size=positions) < 0.4, -100, indices)
        yield Case(logits | {"target": ignored} | weight, options, ("input",))
        yield Case(logits | {"target": indices} | weight, options | {"ignore_index": 0}, ("input",))
        if loss == "cross_entropy":
            probabilities = rng.uniform(size=shape)
            yield from (
                Case(logits | {"target": probabilities} | weight, options, grads)
                for grads in [("input",), ("target",), ("input", "target"), ("weight",), ("input", "target", "weight")]
                if set(grads) <= {"input", "target", *weight}
            )
    for weight in ({}, {"weight": np.array([1.0, 0.0, 2.0])}):  # nothing counts; what counts weighs nothing
        for target, smoothing in itertools.product([[-100, -100], [1, 1], [1, -100], [2, 1]], smoothings):
            options = {"label_smoothing": smoothing} if smoothing else {}
            yield Case({"input": rng.normal(size=(2, 3)), "target": np.array(target)} | weight, options, ("input",))


def logistic_cases(rng: np.random.Generator) -> Iterator[Case]:
    shape = (4, 3)
    weights = [{}, {"weight": shape}, {"pos_weight": (3,)}, {"weight": (4, 1), "pos_weight": shape}, {"weight": ()}]
    for sizes, scale in itertools.product(weights, SCALES):
        drawn = {name: rng.uniform(0.1, 2, size=size) for name, size in sizes.items()}
        logits = {"input": scale * rng.normal(size=shape)}
        targets = [rng.uniform(size=shape), rng.integers(2, size=shape) * 1.0, rng.normal(size=shape)]
        for target, grads in itertools.product(targets, [("input",), ("target",), ("input", "target")]):
            yield Case(logits | {"target": target} | drawn, {}, grads)
    yield Case({"input": np.array(0.3), "target": np.array(0.7)}, {}, ("input", "target"))
    yield Case({"input": np.zeros((0, 3)), "target": np.zeros((0, 3))}, {}, ("input", "target"))


def cases(loss: str) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    if loss in DIFFERENCES:
        return difference_cases(loss, rng)
    return logistic_cases(rng) if loss == BCE else class_cases(loss, rng)


def caller(loss: str, names: Any, options: dict[str, Any]) -> Any:
    def call(module: Any, *tensors: Any) -> list[Any]:
        library: Any = numpy_rnn if isinstance(tensors[0], Tensor) else torch.nn.functional
        return [getattr(library, loss)(**dict(zip(names, tensors, strict=True)), **options)]

    return call


def assert_parity_of(loss: str, dtype: str, reduction: str) -> None:
    rng = np.random.default_rng(1)
    for case in cases(loss):
        arrays = [a.astype(dtype) if a.dtype == np.float64 else a for a in case.arrays.values()]
        requires_grad = [name in case.grads for name in case.arrays]
        call = caller(loss, case.arrays, case.options | {"reduction": reduction})
        pairs = run_both(Linear(1, 1), [a.copy() for a in arrays], requires_grad, call, rng)
        shapes = {name: a.shape for name, a in case.arrays.items()}
        assert_all_parity(pairs, (loss, dtype, reduction, shapes, case.options, case.grads))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
def test_parity(loss: str, dtype: str, reduction: str) -> None:
    assert_parity_of(loss, dtype, reduction)


@pytest.mark.parametrize(("loss", "module", "attribute", "edits"), MISTAKES)
def test_a_mistake_is_noticed(loss: str, module: str, attribute: str, edits: Any) -> None:
    with mutated(module, attribute, *edits):
        for reduction in REDUCTIONS:
            try:
                assert_parity_of(loss, "float64", reduction)
            except (AssertionError, RuntimeWarning):
                return
    pytest.fail("no reduction shows it")


def run(loss: str, arrays: Any, library: Any, grads: Any = ("input",), **options: Any) -> tuple[Any, dict[str, Any]]:
    """Return the loss and the gradients, with ones from above."""
    make = numpy_rnn.Tensor if library is numpy_rnn else torch.tensor
    tensors = {name: make(np.array(a)) for name, a in arrays.items()}
    for name in grads:
        tensors[name].requires_grad = True
    functions = numpy_rnn if library is numpy_rnn else torch.nn.functional
    result = getattr(functions, loss)(**tensors, **options)
    result.backward(make(np.ones(tuple(result.shape), np.float64)))
    return np.asarray(result.detach()), {name: np.asarray(tensors[name].grad) for name in grads}


@pytest.mark.parametrize("loss", DIFFERENCES)
def test_differences_that_are_no_numbers(loss: str) -> None:
    arrays = {"input": np.array([np.nan, np.inf, -np.inf, 1.0]), "target": np.zeros(4)}
    for options in [{}, {"beta": 0.0}] if loss == "smooth_l1_loss" else [{}]:
        ours, theirs = (
            run(loss, arrays, library, ("input", "target"), reduction="none", **options)
            for library in (numpy_rnn, torch)
        )
        assert_array_equal(ours[0], theirs[0])
        for name in ("input", "target"):
            assert_array_equal(ours[1][name], theirs[1][name])


def test_logits_that_are_no_numbers() -> None:
    """An infinite logit gives whatever PyTorch gives, without a warning."""
    rows = np.array([[0, -np.inf, 1], [-np.inf, -np.inf, -np.inf], [np.inf, 0, 0], [np.nan, 0, 0], [-1e4, 0, 1e4]])
    for target, smoothing in itertools.product((0, 1, 2, -100), (0.0, 0.1, 1.0)):
        for reduction in REDUCTIONS:
            arrays = {"input": rows, "target": np.full(5, target)}
            options = {"reduction": reduction, "label_smoothing": smoothing}
            ours, theirs = (run("cross_entropy", arrays, library, **options) for library in (numpy_rnn, torch))
            assert_allclose(ours[0], theirs[0], rtol=1e-15)
            assert_allclose(ours[1]["input"], theirs[1]["input"], rtol=1e-15, atol=1e-16)
    arrays = {"input": rows, "target": np.full((5, 3), 0.5)}
    ours, theirs = (run("cross_entropy", arrays, library, reduction="none") for library in (numpy_rnn, torch))
    assert_allclose(ours[0], theirs[0], rtol=1e-15)
    assert_allclose(ours[1]["input"], theirs[1]["input"], rtol=1e-15, atol=1e-16)


def test_infinite_logits_of_yes_or_no() -> None:
    """Where PyTorch gives a number or an infinity, so do we; where it subtracts infinities, we may know better."""
    z = np.array([np.inf, -np.inf, 1e4, -1e4, 800.0, np.nan])
    for t in (0.0, 0.5, 1.0):
        arrays = {"input": z, "target": np.full(6, t), "pos_weight": np.array(3.0)}
        ours, theirs = (
            run(BCE, arrays, library, ("input", "target"), reduction="none") for library in (numpy_rnn, torch)
        )
        known = ~np.isnan(theirs[0])
        assert_array_equal(ours[0][known], theirs[0][known])
        for name in ("input", "target"):
            assert_allclose(ours[1][name], theirs[1][name], rtol=1e-15)


def test_small_losses_keep_their_digits() -> None:
    """The right answer, ever surer: the loss is exp(-z), where PyTorch rounds to 0 from 40 on."""
    z = np.array([10.0, 40.0, 100.0, 700.0])
    expected = np.log1p(np.exp(-z))
    for target, sign in ((1.0, 1), (0.0, -1)):
        ours, gradients = run(BCE, {"input": sign * z, "target": np.full(4, target)}, numpy_rnn, reduction="none")
        assert_allclose(ours, expected, rtol=1e-14)
        assert_allclose(gradients["input"], -sign * np.exp(-z) / (1 + np.exp(-z)), rtol=1e-14)
    theirs, _ = run(BCE, {"input": -z, "target": np.zeros(4)}, torch, reduction="none")
    assert theirs[1] == 0 < expected[1]


def test_two_classes_are_one_logit() -> None:
    rng = np.random.default_rng(0)
    z, t = rng.normal(size=6), rng.integers(2, size=6)
    one = numpy_rnn.binary_cross_entropy_with_logits(z, t * 1.0)
    two = numpy_rnn.cross_entropy(np.stack([np.zeros(6), z], axis=1), t)
    assert_allclose(one.item(), two.item(), rtol=1e-15)


def test_the_swapped_layout_raises_unless_T_is_K() -> None:
    """Logits (N, T, K) for (N, K, T): with T = K nothing can be noticed, in either library."""
    with pytest.raises(
        ValueError, match=r"target must be class indices \(N, d1, ...\) = \(2, 3\), or class prob.*\(2, 4\)"
    ):
        numpy_rnn.cross_entropy(np.zeros((2, 4, 3)), np.zeros((2, 4), int))
    logits = np.random.default_rng(0).normal(size=(2, 3, 3))
    arrays = {"input": logits, "target": np.zeros((2, 3), int)}
    ours, theirs = (run("cross_entropy", arrays, library)[0] for library in (numpy_rnn, torch))
    assert_allclose(ours, theirs, rtol=1e-14)
    assert abs(ours - run("cross_entropy", arrays | {"input": logits.swapaxes(1, 2)}, numpy_rnn)[0]) > 0.01


X, INDICES = np.random.default_rng(2).normal(size=(4, 3)), np.array([0, 2, 1, -100])
WEIGHT, ALIKE = np.array([0.5, 1.0, 2.0]), np.random.default_rng(3).uniform(size=(4, 3))
SAVES: list[tuple[str, dict[str, np.ndarray], dict[str, Any]]] = [
    *[(loss, {"input": X, "target": ALIKE}, {}) for loss in DIFFERENCES],
    ("smooth_l1_loss", {"input": X, "target": ALIKE}, {"beta": 0.0}),
    ("nll_loss", {"input": X, "target": INDICES, "weight": WEIGHT}, {}),
    ("nll_loss", {"input": X, "target": INDICES}, {}),
    *[("cross_entropy", {"input": X, "target": INDICES, "weight": WEIGHT}, {"label_smoothing": s}) for s in (0.0, 0.1)],
    *[("cross_entropy", {"input": X, "target": ALIKE, "weight": WEIGHT}, {"label_smoothing": s}) for s in (0.0, 0.1)],
    *[("cross_entropy", {"input": X, "target": ALIKE}, {"label_smoothing": s}) for s in (0.0, 0.1)],
    (BCE, {"input": X, "target": ALIKE, "weight": WEIGHT, "pos_weight": ALIKE}, {}),
    (BCE, {"input": X, "target": ALIKE}, {}),
]


def written(loss: str, arrays: Any, options: Any, grads: Any, name: str, library: Any) -> str:
    """What comes of a write into ``name`` between forward and backward, and of a second backward."""
    make = numpy_rnn.Tensor if library is numpy_rnn else torch.tensor
    functions = numpy_rnn if library is numpy_rnn else torch.nn.functional
    tensors = {n: make(np.array(a)) for n, a in arrays.items()}
    for n in grads:
        tensors[n].requires_grad = True
        tensors[n] = tensors[n].clone()  # a leaf must not be written to
    try:
        result = getattr(functions, loss)(**tensors, **options)
    except RuntimeError:
        return "no gradient for it"
    with library.no_grad():
        tensors[name].add_(0)
    message = ""
    try:
        result.backward()
    except RuntimeError as error:
        message = str(error).splitlines()[0]
    if message:
        assert "modified by an inplace operation" in message
        if library is numpy_rnn:
            version = "is at version 1; expected version 0 instead."
            assert message.endswith(f"{name} {list(arrays[name].shape)} {version}")
        return "noticed"
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()
    return "not noticed"


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("loss", "arrays", "options"), SAVES)
def test_what_is_saved_and_checked(loss: str, arrays: Any, options: Any, reduction: str) -> None:
    floats = [name for name, a in arrays.items() if a.dtype == np.float64]
    for r in range(1, len(floats) + 1):
        for grads in itertools.combinations(floats, r):
            for name in arrays:
                ours, theirs = (
                    written(loss, arrays, options | {"reduction": reduction}, grads, name, library)
                    for library in (numpy_rnn, torch)
                )
                assert ours == theirs, (grads, name)


def test_gradients_against_the_complex_step() -> None:
    rng = np.random.default_rng(0)
    z, t = rng.normal(size=(4, 3)), rng.uniform(size=(4, 3))
    p, w = rng.uniform(size=3), rng.uniform(size=3)
    target = np.array([0, -100, 1, 2])

    def check(forward: Any, backward: Any, **inputs: np.ndarray) -> None:
        report = check_backward(forward, backward, inputs)
        assert report.ok, report

    check(differences.square, lambda d_y, d: d_y * differences.square_slope(d), d=z)
    check(
        lambda z, t: logistic.logistic(z, t, p),
        lambda d_y, z, t: (d_y * logistic.logistic_slope(z, t, p), d_y * logistic.target_slope(z, p)),
        z=z,
        t=t,
    )
    check(classes.log_softmax, lambda d_y, z: classes.log_softmax_backward(d_y, classes.log_softmax(z)), z=z)
    check(
        lambda logp, t: classes.probabilities_forward(logp, t, w),
        lambda d_y, logp, t: (
            classes.probabilities_backward(d_y, t, w),
            classes.probabilities_backward(d_y, logp, w),
        ),
        logp=z,
        t=t,
    )
    for smoothing in (0.0, 0.3):
        for weight in (None, w):
            rest = (target, weight, -100, smoothing)
            check(
                lambda logp, rest=rest: classes.indices_forward(logp, *rest)[0],
                lambda d_y, logp, rest=rest: classes.indices_backward(d_y, logp, *rest),
                logp=z,
            )


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_gradients_against_central_differences(size: float) -> None:
    d = np.random.default_rng(0).normal(size=(6, 4)) * 3
    pairs: list[tuple[Any, Any]] = [
        (differences.absolute, differences.sign),
        (lambda d: differences.huber(d, size), lambda d: differences.huber_slope(d, size)),
        (lambda d: differences.smooth_l1(d, size), lambda d: differences.smooth_l1_slope(d, size)),
    ]
    for loss, slope in pairs:
        report = check_backward(loss, lambda d_y, d, slope=slope: d_y * slope(d), {"d": d}, method="central")
        assert report.ok, report


def f64(*shape: int) -> np.ndarray:
    return np.zeros(shape)


def learned(*shape: int) -> Tensor:
    return Tensor(np.ones(shape), requires_grad=True)


LOGITS, TARGETS = f64(4, 3), np.zeros(4, int)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    *[
        case
        for loss in (*DIFFERENCES, BCE)
        for case in [
            (loss, (f64(3), f64(3, 1)), {}, ValueError, r"target must have the shape of input, \(3,\), got \(3, 1\)"),
            (
                loss,
                (f64(3), np.zeros(3, np.float32)),
                {},
                TypeError,
                "target must have the dtype of input, float64, got float32",
            ),
            (
                loss,
                (f64(3), np.zeros(3, int)),
                {},
                TypeError,
                "target must have the dtype of input, float64, got int64",
            ),
            (loss, ([1, 2], [1, 2]), {}, TypeError, "input must be float32 or float64, got int64"),
            (loss, (["a"], [1.0]), {}, TypeError, "input must be a Tensor or an array"),
            (
                loss,
                (f64(3), f64(3)),
                {"reduction": "avg"},
                ValueError,
                "reduction must be one of mean, sum, none, got 'avg'",
            ),
        ]
    ],
    ("huber_loss", (f64(3), f64(3)), {"delta": 0}, ValueError, "delta must be greater than 0, got 0.0"),
    ("huber_loss", (f64(3), f64(3)), {"delta": np.nan}, ValueError, "delta must be greater than 0, got nan"),
    ("smooth_l1_loss", (f64(3), f64(3)), {"beta": -1}, ValueError, "beta must be at least 0, got -1.0"),
    ("smooth_l1_loss", (f64(3), f64(3)), {"beta": np.nan}, ValueError, "beta must be at least 0, got nan"),
    *[
        case
        for loss in ("cross_entropy", "nll_loss")
        for case in [
            (
                loss,
                (f64(), TARGETS),
                {},
                ValueError,
                r"input must be \(K,\), \(N, K\) or \(N, K, d1, ...\) with K at least 1, got \(\)",
            ),
            (loss, (f64(4, 0), TARGETS), {}, ValueError, r"K at least 1, got \(4, 0\)"),
            (loss, (np.zeros((4, 3), int), TARGETS), {}, TypeError, "input must be float32 or float64, got int64"),
            (
                loss,
                (LOGITS, np.zeros(3, int)),
                {},
                ValueError,
                r"target must be class indices \(N,\) = \(4,\).*got \(3,\)",
            ),
            (loss, (f64(3), np.zeros(1, int)), {}, ValueError, r"target must be class indices \(\) = \(\).*got \(1,\)"),
            (loss, (LOGITS, f64(4)), {}, TypeError, "target must be class indices of an integer dtype, got float64"),
            (loss, (LOGITS, TARGETS > 0), {}, TypeError, "target must be class indices of an integer dtype, got bool"),
            (
                loss,
                (LOGITS, [0, 1, 3, 0]),
                {},
                IndexError,
                r"in \[0, K\) = \[0, 3\) or ignore_index = -100, got 3 at \[2\]",
            ),
            (loss, (LOGITS, [0, -1, 0, 0]), {}, IndexError, r"ignore_index = -100, got -1 at \[1\]"),
            (
                loss,
                (LOGITS, [0, -100, 0, 0]),
                {"ignore_index": -1},
                IndexError,
                r"ignore_index = -1, got -100 at \[1\]",
            ),
            (loss, (LOGITS, TARGETS, f64(4)), {}, ValueError, r"weight must be \(K,\) = \(3,\), got \(4,\)"),
            (
                loss,
                (LOGITS, TARGETS, np.ones(3, np.float32)),
                {},
                TypeError,
                "weight must have the dtype of input, float64, got float32",
            ),
            (
                loss,
                (LOGITS, TARGETS, learned(3)),
                {},
                RuntimeError,
                r"weight must not require a gradient.*weight.detach\(\)",
            ),
            (loss, (LOGITS, TARGETS, None, None), {}, TypeError, "ignore_index must be an int, got NoneType"),
            (
                loss,
                (LOGITS, TARGETS),
                {"reduction": None},
                ValueError,
                "reduction must be one of mean, sum, none, got None",
            ),
        ]
    ],
    ("nll_loss", (LOGITS, LOGITS), {}, ValueError, r"target must be class indices \(N,\) = \(4,\), got \(4, 3\)"),
    *[
        (
            "cross_entropy",
            (LOGITS, TARGETS),
            {"label_smoothing": s},
            ValueError,
            rf"label_smoothing must be in \[0, 1\], got {s}",
        )
        for s in (-0.1, 1.1, np.nan)
    ],
    (
        "cross_entropy",
        (LOGITS, np.zeros((4, 3), int)),
        {},
        TypeError,
        r"class probabilities, float64, got int64; class indices must be \(4,\)",
    ),
    ("cross_entropy", (f64(3), np.zeros(3, int)), {}, TypeError, r"class indices must be \(\)"),
    (
        "cross_entropy",
        (LOGITS, np.zeros((4, 3), np.float32)),
        {},
        TypeError,
        "target must have the dtype of input, float64, got float32",
    ),
    (
        "cross_entropy",
        (LOGITS, LOGITS),
        {"ignore_index": 0},
        ValueError,
        "ignore_index must be negative for class probabilities, which have none, got 0",
    ),
    *[
        case
        for name in ("weight", "pos_weight")
        for case in [
            (
                BCE,
                (LOGITS, LOGITS),
                {name: f64(4)},
                ValueError,
                rf"^{name} must broadcast to the shape of input, \(4, 3\), got \(4,\)",
            ),
            (BCE, (LOGITS, LOGITS), {name: f64(2, 4, 3)}, ValueError, rf"^{name} must broadcast.*got \(2, 4, 3\)"),
            (
                BCE,
                (LOGITS, LOGITS),
                {name: np.ones(3, np.float32)},
                TypeError,
                rf"^{name} must have the dtype of input, float64, got float32",
            ),
            (
                BCE,
                (LOGITS, LOGITS),
                {name: learned(3)},
                RuntimeError,
                rf"^{name} must not require a gradient.*{name}.detach\(\)",
            ),
        ]
    ],
]


@pytest.mark.parametrize(("loss", "arguments", "options", "kind", "message"), CALLS)
def test_bad_input_is_refused_by_message(loss: str, arguments: Any, options: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        getattr(numpy_rnn, loss)(*arguments, **options)


def test_a_weight_may_require_a_gradient_where_nothing_is_recorded() -> None:
    with numpy_rnn.no_grad():
        assert numpy_rnn.nll_loss(LOGITS, TARGETS, learned(3)).item() == 0


def test_integers_of_every_size_and_lists_are_class_indices() -> None:
    logits = np.random.default_rng(0).normal(size=(4, 3))
    expected = numpy_rnn.cross_entropy(logits, np.array([0, 2, 1, 1])).item()
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        indices = np.array([0, 2, 1, 1], dtype)
        assert numpy_rnn.cross_entropy(logits, indices).item() == expected
        assert numpy_rnn.cross_entropy(logits, Tensor(indices)).item() == expected
    assert numpy_rnn.cross_entropy(logits, [0, 2, 1, 1]).item() == expected


def test_names_order_and_defaults_are_those_of_torch() -> None:
    for loss in LOSSES:
        theirs = dict(inspect.signature(getattr(torch.nn.functional, loss)).parameters)
        ours = dict(inspect.signature(getattr(numpy_rnn, loss)).parameters)
        assert [name for name in theirs if name in ours] == list(ours)
        assert {n: p.default for n, p in ours.items()} == {n: theirs[n].default for n in ours}
        rest = set(theirs) - set(ours)
        assert rest <= {"size_average", "reduce", *(["weight"] if loss in DIFFERENCES else [])}


def test_numbers_that_float32_does_not_hold() -> None:
    z = np.array([[3e38, -3e38, 0.0]], np.float32)
    assert numpy_rnn.cross_entropy(z, np.array([1])).item() == np.inf
    assert numpy_rnn.cross_entropy(z, np.array([0])).item() == 0
    one, half = np.array([1.0], np.float32), np.array([0.5], np.float32)
    assert numpy_rnn.smooth_l1_loss(one, half, beta=1e-50).item() == 0.5


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_of_the_difference_losses(name: str, reduction: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [2 * rng.normal(size=(4, 3)) for _ in range(2)]
    weight = rng.uniform(0, 2, size=(4, 3))
    ours = [numpy_rnn.Tensor(a.copy(), requires_grad=True) for a in arrays]
    theirs = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    loss = getattr(numpy_rnn, name)(*ours, reduction=reduction, weight=weight)
    torch_loss = getattr(torch.nn.functional, name)(*theirs, reduction=reduction, weight=torch.from_numpy(weight))
    assert_parity(loss, torch_loss, "loss")
    upstream = rng.normal(size=loss.shape)
    loss.backward(upstream)
    torch_loss.backward(torch.from_numpy(upstream))
    for a, b in zip(ours, theirs, strict=True):
        assert_parity(a.grad, b.grad, "gradient")
    with pytest.raises(ValueError, match="weight must have the shape of input"):
        getattr(numpy_rnn, name)(*ours, weight=weight[0])
