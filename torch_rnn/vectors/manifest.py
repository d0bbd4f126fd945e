"""What the manifest of the golden vectors says, and how it is laid out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

FORMAT = "rnn-parity golden vectors, 1"
MANIFEST, FILES = "manifest.json", ("vectors.npz", "vectors.safetensors")

NAMES = {
    "a tensor": "CASE/TENSOR, such as lstm/dweight_hh_l0; each case lists its own",
    "given": "x (T, B, I), h_0 (L*D, B, P), c_0 (L*D, B, H), the parameters by PyTorch's names, doutput (T, B, D*P), "
    "dh_n and dc_n: the gradients of the loss by output, h_n and c_n",
    "computed": "output (T, B, D*P), h_n, c_n, and d before the name of what the loss is derived by: dx, dh_0, dc_0, "
    "dweight_ih_l0, ...",
    "steps": "sgd/1/weight_ih_l0: that parameter after the first step; adam/3/...: after the third",
    "P": "the size of the projected state; 0 says that there is no projection, and P is H in the shapes",
    "states": "stand in the order layer 0, layer 0 reverse, layer 1, ...; D is 2 with a reverse direction",
    "lengths": "how many steps of each sequence count; x and doutput behind them are not zero and must not be read, "
    "output and dx are zero there; h_n is the state after each sequence's own last step, and the reverse direction "
    "starts at that step",
    "windows": "how the T steps are cut; between two windows the states go on and their gradient stops (detach); dh_n "
    "and dc_n belong to the last window, dh_0 and dc_0 to the first; the loss is that of all windows",
}
EQUATIONS = {
    "rnn": [
        "h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), or relu of it",
    ],
    "lstm": [
        "(z_i, z_f, z_g, z_o) = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh, blocks of H rows in the order i, f, g, o",
        "i, f, o = sigmoid(z_i), sigmoid(z_f), sigmoid(z_o); g = tanh(z_g)",
        "c_t = f * c_{t-1} + i * g",
        "h_t = o * tanh(c_t); with a projection W_hr (o * tanh(c_t))",
    ],
    "gru": [
        "(u_r, u_z, u_n) = W_ih x_t + b_ih; (a_r, a_z, a_n) = W_hh h_{t-1} + b_hh, blocks in the order r, z, n",
        "r = sigmoid(u_r + a_r); z = sigmoid(u_z + a_z); n = tanh(u_n + r * a_n)",
        "h_t = (1 - z) * n + z * h_{t-1}",
    ],
    "layers": [
        "the input of layer k+1 is the output of layer k; with two directions [forward, reverse] along the last axis",
        "the reverse direction reads x_T, ..., x_1 and its output at t is its state after reading x_t",
    ],
    "loss": [
        "sum(doutput * output) + sum(dh_n * h_n) + sum(dc_n * c_n): no mean, over nothing",
    ],
    "sgd": ["v = g at the first step, then momentum * v + g; p = p - lr * v"],
    "adam": [
        "m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; both start at zero",
        "p = p - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps), t = 1, 2, 3",
    ],
    "steps": ["each step: all gradients anew, of the same loss, then one step of every parameter"],
}


OWN_HASH = "sha256_of_all_else_here"


def digest(manifest: Mapping[str, Any]) -> str:
    """Return the hash of all that the manifest says but its own hash."""
    rest = {key: value for key, value in manifest.items() if key != OWN_HASH}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def dumps(manifest: Mapping[str, Any]) -> str:
    """Return strict JSON with one line a tensor, to be read by people as well."""
    lines = []
    for key, value in manifest.items():
        if key == "cases":
            lines.append('"cases": {\n' + ",\n".join(_case(n, c) for n, c in value.items()) + "\n}")
        elif isinstance(value, Mapping):
            entries = ",\n".join(f"  {json.dumps(n)}: {_one_line(v)}" for n, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{entries}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {_one_line(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _case(name: str, case: Mapping[str, Any]) -> str:
    head = [f"    {json.dumps(key)}: {_one_line(value)}" for key, value in case.items() if key != "tensors"]
    tensors = ",\n".join(f"      {json.dumps(key)}: {_one_line(value)}" for key, value in case["tensors"].items())
    body = ",\n".join([*head, f'    "tensors": {{\n{tensors}\n    }}'])
    return f"  {json.dumps(name)}: {{\n{body}\n  }}"


def _one_line(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
