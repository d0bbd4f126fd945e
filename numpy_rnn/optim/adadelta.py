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

    def _update(self, p: Array, g: Array, state: State, group: Group) -> None:
        rho, eps = group["rho"], group["eps"]
        square_avg, acc_delta = state["square_avg"], state["acc_delta"]
        state["step"] += 1
        square_avg *= rho
        square_avg += (1 - rho) * g * g  # (9.13)
        delta = np.sqrt(acc_delta + eps) / np.sqrt(square_avg + eps) * g  # (9.14)
        acc_delta *= rho
        acc_delta += (1 - rho) * delta * delta  # (9.15)
        p += -group["lr"] * delta  # (9.14)
