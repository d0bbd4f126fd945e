"""The checks of losses, optimizers, clipping and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

import numpy_rnn
from numpy_rnn import Tensor
from numpy_rnn.optim import clip
from parity_tests.mutations.judges.judge import LOOSE, TOLERANCE, Events, array_of

BCE = "binary_cross_entropy_with_logits"
REDUCTIONS = ("none", "mean", "sum")
IGNORED = -100
Options = tuple[tuple[str, Any], ...]  # a dict that can be compared and remembered


@dataclass(frozen=True)
class Loss:
    """A loss with each of its options, from random upstream gradients, reduced in each way.

    Among the ``N`` rows of ``K`` classes are targets that are ignored, and logits whose exponentials overflow.
    """

    name: str
    N: int = 6
    K: int = 4
    upstream: str = "random"
    weights: str = "random"
    tolerance: float = TOLERANCE

    def weakened(self, weak_test: str) -> Loss | None:
        changes: dict[str, dict[str, Any]] = {
            "ones": {"upstream": "ones"},
            "equal": {"weights": "equal"},
            "I=H=B": {"N": 4, "K": 4},
            "B=1": {"N": 1},
            "1e-2": {"tolerance": LOOSE},
        }
        changes["all"] = {k: v for change in changes.values() for k, v in change.items()} | {"K": 1}
        return replace(self, **changes[weak_test]) if weak_test in changes else None

    def variants(self) -> list[tuple[dict[str, np.ndarray], dict[str, Any]]]:
        """Arguments that are arrays, and options."""
        rng = np.random.default_rng(0)
        N, K = self.N, self.K
        input, target = 2 * rng.normal(size=(N, K)), rng.normal(size=(N, K))
        weight = np.ones(K) if self.weights == "equal" else rng.uniform(0.5, 2, K)
        if self.name in ("mse_loss", "l1_loss"):
            target[0] = input[0]  # there the slope of |d| is 0
            each = np.ones((N, K)) if self.weights == "equal" else rng.uniform(0.5, 2, (N, K))
            return [
                ({"input": input, "target": target}, {}),
                ({"input": input, "target": target, "weight": each}, {}),
            ]
        if self.name in ("huber_loss", "smooth_l1_loss"):
            bend = "delta" if self.name == "huber_loss" else "beta"
            return [({"input": input, "target": target}, {bend: 0.7})]
        if self.name == BCE:
            chance = rng.uniform(size=(N, K))
            input[0, 0] = 800.0
            return [
                ({"input": input, "target": chance}, {}),
                ({"input": input, "target": chance, "weight": weight, "pos_weight": weight[::-1].copy()}, {}),
            ]
        many = rng.normal(size=(N, K, 3))
        index, indices = rng.integers(0, K, N), rng.integers(0, K, (N, 3))
        if N > 1:
            index[1], indices[1, 0] = IGNORED, IGNORED
        plain = [
            ({"input": input, "target": index}, {}),
            ({"input": many, "target": indices, "weight": weight}, {}),
        ]
        if self.name == "nll_loss":
            return plain
        far = input.copy()
        far[-1] = 800 + np.arange(K)
        chances = rng.dirichlet(np.ones(K), N)
        smooth = {"label_smoothing": 0.2}
        return [
            *plain,
            ({"input": far, "target": index}, {}),
            ({"input": many, "target": indices, "weight": weight}, smooth),
            ({"input": input, "target": chances, "weight": weight}, smooth),
        ]

    def run(self, ours: bool) -> Events:
        rng = np.random.default_rng(1)
        library: Any = numpy_rnn if ours else torch.nn.functional
        for i, (arrays, options) in enumerate(self.variants()):
            for reduction in REDUCTIONS:
                tensors = {k: Tensor(a.copy()) if ours else torch.from_numpy(a.copy()) for k, a in arrays.items()}
                tensors["input"].requires_grad = True
                loss = getattr(library, self.name)(**tensors, **options, reduction=reduction)
                shape = tuple(loss.shape)
                d = np.ones(shape) if self.upstream == "ones" else np.asarray(rng.normal(size=shape))
                loss.backward(Tensor(d) if ours else torch.from_numpy(d))
                yield f"{i} {reduction}", array_of(loss)
                yield f"{i} {reduction}: d", array_of(tensors["input"].grad)

    def expected(self) -> dict[str, Any]:
        return expected(self)

    def found(self) -> Events:
        return self.run(ours=True)

    def falls(self) -> bool:
        """The logits or outputs themselves go down the mean's gradient."""
        for arrays, options in self.variants():
            tensors = {k: Tensor(a.copy()) for k, a in arrays.items()}
            tensors["input"].requires_grad = True
            optimizer, losses = numpy_rnn.SGD([tensors["input"]], lr=0.5), []
            for _ in range(10):
                optimizer.zero_grad()
                loss = getattr(numpy_rnn, self.name)(**tensors, **options)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            if not losses[-1] < losses[0]:
                return False
        return True


