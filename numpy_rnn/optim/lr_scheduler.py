"""Learning-rate schedules: they write ``group["lr"]`` of an optimizer between its steps."""

from __future__ import annotations

import copy
import math
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat

from numpy_rnn.optim.optimizer import Optimizer, check_at_least_zero

# A state of PyTorch's has these as well; they tell nothing that lasts.
PASSING = {"_is_initial", "_get_lr_called_within_step"}


class LRScheduler:
    """Base of the schedules; a subclass gives ``get_lr``, the rates of all groups at step ``last_epoch``.

    To be called once after each optimizer step, or once an epoch: ``scheduler.step()``. The first call at once, when
    the schedule is made, is number 0; it leaves each group's rate in ``group["initial_lr"]``, if nothing is there yet.
    ``last_epoch`` other than -1 goes on from there, over groups that have their ``initial_lr``.

    Two schedules on one optimizer are chained: those that compute the next rate from the last multiply their effects.

    ``step`` warns (``UserWarning``) if its first call finds that the optimizer has made no step since the schedule was
    made: the first rate would never be used. PyTorch warns of the same.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ValueError(
                    f"last_epoch {last_epoch} resumes a schedule, so param_groups[{i}] must have initial_lr: load the "
                    "optimizer's state_dict first, or begin with last_epoch=-1"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._steps_before = optimizer._steps
        self._last_lr: list[float] = []
        self._advance()

    def get_lr(self) -> list[float]:
        """Return the rate of each group for step ``last_epoch``, computed from the rates in force."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """Return the rate of each group that the last call of ``step`` set."""
        return self._last_lr

    def step(self) -> None:
        """Go on by one step and set the rates."""
        if self._step_count == 1 and self.optimizer._steps == self._steps_before:
            warnings.warn(
                "scheduler.step() before the first optimizer.step(): the first learning rate was never used",
                UserWarning,
                stacklevel=2,
            )
        self._advance()

    def _advance(self) -> None:
        self._step_count += 1
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr
        self._last_lr = self._rates()

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of everything but the optimizer, under PyTorch's names."""
        return {k: copy.copy(v) for k, v in vars(self).items() if k not in ("optimizer", "_steps_before")}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a ``state_dict()`` of the same kind of schedule; the optimizer's own is loaded apart.

        Raises ``ValueError`` if the entries are not those of this kind; nothing is loaded then.
        """
        names = set(self.state_dict())
        if set(state_dict) - PASSING != names:
            raise ValueError(f"state_dict must have the entries of {type(self).__name__}: {', '.join(sorted(names))}")
        vars(self).update({name: copy.copy(state_dict[name]) for name in names})


class LambdaLR(LRScheduler):
    """Initial rate times a function of the number of steps (9.37), as ``torch.optim.lr_scheduler.LambdaLR``.

    >>> from numpy_rnn import SGD, Tensor
    >>> optimizer = SGD([Tensor(np.ones(1), requires_grad=True)], lr=0.5)
    >>> scheduler = LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]

    ``lr_lambda``: one function for all groups, or a list with one for each. A state dict holds of a callable object its
    attributes, and nothing of a plain function.

    Raises ``ValueError`` if there are more or fewer functions than groups.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = _one_each("lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [
            base * factor(self.last_epoch) for factor, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]  # (9.37)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of everything but the optimizer, with None for each plain function."""
        functions = [
            None if isinstance(f, types.FunctionType) else copy.copy(getattr(f, "__dict__", None))
            for f in self.lr_lambdas
        ]
        return super().state_dict() | {"lr_lambdas": functions}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a ``state_dict()``; each function stays, and a callable object takes its attributes."""
        functions = self.lr_lambdas
        super().load_state_dict(state_dict)
        self.lr_lambdas = functions
        for function, attributes in zip(functions, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                vars(function).update(attributes)


class StepLR(LRScheduler):
    """Rate times ``gamma`` after every ``step_size`` steps (9.33), as ``torch.optim.lr_scheduler.StepLR``.

    >>> from numpy_rnn import SGD, Tensor
    >>> optimizer = SGD([Tensor(np.ones(1), requires_grad=True)], lr=8.0)
    >>> scheduler, rates = StepLR(optimizer, step_size=2, gamma=0.5), []
    >>> for _ in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [8.0, 8.0, 4.0, 4.0, 2.0]

    Raises ``ValueError`` for a ``step_size`` below 1 or a negative ``gamma``.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if not step_size >= 1:
            raise ValueError(f"step_size must be at least 1, got {step_size}")
        check_at_least_zero("gamma", gamma)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [lr * self.gamma for lr in self._rates()]  # (9.33)


