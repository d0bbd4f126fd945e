"""RAdam (Liu and others 2020, arXiv:1908.03265): Adam that waits until its second average can be trusted."""

import math
from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim.moments import MomentOptimizer
from numpy_rnn.optim.optimizer import Group, State
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class RAdam(MomentOptimizer):
    """Adam with its scale held back while it rests on few gradients, as ``torch.optim.RAdam``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> RAdam([weight], lr=0.25).step()
    >>> weight.data
    array([0.5])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter (or with the decay apart if
    ``decoupled_weight_decay``, as in ``AdamW``, which is a second write): how many gradients the second average rests
    on is (9.23); above 5 the step is Adam's times a factor that rises to 1, else the corrected average alone (9.24).
    eps is added to the root *before* it is corrected, unlike in ``Adam``.

    Raises ``ValueError`` for a setting out of range.

    Source: Liu and others (2020), arXiv:1908.03265, with the threshold 4 there.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        beta2, eps = group["betas"][1], group["eps"]
        filled1, filled2 = self._filled(state, group)
        rate, step = group["lr"] / filled1, state["step"]
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / filled2  # (9.23)
        trusted = length > 5
        if trusted:
            rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            rate *= math.sqrt(filled2) * math.sqrt(rectified)
        for p, g, m, v, t in self._blocks(group, parameter, gradient, state["exp_avg"], state["exp_avg_sq"]):
            self._moments(m, v, g, group, t)
            change = np.divide(m, np.add(np.sqrt(v, t), eps, t), t) if trusted else m
            p -= np.multiply(rate, change, t)  # (9.24)
