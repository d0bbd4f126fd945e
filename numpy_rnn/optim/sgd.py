"""Stochastic gradient descent with momentum."""

from collections.abc import Iterable

from numpy_rnn.optim.optimizer import Group, Optimizer, State, check_at_least_zero
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class SGD(Optimizer):
    """As ``torch.optim.SGD``: same defaults, same order of operations.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> SGD([weight], lr=0.25).step()
    >>> weight.data
    array([0.5])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter: the buffer starts as g and
    then is momentum * buffer + (1 - dampening) * g; the parameter moves by -lr * buffer, with ``nesterov`` by
    -lr * (g + momentum * buffer), without momentum by -lr * g.

    Raises ``ValueError`` for a setting out of range.
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

    def _delta(self, g: Array, state: State, group: Group) -> Array:
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            buffer = g.copy() if buffer is None else momentum * buffer + (1 - group["dampening"]) * g
            state["momentum_buffer"] = buffer
            g = g + momentum * buffer if group["nesterov"] else buffer
        delta: Array = -group["lr"] * g
        return delta
