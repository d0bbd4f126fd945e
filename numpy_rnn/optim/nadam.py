"""NAdam (Dozat 2016): Adam with Nesterov's look ahead."""

import math
from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim import optimizer
from numpy_rnn.optim.moments import MomentOptimizer
from numpy_rnn.optim.optimizer import Group, State, check_at_least_zero
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class NAdam(MomentOptimizer):
    """Adam whose average of the gradient looks one step ahead, as ``torch.optim.NAdam``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> NAdam([weight], lr=0.25).step()
    >>> weight.data.round(6)
    array([0.735887])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter (or with the decay apart if
    ``decoupled_weight_decay``, as in ``AdamW``): the momentum of step t rises with ``momentum_decay`` (9.21), and the
    step is (9.22), made in two writes; so the version goes up by two, and by three with a decoupled decay.

    The product of the momenta is one number, which PyTorch keeps in float32 for parameters of any dtype (unless its
    default dtype is float64), and so does this.

    Raises ``ValueError`` for a setting out of range.

    Source: Dozat (2016), Incorporating Nesterov momentum into Adam.
    """

    _writes = 2

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, settings: Group) -> None:
        super()._check(settings)
        check_at_least_zero("momentum_decay", settings["momentum_decay"])

    def _start(self, p: Array, group: Group) -> State:
        return super()._start(p, group) | {"mu_product": optimizer.SCALAR(1)}

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        lr, decay, beta1, eps = group["lr"], group["momentum_decay"], group["betas"][0], group["eps"]
        _, filled2 = self._filled(state, group)
        step = state["step"]
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))  # (9.21)
        mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))  # (9.21)
        state["mu_product"] *= mu
        product = float(state["mu_product"])
        now, ahead = lr * (1 - mu) / (1 - product), lr * mu_next / (1 - product * mu_next)  # (9.22)
        correction = 1 / math.sqrt(filled2)
        for p, g, m, v, t, u in self._blocks(
            group, parameter, gradient, state["exp_avg"], state["exp_avg_sq"], scratch=2
        ):
            self._moments(m, v, g, group, t)
            both = np.add(np.multiply(now, g, u), np.multiply(ahead, m, t), u)
            scale = np.add(np.multiply(correction, np.sqrt(v, t), t), eps, t)
            p -= np.divide(both, scale, u)  # (9.22)