class ExponentialLR(LRScheduler):
    """Rate times ``gamma`` at every step (9.34), as ``torch.optim.lr_scheduler.ExponentialLR``.

    >>> from numpy_rnn import SGD, Tensor
    >>> optimizer = SGD([Tensor(np.ones(1), requires_grad=True)], lr=8.0)
    >>> scheduler = ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [4.0]

    Raises ``ValueError`` for a negative ``gamma``.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        check_at_least_zero("gamma", gamma)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._step_count == 1:
            return self._rates()
        return [lr * self.gamma for lr in self._rates()]  # (9.34)


class CosineAnnealingLR(LRScheduler):
    """Down to ``eta_min`` along half a cosine in ``T_max`` steps, as ``torch.optim.lr_scheduler.CosineAnnealingLR``.

    >>> from numpy_rnn import SGD, Tensor
    >>> optimizer = SGD([Tensor(np.ones(1), requires_grad=True)], lr=1.0)
    >>> scheduler = CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step(); scheduler.step()
    >>> np.round(scheduler.get_last_lr(), 6)
    array([0.5])

    Each rate is computed from the last one (9.36), so that the schedule can be chained with others; alone it follows
    the cosine (9.35), up again after ``T_max``.

    Raises ``ValueError`` for a ``T_max`` below 1.

    Source: Loshchilov and Hutter (2017), arXiv:1608.03983, without the restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if not T_max >= 1:
            raise ValueError(f"T_max must be at least 1, got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step, half, low = self.last_epoch, self.T_max, self.eta_min
        if self._step_count == 1:
            return self._rates()
        if (step - 1 - half) % (2 * half) == 0:  # the last rate was eta_min, and says nothing of where it came from
            pairs = zip(self._rates(), self.base_lrs, strict=True)
            return [lr + (base - low) * (1 - math.cos(math.pi / half)) / 2 for lr, base in pairs]
        ratio = (1 + math.cos(math.pi * step / half)) / (1 + math.cos(math.pi * (step - 1) / half))
        return [ratio * (lr - low) + low for lr in self._rates()]  # (9.36)


class ReduceLROnPlateau(LRScheduler):
    """Rate times ``factor`` when a measure has stopped improving, as ``torch.optim.lr_scheduler.ReduceLROnPlateau``.

    >>> from numpy_rnn import SGD, Tensor
    >>> optimizer = SGD([Tensor(np.ones(1), requires_grad=True)], lr=1.0)
    >>> scheduler, rates = ReduceLROnPlateau(optimizer, factor=0.5, patience=1), []
    >>> for loss in [3.0, 2.0, 2.0, 2.0, 1.0]:
    ...     scheduler.step(loss)
    ...     rates += scheduler.get_last_lr()
    >>> rates
    [1.0, 1.0, 1.0, 0.5, 0.5]

    ``step(metrics)`` takes the measure, a number. It is better (9.38) if it is below ("min") or above ("max") the best
    so far by ``threshold``, a fraction of the best ("rel") or a difference ("abs"). After more than ``patience`` calls
    in a row without a better one the rates are multiplied, but not below ``min_lr`` (a number, or a list with one for
    each group), nor at all where the change would be ``eps`` or less; then ``cooldown`` calls do not count as bad. A
    nan is never better.

    Raises ``ValueError`` for a ``factor`` not in [0, 1), an unknown ``mode`` or ``threshold_mode``, or a list
    ``min_lr`` of the wrong length.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if not 0 <= factor < 1:
            raise ValueError(f"factor must be in [0, 1), got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode must be min or max, got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold_mode must be rel or abs, got {threshold_mode!r}")
        self.optimizer = check_optimizer(optimizer)
        self.min_lrs = _one_each("min_lr", min_lr, optimizer)
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.mode_worse = self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self._last_lr = self._rates()

    def step(self, metrics: SupportsFloat) -> None:  # type: ignore[override]
        """Take the measure of one more epoch, and lower the rates if it is time."""
        current = float(metrics)
        self.last_epoch += 1
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _is_better(self, current: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "abs":
            return sign * current > sign * (self.best + sign * self.threshold)
        return sign * current > sign * self.best * (1 + sign * self.threshold)  # (9.38)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"min_lrs must be one for each of {len(groups)} groups, got {len(self.min_lrs)}")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            lower = max(group["lr"] * self.factor, low)
            if group["lr"] - lower > self.eps:
                group["lr"] = lower


def _one_each(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """Return a list with one value for each group, from such a list or from one value for all."""
    count = len(check_optimizer(optimizer).param_groups)
    if not isinstance(value, Sequence):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} must be one for all or a list of {count}, one for each group, got {len(value)}")
    return list(value)


def check_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer must be an Optimizer of numpy_rnn, got {type(optimizer).__name__}")
    return optimizer
