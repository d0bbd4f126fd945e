"""Averaged stochastic gradient descent (Polyak and Juditsky 1992)."""

from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim import optimizer
from numpy_rnn.optim.optimizer import Group, Optimizer, State
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class ASGD(Optimizer):
    """Gradient descent at a falling rate that keeps the average of where it has been, as ``torch.optim.ASGD``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> optimizer = ASGD([weight], lr=0.25, t0=0)
    >>> for _ in range(3):
    ...     weight.grad = Tensor(np.array([1.0]))
    ...     optimizer.step()
    >>> weight.data.round(3), optimizer.state[weight]["ax"].round(3)
    (array([0.25]), array([0.375]))

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter, at step t from 1: the
    parameter shrinks by ``lambd`` * eta and moves by -eta * g (9.30), in two writes, so the version goes up by two; ax
    follows by the fraction mu (9.31), or is the parameter itself while mu is 1; then eta and mu are made for the next
    step (9.32) from lr, ``lambd``, ``alpha`` and ``t0``. So a changed lr counts from the step after the next one on, as
    in PyTorch. The average is ``optimizer.state[parameter]["ax"]``; nothing puts it into the parameter.

    eta and mu are numbers, which PyTorch keeps in float32 for parameters of any dtype (unless its default dtype is
    float64), and so does this.

    Raises ``ValueError`` for a setting out of range.

    Source: Polyak and Juditsky (1992); the schedule is that of Bottou's SGD package.
    """

    _writes = 2

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _start(self, p: Array, group: Group) -> State:
        return {
            "step": 0,
            "eta": optimizer.SCALAR(group["lr"]),
            "mu": optimizer.SCALAR(1),
            "ax": np.zeros_like(p),
        }

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        lr, lambd = group["lr"], group["lambd"]
        eta, mu = float(state["eta"]), float(state["mu"])
        state["step"] += 1
        for p, g, ax, t in self._blocks(group, parameter, gradient, state["ax"]):
            p *= 1 - lambd * eta
            p -= np.multiply(eta, g, t)  # (9.30)
            if mu == 1:
                ax[...] = p
            else:
                ax += np.multiply(mu, np.subtract(p, ax, t), t)  # (9.31)
        state["eta"] = optimizer.SCALAR(lr / (1 + lambd * lr * state["step"]) ** group["alpha"])  # (9.32)
        state["mu"] = optimizer.SCALAR(1 / max(1, state["step"] - group["t0"]))  # (9.32)
