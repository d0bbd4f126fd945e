"""Adam (Kingma and Ba 2015, arXiv:1412.6980) and AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101)."""

import math
from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim.moments import MomentOptimizer
from numpy_rnn.optim.optimizer import Group, State
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class Adam(MomentOptimizer):
    """Divide a moving average of the gradient by the root of one of its square, as ``torch.optim.Adam``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> Adam([weight], lr=0.25).step()
    >>> weight.data.round(6)
    array([0.75])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter: the two averages, with the
    factors ``betas``, are (9.16) and (9.17); both start at zero and are divided by what they have been filled up to
    (9.18) before the step (9.19), with eps outside the root and after that division. ``amsgrad``: the largest
    exp_avg_sq so far stands in for the current one (9.20). ``decoupled_weight_decay``: see ``AdamW``.

    Raises ``ValueError`` for a setting out of range.

    Source: Kingma and Ba (2015), arXiv:1412.6980; Reddi, Kale and Kumar (2018), arXiv:1904.09237, for amsgrad.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _start(self, p: Array, group: Group) -> State:
        largest = {"max_exp_avg_sq": np.zeros_like(p)} if group["amsgrad"] else {}
        return super()._start(p, group) | largest

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        filled1, filled2, eps = *self._filled(state, group), group["eps"]
        rate, correction = group["lr"] / filled1, 1 / math.sqrt(filled2)
        arrays = state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq")
        for p, g, m, v, largest, t in self._blocks(group, parameter, gradient, *arrays):
            self._moments(m, v, g, group, t)
            if group["amsgrad"]:
                v = np.maximum(largest, v, out=largest)  # (9.20)
            scale = np.add(np.multiply(correction, np.sqrt(v, t), t), eps, t)
            p -= np.multiply(rate, np.divide(m, scale, t), t)  # (9.19)


class AdamW(Adam):
    """Adam with the weight decay kept out of the averages, as ``torch.optim.AdamW``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([0.0]))
    >>> AdamW([weight], lr=0.25, weight_decay=0.5).step()
    >>> weight.data
    array([0.875])

    The parameter is multiplied by 1 - lr * ``weight_decay`` (9.29), then Adam's step follows, on the gradient alone.
    These are two writes, so the version goes up by two (by one without decay). Everything else as ``Adam``.

    Raises ``ValueError`` for a setting out of range.

    Source: Loshchilov and Hutter (2019), arXiv:1711.05101.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True)
