"""What Adam and its relatives share: moving averages of the gradient and of its square."""

import numpy as np

from numpy_rnn.optim.blocks import lerp
from numpy_rnn.optim.optimizer import Group, Optimizer, State, check_at_least_zero
from numpy_rnn.typing import Array


class MomentOptimizer(Optimizer):
    """Base of Adam, AdamW, NAdam and RAdam (and of Adamax, which keeps a maximum for the second average)."""

    def _check(self, settings: Group) -> None:
        super()._check(settings)
        check_at_least_zero("eps", settings["eps"])
        if not isinstance(settings["betas"], tuple | list) or len(settings["betas"]) != 2:
            raise ValueError(f"betas must be a pair, got {settings['betas']!r}")
        for i, beta in enumerate(settings["betas"]):
            if not 0 <= beta < 1:
                raise ValueError(f"betas[{i}] must be in [0, 1), got {beta}")

    def _start(self, p: Array, group: Group) -> State:
        return {"step": 0, "exp_avg": np.zeros_like(p), "exp_avg_sq": np.zeros_like(p)}

    def _filled(self, state: State, group: Group) -> tuple[float, float]:
        """Count the step; return how much of each average will be filled after it."""
        beta1, beta2 = group["betas"]
        state["step"] += 1
        return 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]  # (9.18)

    def _moments(self, m: Array, v: Array, g: Array, group: Group, t: Array) -> None:
        """Take ``g`` into ``m``, the average of the gradient, and ``v``, that of its square; ``t`` is scratch."""
        beta1, beta2 = group["betas"]
        lerp(m, g, 1 - beta1, t)  # (9.16)
        v *= beta2
        v += np.multiply(1 - beta2, np.multiply(g, g, t), t)  # (9.17)
