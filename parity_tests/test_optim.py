"""Optimizers and clipping against torch: 200 steps in float64, state dicts, errors."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import numpy_rnn
from numpy_rnn import SGD, Adadelta, Parameter, Tensor, clip_grad_norm_
from parity_tests.helpers import assert_parity

SHAPES = [(3, 4), (4,), (2, 1, 5)]

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    *(
        ("SGD", {"lr": 0.05, "momentum": m, "dampening": d, "weight_decay": w, "nesterov": n, "maximize": x})
        for m, d, w, n, x in itertools.product((0, 0.9), (0, 0.3), (0, 0.1), (False, True), (False, True))
        if not n or (m and not d)
    ),
    ("Adadelta", {}),
    *(
        ("Adadelta", {"lr": lr, "rho": rho, "eps": eps, "weight_decay": w, "maximize": x})
        for lr, rho, eps, w, x in itertools.product((0.5,), (0.5, 0.95), (1e-6, 1e-3), (0, 0.1), (False, True))
    ),
]


def pair(name: str, settings: dict[str, Any], seed: int = 0) -> tuple[list[Parameter], list[Any], Any, Any]:
    rng = np.random.default_rng(seed)
    ours = [Parameter(rng.normal(size=shape)) for shape in SHAPES]
    theirs = [torch.nn.Parameter(torch.from_numpy(p.numpy().copy())) for p in ours]
    return (
        ours,
        theirs,
        getattr(numpy_rnn, name)(ours, **settings),
        getattr(torch.optim, name)(theirs, **settings),
    )


def step(ours: list[Any], theirs: list[Any], optimizers: tuple[Any, Any], rng: np.random.Generator, k: int) -> None:
    """One step on gradients that are normal, large, tiny, zero or missing in turn."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        scale = (1.0, 1e3, 1e-7, 0.0, None)[(k + i) % 5]
        gradient = None if scale is None else scale * rng.normal(size=a.shape)
        a.grad = None if gradient is None else Tensor(gradient.copy())
        b.grad = None if gradient is None else torch.from_numpy(gradient.copy())
    for optimizer in optimizers:
        optimizer.step()


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_two_hundred_steps(name: str, settings: dict[str, Any]) -> None:
    ours, theirs, optimizer, torch_optimizer = pair(name, settings)
    rng = np.random.default_rng(1)
    for k in range(200):
        step(ours, theirs, (optimizer, torch_optimizer), rng, k)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert_parity(a, b, f"parameter {i}")
        assert a.version == b._version + 1  # ours starts at 1, a plain torch Parameter at 0
        state = {key: value for key, value in torch_optimizer.state[b].items() if value is not None}
        assert set(optimizer.state[a]) == set(state)
        for key, value in state.items():
            assert_parity(np.float64(optimizer.state[a][key]), value.double(), key)


@pytest.mark.parametrize(("name", "settings"), [("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adadelta", {})])
def test_a_state_dict_goes_on_where_it_was(name: str, settings: dict[str, Any]) -> None:
    ours, theirs, optimizer, torch_optimizer = pair(name, settings)
    rng = np.random.default_rng(1)
    for k in range(5):
        step(ours, theirs, (optimizer, torch_optimizer), rng, k)
    saved = optimizer.state_dict()
    fresh = [Parameter(p.numpy().copy()) for p in ours]
    restored = getattr(numpy_rnn, name)(fresh)
    restored.load_state_dict(saved)
    for k in range(5, 10):
        step(ours, theirs, (optimizer, torch_optimizer), np.random.default_rng(k), k)
        step(fresh, theirs, (restored,), np.random.default_rng(k), k)
    for a, b in zip(ours, fresh, strict=True):
        assert_array_equal(a, b)
    again = optimizer.state_dict()
    assert not any(
        np.array_equal(again["state"][i][key], saved["state"][i][key]) for i in (0,) for key in saved["state"][0]
    )


def test_parameter_groups_have_settings_of_their_own() -> None:
    a, b = Parameter(np.ones(1)), Parameter(np.ones(1))
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    for p in (a, b):
        p.grad = Tensor(np.ones(1))
    optimizer.step()
    assert_allclose([a.item(), b.item()], [0.9, 0.5])
    optimizer.zero_grad()
    assert a.grad is None
    assert b.grad is None


def test_a_step_writes_in_place_and_keeps_the_gradient() -> None:
    p = Parameter(np.ones(2))
    memory, gradient = p.data, np.full(2, 2.0)
    p.grad = Tensor(gradient)
    for optimizer in (SGD([p], lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True), Adadelta([p], weight_decay=0.1)):
        optimizer.step()
        optimizer.step()
    assert p.data is memory
    assert_array_equal(gradient, [2, 2])
    assert p.version == 5


CLIPS = {
    "above": ([[3.0], [4.0]], 1.0),
    "below": ([[3.0], [4.0]], 10.0),
    "exactly": ([[3.0], [4.0]], 5.0),
    "zero": ([[0.0], [0.0]], 1.0),
    "to zero": ([[3.0], [4.0]], 0.0),
    "unbounded": ([[3.0], [4.0]], np.inf),
    "infinite": ([[np.inf, 1.0], [4.0]], 1.0),
    "nan": ([[np.nan, 1.0], [4.0]], 1.0),
    "missing": ([None, [4.0]], 1.0),
    "all missing": ([None, None], 1.0),
}


