"""Learning-rate schedules against torch: the same rates to the last bit, the same weights, state dicts, errors."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import numpy_rnn
from numpy_rnn import SGD, Parameter, Tensor, lr_scheduler
from parity_tests.helpers import assert_parity

THEIRS = torch.optim.lr_scheduler


class Warmup:
    """A factor that is an object: its attributes go into the state dict."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __call__(self, step: int) -> float:
        return min(1.0, (step + 1) / self.steps)


def run(
    module: Any, optimizer_name: str, parameters: list[Any], to_gradient: Callable[[np.ndarray], Any], make: Any
) -> list[Any]:
    """200 steps of two groups under the schedules that ``make(schedules, optimizer)`` returns; return the rates."""
    numpy = module is numpy_rnn
    a, b = parameters
    optimizer = getattr(module if numpy else torch.optim, optimizer_name)(
        [{"params": [a]}, {"params": [b], "lr": 0.03}], lr=0.1
    )
    schedulers = make(lr_scheduler if numpy else THEIRS, optimizer)
    rng, rates = np.random.default_rng(1), []
    for k in range(200):
        for p in parameters:
            p.grad = to_gradient(rng.normal(size=tuple(p.shape)))
        optimizer.step()
        noisy = 1 + math.exp(-k / 30) + 0.2 * rng.normal()
        for scheduler in schedulers:
            if type(scheduler).__name__ == "ReduceLROnPlateau":
                scheduler.step(np.nan if k == 17 else noisy)
            else:
                scheduler.step()
        rates.append(
            [scheduler.get_last_lr() for scheduler in schedulers] + [[g["lr"] for g in optimizer.param_groups]]
        )
    return [rates, optimizer, schedulers]


SCHEDULES: dict[str, Callable[[Any, Any], list[Any]]] = {
    "step": lambda s, o: [s.StepLR(o, 7)],
    "step, gamma": lambda s, o: [s.StepLR(o, step_size=30, gamma=0.5)],
    "exponential": lambda s, o: [s.ExponentialLR(o, 0.97)],
    "cosine": lambda s, o: [s.CosineAnnealingLR(o, 200)],
    "cosine, up and down": lambda s, o: [s.CosineAnnealingLR(o, T_max=13, eta_min=0.004)],
    "cosine, one step": lambda s, o: [s.CosineAnnealingLR(o, 1)],
    "lambda": lambda s, o: [s.LambdaLR(o, lambda k: 0.95**k)],
    "lambda, two": lambda s, o: [s.LambdaLR(o, [lambda k: 1 / (1 + k), Warmup(20)])],
    "plateau": lambda s, o: [s.ReduceLROnPlateau(o, patience=3)],
    "plateau, abs": lambda s, o: [s.ReduceLROnPlateau(o, "min", 0.5, 4, threshold=0.05, threshold_mode="abs")],
    "plateau, max": lambda s, o: [s.ReduceLROnPlateau(o, "max", 0.5, 4, cooldown=5)],
    "plateau, max abs": lambda s, o: [
        s.ReduceLROnPlateau(o, "max", 0.7, 2, threshold=0.1, threshold_mode="abs", min_lr=[1e-3, 2e-3])
    ],
    "plateau, min_lr": lambda s, o: [s.ReduceLROnPlateau(o, factor=0.3, patience=2, cooldown=3, min_lr=1e-3, eps=1e-4)],
    "plateau, no patience": lambda s, o: [s.ReduceLROnPlateau(o, factor=0.9, patience=0, threshold=0.3)],
    "chained": lambda s, o: [s.ExponentialLR(o, 0.99), s.StepLR(o, 40, 0.5)],
    "chained, cosine": lambda s, o: [s.CosineAnnealingLR(o, 25, 1e-4), s.ExponentialLR(o, 0.995)],
    "chained, plateau": lambda s, o: [s.ExponentialLR(o, 0.99), s.ReduceLROnPlateau(o, factor=0.8, patience=5)],
}


