"""Adamax (Kingma and Ba 2015, arXiv:1412.6980, section 7.1)."""

from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim.blocks import lerp
from numpy_rnn.optim.moments import MomentOptimizer
from numpy_rnn.optim.optimizer import Group, State
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class Adamax(MomentOptimizer):
    """Divide a moving average of the gradient by its largest size, slowly forgotten, as ``torch.optim.Adamax``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> Adamax([weight], lr=0.25).step()
    >>> weight.data.round(6)
    array([0.75])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter: the average is Adam's
    (9.16), the size is (9.25), with eps inside the maximum, and the step is (9.26).

    Raises ``ValueError`` for a setting out of range.

    Source: Kingma and Ba (2015), arXiv:1412.6980, section 7.1, where there is no eps.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults)

    def _start(self, p: Array, group: Group) -> State:
        return {"step": 0, "exp_avg": np.zeros_like(p), "exp_inf": np.zeros_like(p)}

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        (beta1, beta2), eps = group["betas"], group["eps"]
        rate = group["lr"] / self._filled(state, group)[0]
        for p, g, m, size, t in self._blocks(group, parameter, gradient, state["exp_avg"], state["exp_inf"]):
            lerp(m, g, 1 - beta1, t)  # (9.16)
            size *= beta2
            np.maximum(size, np.add(np.abs(g, t), eps, t), out=size)  # (9.25)
            p -= np.multiply(rate, np.divide(m, size, t), t)  # (9.26)