@pytest.mark.parametrize("case", CLIPS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_clipping(case: str, dtype: str) -> None:
    gradients, max_norm = CLIPS[case]
    ours, theirs = [], []
    for gradient in gradients:
        array = np.zeros(1) if gradient is None else np.array(gradient, dtype)
        ours.append(Tensor(np.zeros_like(array)))
        theirs.append(torch.from_numpy(np.zeros_like(array)))
        if gradient is not None:
            ours[-1].grad, theirs[-1].grad = Tensor(array.copy()), torch.from_numpy(array.copy())
    with np.errstate(all="raise"):
        norm = clip_grad_norm_(iter(ours), max_norm)
    assert_allclose(norm, float(torch.nn.utils.clip_grad_norm_(theirs, max_norm)), rtol=1e-6)
    for a, b in zip(ours, theirs, strict=True):
        if b.grad is not None:
            assert_allclose(a.grad, b.grad, rtol=1e-6 if dtype == "float32" else 1e-15)
            assert (a.grad.dtype, a.grad.version) == (np.dtype(dtype), 1)


def test_clipping_refuses_what_is_not_finite_and_changes_nothing() -> None:
    p = Parameter(np.ones(2))
    p.grad = Tensor(np.array([np.nan, 1.0]))
    with pytest.raises(RuntimeError, match="total norm of the gradients is nan"):
        clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert p.grad.version == 0
    assert p.grad.numpy()[1] == 1


def p() -> Parameter:
    return Parameter(np.ones(2))


def with_gradient(gradient: np.ndarray) -> SGD:
    parameter = p()
    parameter.grad = Tensor(gradient)
    return SGD([parameter])


TWICE = p()
CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: SGD([p()], lr=-1), ValueError, "lr must be at least 0, got -1"),
    (lambda: SGD([p()], lr=np.nan), ValueError, "lr must be at least 0, got nan"),
    (lambda: SGD([p()], momentum=-1), ValueError, "momentum must be at least 0, got -1"),
    (lambda: SGD([p()], weight_decay=-1), ValueError, "weight_decay must be at least 0, got -1"),
    (lambda: SGD([p()], nesterov=True), ValueError, "nesterov needs momentum above 0 and dampening 0, got momentum 0"),
    (lambda: SGD([p()], momentum=0.9, dampening=0.1, nesterov=True), ValueError, "nesterov needs"),
    (lambda: Adadelta([p()], lr=-1), ValueError, "lr must be at least 0"),
    (lambda: Adadelta([p()], rho=2), ValueError, r"rho must be in \[0, 1\], got 2"),
    (lambda: Adadelta([p()], eps=-1), ValueError, "eps must be at least 0, got -1"),
    (lambda: SGD([]), ValueError, "params must hold at least one Tensor, got none"),
    (lambda: SGD(p()), TypeError, "params must be an iterable of Tensors or dicts, got one Tensor"),
    (lambda: SGD([np.ones(2)]), TypeError, "params must hold Tensors, got ndarray"),
    (lambda: SGD([p() + 1.0]), ValueError, "params must hold leaves"),
    (lambda: SGD([TWICE, TWICE]), ValueError, "each parameter once, got one twice"),
    (lambda: SGD([{"params": [p()], "rho": 1}]), ValueError, "unknown settings of SGD: rho"),
    (lambda: with_gradient(np.ones(3)).step(), ValueError, r"grad must be \(2,\) float64 .* got \(3,\) float64"),
    (lambda: with_gradient(np.ones(2, np.float32)).step(), ValueError, r"got \(2,\) float32"),
    (lambda: clip_grad_norm_([p()], -1.0), ValueError, "max_norm must be at least 0, got -1.0"),
    (lambda: clip_grad_norm_([p()], np.nan), ValueError, "max_norm must be at least 0, got nan"),
    (
        lambda: SGD([p()]).load_state_dict(SGD([p(), p()]).state_dict()),
        ValueError,
        r"parameter groups of sizes \[1\], got \[2\]",
    ),
    (lambda: SGD([p()]).load_state_dict(Adadelta([p()]).state_dict()), ValueError, "must have the settings of SGD"),
    (
        lambda: SGD([p()]).load_state_dict({**SGD([p()]).state_dict(), "state": {3: {}}}),
        ValueError,
        "number its parameters 0 to 0, got 3",
    ),
    (
        lambda: SGD([p()]).load_state_dict(
            {**SGD([p()]).state_dict(), "state": {0: {"momentum_buffer": np.ones((2, 2))}}}
        ),
        ValueError,
        r"momentum_buffer of parameter 0 must be \(2,\), got \(2, 2\)",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_bad_settings_by_message(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_one_bad_gradient_stops_the_step_before_anything_is_written() -> None:
    a, b = p(), p()
    a.grad, b.grad = Tensor(np.ones(2)), Tensor(np.ones(3))
    with pytest.raises(ValueError, match="grad must be"):
        SGD([a, b]).step()
    assert_array_equal(a, [1, 1])
    assert a.version == 1