@dataclass(frozen=True)
class Descent:
    """An optimizer with ``settings`` on gradients that are normal, large, tiny or zero in turn.

    With ``clip`` they are clipped: by the norms 2, 1 and the largest, by value, above and below the bound. With
    ``schedule`` the rate follows one, of these settings.
    """

    optimizer: str = "SGD"
    settings: Options = ()
    schedule: str = ""
    schedule_settings: Options = ()
    clip: bool = False
    steps: int = 60
    tensors: int = 3
    gradients: str = "random"
    compared: str = "all"
    tolerance: float = TOLERANCE

    def weakened(self, weak_test: str) -> Descent | None:
        changes: dict[str, dict[str, Any]] = {
            "ones": {"gradients": "ones"},
            "1 layer": {"tensors": 1},
            "1 call": {"steps": 1},
            "weights": {"compared": "weights"},
            "1e-2": {"tolerance": LOOSE},
        }
        changes["all"] = {k: v for change in changes.values() for k, v in change.items()}
        return replace(self, **changes[weak_test]) if weak_test in changes else None

    def run(self, ours: bool) -> Events:
        rng = np.random.default_rng(0)
        starts = [rng.normal(size=shape) for shape in ((3, 4), (4,), (2, 1, 5))[: self.tensors]]
        library: Any = numpy_rnn if ours else torch.optim
        clipping: Any = clip if ours else torch.nn.utils
        make = numpy_rnn.Parameter if ours else lambda a: torch.nn.Parameter(torch.from_numpy(a))
        parameters: list[Any] = [make(a.copy()) for a in starts]
        optimizer = getattr(library, self.optimizer)(parameters, **dict(self.settings))
        schedule = None
        if self.schedule:
            schedule = getattr(library.lr_scheduler, self.schedule)(optimizer, **dict(self.schedule_settings))
        for k in range(self.steps):
            for i, parameter in enumerate(parameters):
                scale = (1.0, 1e3, 1e-7, 0.0)[(k + i) % 4]
                gradient = scale * rng.normal(size=parameter.shape)
                gradient = np.ones(parameter.shape) if self.gradients == "ones" else gradient
                parameter.grad = Tensor(gradient) if ours else torch.from_numpy(gradient)
            if self.clip and k % 4 == 3:
                clipping.clip_grad_value_(parameters, 0.5)
            elif self.clip:
                bound = 1e4 if k % 8 == 4 else 1.0  # sometimes far above the norm
                yield f"norm {k}", float(clipping.clip_grad_norm_(parameters, bound, (2.0, 1.0, float("inf"))[k % 4]))
            if self.clip:
                yield from [(f"gradient {i} at {k}", array_of(p.grad)) for i, p in enumerate(parameters)]
            optimizer.step()
            if schedule is not None:
                schedule.step(*([rng.uniform(0.5, 1) + 1 / (1 + k)] if self.schedule == "ReduceLROnPlateau" else []))
                yield f"rate {k}", float(optimizer.param_groups[0]["lr"])
            yield from [(f"parameter {i} at {k}", array_of(p)) for i, p in enumerate(parameters)]
        if self.compared == "all":
            for i, parameter in enumerate(parameters):
                for key, value in sorted(optimizer.state[parameter].items()) if parameter in optimizer.state else []:
                    if value is not None and np.ndim(value):
                        yield f"{key} of parameter {i}", array_of(value)

    def expected(self) -> dict[str, Any]:
        return expected(self)

    def found(self) -> Events:
        return self.run(ours=True)

    def falls(self) -> bool:
        """Twenty steps towards a target; with maximize from the negative of the distance."""
        rng, settings = np.random.default_rng(3), dict(self.settings)
        sign = -1 if settings.get("maximize") else 1
        weight = numpy_rnn.Parameter(3 + rng.uniform(size=(4, 3)))
        optimizer = getattr(numpy_rnn, self.optimizer)([weight], **settings)
        schedule: Any = None
        if self.schedule:
            schedule = getattr(numpy_rnn.lr_scheduler, self.schedule)(optimizer, **dict(self.schedule_settings))
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = numpy_rnn.mse_loss(weight, np.zeros((4, 3)))
            loss.backward(np.array(float(sign)))
            if self.clip:
                clip.clip_grad_norm_([weight], 1.0)
            optimizer.step()
            if schedule is not None:
                schedule.step(*([loss.item()] if self.schedule == "ReduceLROnPlateau" else []))
            losses.append(loss.item())
        return losses[-1] < losses[0]


@cache
def expected(case: Any) -> Mapping[str, Any]:
    """PyTorch's numbers."""
    return dict(case.run(ours=False))
