"""Adagrad (Duchi, Hazan and Singer 2011)."""

from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim.optimizer import Group, Optimizer, State, check_at_least_zero
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class Adagrad(Optimizer):
    """Divide each gradient by the root of the sum of its squares so far, as ``torch.optim.Adagrad``.

    >>> weight = Tensor(np.array([1.0, 1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0, -0.001]))
    >>> Adagrad([weight], lr=0.25).step()
    >>> weight.data.round(6)
    array([0.75, 1.25])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter, at step t from 1: sum,
    which starts at ``initial_accumulator_value``, grows by g² (9.8); the parameter moves by -lr / (1 + (t - 1) *
    ``lr_decay``) * g / (√sum + eps) (9.9), with eps outside the root. As in PyTorch the state exists before the first
    step. (PyTorch ignores a group's own ``initial_accumulator_value``; here it counts.)

    Raises ``ValueError`` for a setting out of range.

    Source: Duchi, Hazan and Singer (2011), the diagonal case.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def add_param_group(self, group: Group) -> None:
        super().add_param_group(group)
        added = self.param_groups[-1]
        self.state |= {tensor: self._start(tensor.data, added) for tensor in added["params"]}

    def _check(self, settings: Group) -> None:
        super()._check(settings)
        for name in ("lr_decay", "initial_accumulator_value", "eps"):
            check_at_least_zero(name, settings[name])

    def _start(self, p: Array, group: Group) -> State:
        return {"step": 0, "sum": np.full_like(p, group["initial_accumulator_value"])}

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        state["step"] += 1
        rate, eps = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"]), group["eps"]
        for p, g, s, t in self._blocks(group, parameter, gradient, state["sum"]):
            s += np.multiply(g, g, t)  # (9.8)
            scale = np.add(np.sqrt(s, t), eps, t)
            p -= np.multiply(rate, np.divide(g, scale, t), t)  # (9.9)