def pairs() -> tuple[list[Parameter], list[Any]]:
    rng = np.random.default_rng(0)
    ours = [Parameter(rng.normal(size=shape)) for shape in [(3, 2), (4,)]]
    return ours, [torch.nn.Parameter(torch.from_numpy(p.numpy().copy())) for p in ours]


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_hundred_steps(name: str, schedule: str) -> None:
    ours, theirs = pairs()
    rates, optimizer, _ = run(numpy_rnn, name, ours, Tensor, SCHEDULES[schedule])
    torch_rates, torch_optimizer, _ = run(torch, name, theirs, torch.from_numpy, SCHEDULES[schedule])
    assert rates == torch_rates  # to the last bit
    assert len({rate[-1][0] for rate in rates}) > (2 if schedule != "cosine, one step" else 1)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert_parity(a, b, f"parameter {i}")
    for mine, other in zip(optimizer.param_groups, torch_optimizer.param_groups, strict=True):
        assert ("initial_lr" in mine) == ("initial_lr" in other)
        assert mine.get("initial_lr") == other.get("initial_lr")


def comparable(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key not in lr_scheduler.PASSING}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_state_dicts_are_torchs_and_go_on(schedule: str) -> None:
    """Half of the run, then a fresh optimizer and schedule that load the state, ours or torch's."""
    ours, theirs = pairs()
    _, optimizer, schedulers = run(numpy_rnn, "SGD", ours, Tensor, SCHEDULES[schedule])
    _, _, torch_schedulers = run(torch, "SGD", theirs, torch.from_numpy, SCHEDULES[schedule])
    for mine, other in zip(schedulers, torch_schedulers, strict=True):
        np.testing.assert_equal(comparable(mine.state_dict()), comparable(other.state_dict()))

    saved = [scheduler.state_dict() for scheduler in schedulers]
    before = copy.deepcopy(saved)
    resumed = []
    for states in (saved, [scheduler.state_dict() for scheduler in torch_schedulers]):
        a, b = (Parameter(p.numpy().copy()) for p in ours)
        fresh = SGD([{"params": [a]}, {"params": [b], "lr": 0.03}], lr=0.1)
        again = SCHEDULES[schedule](lr_scheduler, fresh)
        for scheduler, state in zip(again, states, strict=True):
            scheduler.load_state_dict(state)
        fresh.load_state_dict(optimizer.state_dict())
        resumed.append((fresh, again))
    for k in range(30):
        for group in (schedulers, *(again for _, again in resumed)):
            for scheduler in group:
                scheduler.step(*([1.5 + k % 3] if type(scheduler).__name__ == "ReduceLROnPlateau" else []))
        for fresh, again in resumed:
            assert [s.get_last_lr() for s in again] == [s.get_last_lr() for s in schedulers]
            assert [g["lr"] for g in fresh.param_groups] == [g["lr"] for g in optimizer.param_groups]
    np.testing.assert_equal(saved, before)


def test_an_object_takes_back_its_attributes() -> None:
    first, second = (lr_scheduler.LambdaLR(fresh(), Warmup(steps)) for steps in (5, 9))
    second.load_state_dict(first.state_dict())
    assert second.lr_lambdas[0].steps == 5
    assert lr_scheduler.LambdaLR(fresh(), lambda k: 1.0).state_dict()["lr_lambdas"] == [None]
    assert lr_scheduler.LambdaLR(fresh(), math.cos).state_dict()["lr_lambdas"] == [None]


@pytest.mark.parametrize(
    "make",
    [
        lambda s, o: s.StepLR(o, 2, 0.5, last_epoch=5),
        lambda s, o: s.StepLR(o, 4, 0.5, last_epoch=5),
        lambda s, o: s.ExponentialLR(o, 0.9, last_epoch=5),
        lambda s, o: s.CosineAnnealingLR(o, 10, last_epoch=5),
        lambda s, o: s.LambdaLR(o, lambda k: 0.9**k, last_epoch=5),
    ],
)
def test_a_schedule_can_begin_in_the_middle(make: Any) -> None:
    ours, theirs = pairs()
    settings = {"lr": 0.05, "initial_lr": 0.1}
    optimizers = numpy_rnn.SGD([{"params": ours, **settings}]), torch.optim.SGD([{"params": theirs, **settings}])
    schedulers = make(lr_scheduler, optimizers[0]), make(THEIRS, optimizers[1])
    for optimizer in optimizers:
        optimizer.step()
    for _ in range(20):
        assert schedulers[0].get_last_lr() == schedulers[1].get_last_lr()
        for scheduler in schedulers:
            scheduler.step()


