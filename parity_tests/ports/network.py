"""Layers, directions, lengths, windows and optimizer steps around the three cells."""

from itertools import accumulate
from typing import Any

import numpy as np

from parity_tests.ports import gru, lstm, rnn

CELLS: dict[str, Any] = {"rnn": rnn, "lstm": lstm, "gru": gru}


def run(given: dict, settings: dict) -> dict[str, np.ndarray]:
    """Return outputs, final states and all gradients."""
    T, B = given["x"].shape[:2]
    D, letters = 1 + settings["bidirectional"], ("h", "c") if settings["cell"] == "lstm" else ("h",)
    lengths = settings["lengths"] or [T] * B
    cuts = set(accumulate(settings["windows"]))
    gradients = {}
    for name in given:
        if name.startswith(("weight", "bias")):
            gradients[name] = np.zeros_like(given[name])
    P = given["h_0"].shape[2]
    results = {"output": np.zeros((T, B, D * P), given["x"].dtype), "dx": np.zeros_like(given["x"])}
    for letter in letters:
        results |= {f"{letter}_n": np.zeros_like(given[f"{letter}_0"])}
        results |= {f"d{letter}_0": np.zeros_like(given[f"{letter}_0"])}
    for b in range(B):
        one(b, lengths[b], given, settings, letters, cuts, gradients, results)
    return results | {f"d{name}": gradient for name, gradient in gradients.items()}


def one(b: int, length: int, given: dict, settings: dict, letters: Any, cuts: set, g: dict, results: dict) -> None:
    """Run one sequence through all layers, forward and backward."""
    cell, D = CELLS[settings["cell"]], 1 + settings["bidirectional"]
    x, tapes = list(given["x"][:length, b]), []
    for layer in range(settings["layers"]):
        outputs = []
        for direction in range(D):
            k = layer * D + direction
            w = weights(given, layer, direction)
            turned = x[::-1] if direction else x
            states, cache = cell.forward(
                turned, tuple(given[f"{s}_0"][k, b] for s in letters), w, settings.get("nonlinearity") == "relu"
            )
            for s, letter in enumerate(letters):
                results[f"{letter}_n"][k, b] = states[-1][s]
            h = [state[0] for state in states[1:]]
            outputs.append(h[::-1] if direction else h)
            tapes.append((turned, states, cache, w))
        x = [np.concatenate(parts) for parts in zip(*outputs, strict=True)]
    results["output"][:length, b] = x

    dout = list(given["doutput"][:length, b])
    for layer in reversed(range(settings["layers"])):
        below = []
        for direction in range(D):
            place = D * layer + direction
            turned, states, cache, w = tapes[D * layer + direction]
            part = {}
            for kind in w:
                sums = g.get(kind + w_suffix(layer, direction))
                part[kind] = np.zeros_like(w[kind]) if sums is None else sums
            half = [np.split(d, D)[direction] for d in dout]
            end = tuple(given[f"d{s}_n"][place, b] for s in letters)
            upstream = half[::-1] if direction else half
            dx, first = cell.backward(turned, states, cache, w, part, upstream, end, cuts)
            below.append(dx[::-1] if direction else dx)
            for s, letter in enumerate(letters):
                results[f"d{letter}_0"][place, b] = first[s]
        dout = below[0]
        if D == 2:
            dout = [a + b for a, b in zip(below[0], below[1], strict=True)]
    results["dx"][:length, b] = dout


def w_suffix(layer: int, direction: int) -> str:
    """How the names of the weights of a layer and direction end."""
    return f"_l{layer}" + "_reverse" * direction


def weights(given: dict, layer: int, direction: int) -> dict[str, np.ndarray]:
    """The weights of a layer and direction; biases that are not given are zero."""
    suffix = w_suffix(layer, direction)
    w = {
        kind: given[kind + suffix]
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        if kind + suffix in given
    }
    zeros = np.zeros(len(w["weight_hh"]), w["weight_hh"].dtype)
    return {"bias_ih": zeros, "bias_hh": zeros} | w


def steps(given: dict, settings: dict, optimizers: dict) -> dict[str, np.ndarray]:
    """Return the parameters after each step of each optimizer."""
    results = {}
    for optimizer, options in optimizers.items():
        p = {name: w for name, w in given.items() if name.startswith(("weight", "bias"))}
        m = {name: np.zeros_like(w) for name, w in p.items()}
        v = {name: np.zeros_like(w) for name, w in p.items()}
        for t in range(1, options["steps"] + 1):
            g = run({**given, **p}, settings)
            for name in p:
                if optimizer == "sgd":
                    m[name] = options["momentum"] * m[name] + g[f"d{name}"]
                    p[name] = p[name] - options["lr"] * m[name]
                else:
                    beta1, beta2 = options["beta1"], options["beta2"]
                    m[name] = beta1 * m[name] + (1 - beta1) * g[f"d{name}"]
                    v[name] = beta2 * v[name] + (1 - beta2) * g[f"d{name}"] ** 2
                    mean, square = m[name] / (1 - beta1**t), v[name] / (1 - beta2**t)
                    p[name] = p[name] - options["lr"] * mean / (np.sqrt(square) + options["eps"])
                results[f"{optimizer}/{t}/{name}"] = p[name]
    return results
