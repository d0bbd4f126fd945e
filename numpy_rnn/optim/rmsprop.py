"""RMSprop (Tieleman and Hinton 2012), with Graves' centring (2013, arXiv:1308.0850)."""

from collections.abc import Iterable

import numpy as np

from numpy_rnn.optim.blocks import lerp
from numpy_rnn.optim.optimizer import Group, Optimizer, State, check_at_least_zero
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array


class RMSprop(Optimizer):
    """Divide each gradient by the root of a moving average of its squares, as ``torch.optim.RMSprop``.

    >>> weight = Tensor(np.array([1.0]), requires_grad=True)
    >>> weight.grad = Tensor(np.array([2.0]))
    >>> RMSprop([weight], lr=0.25, alpha=0.75).step()
    >>> weight.data.round(6)
    array([0.5])

    With g the gradient (negated if ``maximize``) plus ``weight_decay`` times the parameter:
    square_avg = alpha * square_avg + (1 - alpha) * g² (9.10); the parameter moves by -lr * g / (√square_avg + eps)
    (9.11), with eps outside the root. ``centered``: the square of a moving average of g itself is subtracted from
    square_avg under the root (9.12). With ``momentum``, buffer = momentum * buffer + g / (√… + eps), and the parameter
    moves by -lr * buffer.

    Centred, a gradient that stays the same for long makes the difference under the root all rounding: digits are lost,
    and it can fall below zero, which gives nan here as in PyTorch, with NumPy's warning.

    Raises ``ValueError`` for a setting out of range (PyTorch takes an ``alpha`` above 1, and gives nan).

    Source: Tieleman and Hinton, lecture 6.5 of their course (2012); Graves (2013), arXiv:1308.0850, for the centring,
    with eps inside the root there.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, settings: Group) -> None:
        super()._check(settings)
        for name in ("eps", "momentum"):
            check_at_least_zero(name, settings[name])
        if not 0 <= settings["alpha"] <= 1:
            raise ValueError(f"alpha must be in [0, 1], got {settings['alpha']}")

    def _start(self, p: Array, group: Group) -> State:
        state: State = {"step": 0, "square_avg": np.zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = np.zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = np.zeros_like(p)
        return state

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        lr, alpha, eps, momentum, centered = (group[key] for key in ("lr", "alpha", "eps", "momentum", "centered"))
        state["step"] += 1
        arrays = state["square_avg"], state.get("grad_avg"), state.get("momentum_buffer")
        for p, g, v, mean, b, t in self._blocks(group, parameter, gradient, *arrays):
            v *= alpha
            v += np.multiply(1 - alpha, np.multiply(g, g, t), t)  # (9.10)
            if centered:
                lerp(mean, g, 1 - alpha, t)
                v = np.subtract(v, np.multiply(mean, mean, t), t)  # (9.12)
            scale = np.add(np.sqrt(v, t), eps, t)
            if momentum > 0:
                b *= momentum
                b += np.divide(g, scale, t)
                p -= np.multiply(lr, b, t)
            else:
                p -= np.multiply(lr, np.divide(g, scale, t), t)  # (9.11)
