"""Stochastic gradient descent with momentum."""

from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim.optimizer import Group, Optimizer, State, check_at_least_zero
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class SGD(Optimizer):
    """Go against the gradient, or against a decaying sum of the gradients, as ``torch.optim.SGD``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> SGD([weight], lr=0.25).step()
    >>> weight.data
    array([0.5])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter: without momentum (9.1).
    With it the buffer starts as g, undamped, and then is momentum * buffer + (1 - dampening) * g (9.3); the parameter
    moves by -lr * buffer (9.4), with ``nesterov`` by -lr * (g + momentum * buffer) (9.7).

    Raises ``ValueError`` for a setting out of range.

    Source: Sutskever, Martens, Dahl and Hinton (2013), whose velocity has the learning rate inside; here it is outside.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, settings: Group) -> None:
        super()._check(settings)
        check_at_least_zero("momentum", settings["momentum"])
        if settings["nesterov"] and (settings["momentum"] <= 0 or settings["dampening"] != 0):
            raise ValueError(
                "nesterov needs momentum above 0 and dampening 0, "
                f"got momentum {settings['momentum']}, dampening {settings['dampening']}"
            )

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        lr, momentum, undamped = group["lr"], group["momentum"], 1 - group["dampening"]
        if momentum == 0:
            for p, g, t in self._blocks(group, parameter, gradient):
                p -= np.multiply(lr, g, t)  # (9.1)
            return
        first = "momentum_buffer" not in state
        if first:
            state["momentum_buffer"] = np.zeros_like(parameter)
        for p, g, b, t in self._blocks(group, parameter, gradient, state["momentum_buffer"]):
            if first:
                b[...] = g
            else:
                b *= momentum
                b += np.multiply(undamped, g, t)  # (9.3)
            if group["nesterov"]:
                p -= np.multiply(lr, np.add(g, np.multiply(momentum, b, t), t), t)  # (9.7)
            else:
                p -= np.multiply(lr, b, t)  # (9.4)
