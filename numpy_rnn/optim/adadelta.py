"""Adadelta (Zeiler 2012, arXiv:1212.5701)."""

from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim.optimizer import Group, Optimizer, State, check_at_least_zero
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class Adadelta(Optimizer):
    """Scale each gradient by (typical step) / (typical gradient), as ``torch.optim.Adadelta``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> Adadelta([weight]).step()
    >>> weight.data.round(6)
    array([0.996838])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter:
    square_avg = rho * square_avg + (1 - rho) * g² (9.13); delta = √(acc_delta + eps) / √(square_avg + eps) * g (9.14),
    with eps inside both roots; acc_delta = rho * acc_delta + (1 - rho) * delta² (9.15), without lr; the parameter moves
    by -lr * delta.

    Raises ``ValueError`` for a setting out of range.

    Source: Zeiler (2012), arXiv:1212.5701, whose method has no lr: it is 1.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults)

    def _check(self, settings: Group) -> None:
        super()._check(settings)
        check_at_least_zero("eps", settings["eps"])
        if not 0 <= settings["rho"] <= 1:
            raise ValueError(f"rho must be in [0, 1], got {settings['rho']}")

    def _start(self, p: Array, group: Group) -> State:
        return {"step": 0, "square_avg": np.zeros_like(p), "acc_delta": np.zeros_like(p)}

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        lr, rho, eps = group["lr"], group["rho"], group["eps"]
        state["step"] += 1
        for p, g, v, w, t, u in self._blocks(
            group, parameter, gradient, state["square_avg"], state["acc_delta"], scratch=2
        ):
            v *= rho
            v += np.multiply(1 - rho, np.multiply(g, g, t), t)  # (9.13)
            step, scale = np.sqrt(np.add(w, eps, u), u), np.sqrt(np.add(v, eps, t), t)
            delta = np.multiply(np.divide(step, scale, u), g, u)  # (9.14)
            w *= rho
            w += np.multiply(1 - rho, np.multiply(delta, delta, t), t)  # (9.15)
            p -= np.multiply(lr, delta, t)  # (9.14)
