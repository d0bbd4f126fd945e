"""A few optimizer steps on a case, right or with one known bug in them: what a port with the bug would have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from numpy_rnn.diagnosis.replay import Case, replay
from numpy_rnn.typing import Array

SHARED = {
    "gradients-not-cleared": "the gradients are not cleared between the steps and add up",
    "gradients-not-recomputed": "every step uses the gradients of the first one",
    "gradient-ascent": "the step has the wrong sign",
    "one-bias-for-two": "only one of the two biases is updated: their sum must move twice as far",
}
BUGS = {
    "sgd": SHARED
    | {
        "momentum-missing": "there is no momentum",
        "momentum-dampened": "the gradient is multiplied by 1 - momentum before it is added to the buffer",
        "nesterov": "the step is Nesterov's",
    },
    "adam": SHARED
    | {
        "no-bias-correction": "the averages are not divided by 1 - beta^t",
        "first-average-corrected-only": "the second average is not divided by 1 - beta2^t",
        "second-average-corrected-only": "the first average is not divided by 1 - beta1^t",
        "betas-swapped": "beta1 and beta2 are swapped",
        "eps-inside-the-root": "eps is added inside the square root",
        "step-counted-from-2": "the step count of the bias correction is one too high",
    },
}


def replay_steps(
    case: Case, optimizer: str, settings: Mapping[str, float], steps: int, bug: str = ""
) -> dict[str, Array]:
    """Return the parameters after each step, by names such as ``sgd/1/weight_ih_l0``.

    ``optimizer`` is "sgd" (``lr``, ``momentum``) or "adam" (``lr``, ``beta1``, ``beta2``, ``eps``); the loss is the sum
    of the outputs times their upstream gradients, which stay what they are. ``bug`` is a name of ``BUGS[optimizer]``.

    >>> w = np.full((1, 1), 0.5)
    >>> arrays = {"x": np.ones((2, 1, 1)), "h_0": np.ones((1, 1, 1)), "weight_ih_l0": w, "weight_hh_l0": w}
    >>> case = Case("rnn", arrays | {"doutput": np.ones((2, 1, 1))})
    >>> replay_steps(case, "sgd", {"lr": 0.1, "momentum": 0.9}, 1)["sgd/1/weight_hh_l0"].round(6).item()
    0.409384
    """
    parameters = {n: a.copy() for n, a in case.arrays.items() if n.startswith(("weight_", "bias_"))}
    frozen = "bias_hh" if bug == "one-bias-for-two" else "none"
    added = {name: np.zeros_like(array) for name, array in parameters.items()}
    state: dict[str, list[Array]] = {}
    results, gradients = {}, {}
    for step in range(1, steps + 1):
        if step == 1 or bug != "gradients-not-recomputed":
            found = replay(replace(case, arrays={**case.arrays, **parameters}))
            gradients = {name: found[f"d{name}"] for name in parameters}
        for name, p in parameters.items():
            g = gradients[name]
            if bug == "gradients-not-cleared":
                g = added[name] = added[name] + g
            if not name.startswith(frozen):
                move = (_sgd if optimizer == "sgd" else _adam)(g, state.setdefault(name, []), settings, step, bug)
                parameters[name] = p + move if bug == "gradient-ascent" else p - move
            results[f"{optimizer}/{step}/{name}"] = parameters[name]
    return results


def _sgd(g: Array, state: list[Array], settings: Mapping[str, float], step: int, bug: str) -> Array:
    lr, momentum = settings["lr"], settings["momentum"]
    if bug == "momentum-missing":
        return lr * g
    if not state:
        state.append(g)
    else:
        state[0] = momentum * state[0] + (g * (1 - momentum) if bug == "momentum-dampened" else g)
    return lr * (g + momentum * state[0]) if bug == "nesterov" else lr * state[0]


def _adam(g: Array, state: list[Array], settings: Mapping[str, float], step: int, bug: str) -> Array:
    beta1, beta2, eps = settings["beta1"], settings["beta2"], settings["eps"]
    if bug == "betas-swapped":
        beta1, beta2 = beta2, beta1
    if not state:
        state += [np.zeros_like(g), np.zeros_like(g)]
    state[0] = beta1 * state[0] + (1 - beta1) * g
    state[1] = beta2 * state[1] + (1 - beta2) * g * g
    t = step + (bug == "step-counted-from-2")
    filled1 = 1.0 if bug in ("no-bias-correction", "second-average-corrected-only") else 1 - beta1**t
    filled2 = 1.0 if bug in ("no-bias-correction", "first-average-corrected-only") else 1 - beta2**t
    square = state[1] / filled2
    root = np.sqrt(square + eps) if bug == "eps-inside-the-root" else np.sqrt(square) + eps
    move: Array = settings["lr"] * (state[0] / filled1) / root
    return move