def test_a_schedule_before_the_first_step_warns_in_both() -> None:
    ours, theirs = pairs()
    optimizers = numpy_rnn.SGD(ours, lr=0.1), torch.optim.SGD(theirs, lr=0.1)
    for optimizer, schedules in zip(optimizers, (lr_scheduler, THEIRS), strict=True):
        scheduler = schedules.ExponentialLR(optimizer, 0.9)
        with pytest.warns(UserWarning, match=r"before .*optimizer.step\(\)"):
            scheduler.step()
        scheduler.step()  # only once
        assert scheduler.get_last_lr() == [0.1 * 0.9 * 0.9]


@pytest.mark.parametrize(("eps", "rate"), [(0.25, 0.5), (0.25 - 2**-54, 0.25)])
def test_a_change_of_just_eps_is_not_made(eps: float, rate: float) -> None:
    ours, theirs = fresh(), torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    for schedules, optimizer in ((lr_scheduler, ours), (THEIRS, theirs)):
        optimizer.param_groups[0]["lr"] = 0.5
        scheduler = schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, eps=eps)
        scheduler.step(1.0)
        scheduler.step(1.0)
        assert optimizer.param_groups[0]["lr"] == rate


def test_a_group_that_comes_later_has_the_least_rate_of_all() -> None:
    optimizer = fresh()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.05)
    optimizer.add_param_group({"params": Parameter(np.ones(1)), "lr": 0.2})
    for _ in range(3):
        scheduler.step(1.0)
    assert scheduler.get_last_lr() == [0.05, 0.05]
    listed = lr_scheduler.ReduceLROnPlateau(fresh(), patience=0, min_lr=[0.05])
    listed.optimizer.add_param_group({"params": Parameter(np.ones(1))})
    listed.step(1.0)
    with pytest.raises(RuntimeError, match="min_lrs must be one for each of 2 groups, got 1"):
        listed.step(1.0)


def fresh() -> SGD:
    return SGD([Parameter(np.ones(1))], lr=0.1)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lr_scheduler.StepLR(fresh(), 0), ValueError, "step_size must be at least 1, got 0"),
    (lambda: lr_scheduler.StepLR(fresh(), 3, -1), ValueError, "gamma must be at least 0, got -1"),
    (lambda: lr_scheduler.ExponentialLR(fresh(), np.nan), ValueError, "gamma must be at least 0, got nan"),
    (lambda: lr_scheduler.CosineAnnealingLR(fresh(), 0), ValueError, "T_max must be at least 1, got 0"),
    (lambda: lr_scheduler.LambdaLR(fresh(), [abs, abs]), ValueError, "lr_lambda must be one for all or a list of 1"),
    (lambda: lr_scheduler.ReduceLROnPlateau(fresh(), factor=1.0), ValueError, r"factor must be in \[0, 1\), got 1.0"),
    (lambda: lr_scheduler.ReduceLROnPlateau(fresh(), "least"), ValueError, "mode must be min or max, got 'least'"),
    (
        lambda: lr_scheduler.ReduceLROnPlateau(fresh(), threshold_mode="x"),
        ValueError,
        "threshold_mode must be rel or abs",
    ),
    (
        lambda: lr_scheduler.ReduceLROnPlateau(fresh(), min_lr=[0, 0]),
        ValueError,
        "min_lr must be one for all or a list",
    ),
    (lambda: lr_scheduler.ExponentialLR([1], 0.9), TypeError, "optimizer must be an Optimizer of numpy_rnn, got list"),
    (lambda: lr_scheduler.ExponentialLR(fresh(), 0.9, 4), ValueError, r"param_groups\[0\] must have initial_lr"),
    (
        lambda: lr_scheduler.ExponentialLR(fresh(), 0.9).load_state_dict(lr_scheduler.StepLR(fresh(), 3).state_dict()),
        ValueError,
        "state_dict must have the entries of ExponentialLR",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors_by_message(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
