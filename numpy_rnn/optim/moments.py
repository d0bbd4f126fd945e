"""What Adam and its relatives share: moving averages of the gradient and of its square."""

import numpy as np

from numpy_rnn.optim.optimizer import Group, Optimizer, State, check_at_least_zero, lerp
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

    def _moments(self, g: Array, state: State, group: Group) -> tuple[float, float]:
        """Take ``g`` into both averages; return how much of each has been filled since the first step."""
        beta1, beta2 = group["betas"]
        state["step"] += 1
        lerp(state["exp_avg"], g, 1 - beta1)  # (9.16)
        state["exp_avg_sq"] *= beta2
        state["exp_avg_sq"] += (1 - beta2) * g * g  # (9.17)
        return 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]  # (9.18)
