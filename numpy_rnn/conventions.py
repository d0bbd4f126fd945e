"""The weights of one layer and direction, from the convention of one library to that of another.

Gate order, transposition and the number of biases differ; the equations, up to these, do not. Sources: the operators
RNN, LSTM and GRU of the ONNX specification; Keras 3, ``keras/src/layers/rnn``; oneDNN's developer guide, "RNN", section
"Cell Functions"; cuDNN's ``cudnnRNNMode_t`` and ``cudnnGetRNNWeightParams``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_rnn.typing import Array
from numpy_rnn.weights import as_arrays

# The order in which the gates stand, in PyTorch's letters. Keras and ONNX write c or h for the candidate, g or n here;
# cuDNN writes i and oneDNN u for the GRU's update gate z, cuDNN h' and oneDNN o for its candidate n.
GATES = {
    "pytorch": {"rnn": "h", "lstm": "ifgo", "gru": "rzn"},
    "cudnn": {"rnn": "h", "lstm": "ifgo", "gru": "rzn"},
    "keras": {"rnn": "h", "lstm": "ifgo", "gru": "zrn"},
    "onnx": {"rnn": "h", "lstm": "iofg", "gru": "zrn"},
    "onednn": {"rnn": "h", "lstm": "ifgo", "gru": "zrn"},
}

# What each convention calls an array, which of PyTorch's parameters it is, and its shape for G gates. "biases" is both
# biases in one array, "bias" their sum, "lbr_bias" the sum with the GRU's second bias of n below it.
LAYOUTS = {
    "pytorch": {
        "weight_ih": ("weight_ih", "G*H, I"),
        "weight_hh": ("weight_hh", "G*H, P"),
        "bias_ih": ("bias_ih", "G*H"),
        "bias_hh": ("bias_hh", "G*H"),
        "weight_hr": ("weight_hr", "P, H"),
    },
    "cudnn": {
        "W": ("weight_ih", "G, H, I"),
        "R": ("weight_hh", "G, H, P"),
        "b_W": ("bias_ih", "G, H"),
        "b_R": ("bias_hh", "G, H"),
        "projection": ("weight_hr", "P, H"),
    },
    "keras": {
        "kernel": ("weight_ih", "I, G*H"),
        "recurrent_kernel": ("weight_hh", "P, G*H"),
        "bias": ("bias", "G*H"),
    },
    "onnx": {
        "W": ("weight_ih", "1, G*H, I"),
        "R": ("weight_hh", "1, G*H, P"),
        "B": ("biases", "1, 2*G*H"),
    },
    "onednn": {
        "weights_layer": ("weight_ih", "1, 1, I, G, H"),
        "weights_iter": ("weight_hh", "1, 1, P, G, H"),
        "bias": ("bias", "1, 1, G, H"),
        "weights_projection": ("weight_hr", "1, 1, H, P"),
    },
}
GRU_BIASES = {"keras": ("biases", "2, G*H"), "onednn": ("lbr_bias", "1, 1, 4, H")}
PEEPHOLES = {"onnx": "P", "onednn": "weights_peephole"}
# The order of the axes here, whatever it is there.
AXES = {
    "weight_ih": "GHI",
    "weight_hh": "GHP",
    "bias_ih": "GH",
    "bias_hh": "GH",
    "biases": "2GH",
    "bias": "GH",
    "lbr_bias": "4H",
    "weight_hr": "PH",
}


def convert_weights(
    weights: Mapping[str, Any], cell: str, source: str, target: str, *, suffix: str = ""
) -> dict[str, Array]:
    """Return the weights of one layer and direction, given in the convention ``source``, in the convention ``target``.

    >>> from numpy_rnn import RNN
    >>> rnn = RNN(3, 5, bidirectional=True, rng=0)
    >>> keras = convert_weights(rnn.state_dict(), "rnn", "pytorch", "keras", suffix="_l0_reverse")
    >>> {name: array.shape for name, array in keras.items()}
    {'kernel': (3, 5), 'recurrent_kernel': (5, 5), 'bias': (5,)}
    >>> sorted(convert_weights(keras, "rnn", "keras", "pytorch", suffix="_l0"))
    ['bias_hh_l0', 'bias_ih_l0', 'weight_hh_l0', 'weight_ih_l0']

    Arguments: ``cell`` is "rnn", "lstm" or "gru", of G = 1, 4 or 3 gates. ``weights`` are arrays of one floating-point
    dtype by the names below, without the biases for a layer that has none. ``suffix`` ends PyTorch's names; with it a
    whole state dict may be given, of which the other layers are left alone.

    - ``pytorch``, and this library: ``weight_ih`` (G*H, I), ``weight_hh`` (G*H, H), ``bias_ih`` and ``bias_hh`` (G*H,),
      with a projection ``weight_hr`` (P, H) and ``weight_hh`` (G*H, P). LSTM i, f, g, o; GRU r, z, n.
    - ``keras``: ``kernel`` (I, G*H), ``recurrent_kernel`` (H, G*H), ``bias`` (G*H,), of the GRU (2, G*H). LSTM i, f, c,
      o; GRU z, r, h, with ``reset_after=True`` and ``recurrent_activation="sigmoid"``.
    - ``onnx``: ``W`` (1, G*H, I), ``R`` (1, G*H, H), ``B`` (1, 2*G*H); two directions are concatenated along axis 0.
      LSTM i, o, f, c; GRU z, r, h, with ``linear_before_reset=1``.
    - ``cudnn``: ``W`` (G, H, I), ``R`` (G, H, H), ``b_W`` and ``b_R`` (G, H) of ``CUDNN_RNN_DOUBLE_BIAS``,
      ``projection`` (P, H); matrix k of ``W`` has the linLayerID k, of ``R`` G + k, and the projection 8. Gates as
      PyTorch's.
    - ``onednn``: ``weights_layer`` (1, 1, I, G, H), ``weights_iter`` (1, 1, H, G, H), ``bias`` (1, 1, G, H), of the
      ``lbr_gru`` (1, 1, 4, H), ``weights_projection`` (1, 1, H, P): the tags ldigo, ldgo and ldio for L = D = 1. LSTM
      i, f, c, o; GRU u, r, o.

    Where a convention has one bias it gets the sum of the two, and on the way back ``bias_ih`` is the sum and
    ``bias_hh`` zero: the outputs are the same up to the rounding of that sum, the two biases are lost. Keras' and
    oneDNN's RNN and LSTM are of this kind, and the gates r and z of oneDNN's GRU; the two biases of n stay apart,
    because the reset gate multiplies only one of them. All else comes back bit for bit.

    Returns new arrays of the same dtype.

    Raises ``ValueError`` for an unknown ``cell``, convention or name, a missing weight, a wrong shape, and for what the
    target cannot express: a projection in Keras or ONNX, peepholes, a GRU that applies its reset gate before the
    product. (Without biases the shapes do not show that; ONNX's never do: look at its ``linear_before_reset``.)
    ``TypeError`` for other dtypes.
    """
    for name, value, known in (("source", source, GATES), ("target", target, GATES), ("cell", cell, GATES["pytorch"])):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    arrays = as_arrays("weights", weights)
    if source == "pytorch" and suffix:
        arrays = {name.removesuffix(suffix): array for name, array in arrays.items() if name.endswith(suffix)}
    converted = _write(_read(arrays, cell, source), cell, target)
    return {name + suffix: array for name, array in converted.items()} if target == "pytorch" else converted


@dataclass
class _Layer:
    """One layer and direction, axes as in AXES, gates in PyTorch's order."""

    weight_ih: Array  # (G, H, I)
    weight_hh: Array  # (G, H, P), P = H without a projection
    biases: Array | None  # (2, G, H)
    weight_hr: Array | None  # (P, H)


def _layout(convention: str, cell: str) -> dict[str, tuple[str, str]]:
    layout = dict(LAYOUTS[convention])
    if cell == "gru" and convention in GRU_BIASES:
        layout["bias"] = GRU_BIASES[convention]
    if cell != "lstm":
        layout = {name: entry for name, entry in layout.items() if entry[0] != "weight_hr"}
    return layout


def _read(arrays: dict[str, Array], cell: str, convention: str) -> _Layer:
    layout = _layout(convention, cell)
    _check_names(arrays, layout, cell, convention)
    if len(dtypes := {array.dtype for array in arrays.values()}) != 1 or next(iter(dtypes)).kind != "f":
        raise TypeError(f"weights must be of one floating-point dtype, got {', '.join(sorted(map(str, dtypes)))}")

    # weight_ih tells I and H, weight_hr P; then every shape is known.
    sizes = {"G": len(GATES[convention][cell]), "1": 1, "2": 2, "4": 4}
    names = {role: name for name, (role, _) in layout.items() if name in arrays}
    parts: dict[str, Array] = {}
    for role in ("weight_ih", "weight_hr", "weight_hh", "bias_ih", "bias_hh", "biases", "bias", "lbr_bias"):
        if role in names:
            name = names[role]
            parts[role] = _from_shape(name, arrays[name], role, layout[name][1], sizes, cell)
        elif role == "weight_hr":
            sizes["P"] = sizes["H"]

    order = [GATES[convention][cell].index(gate) for gate in GATES["pytorch"][cell]]
    return _Layer(
        parts["weight_ih"][order], parts["weight_hh"][order], _both_biases(parts, order), parts.get("weight_hr")
    )


def _check_names(arrays: dict[str, Array], layout: dict[str, tuple[str, str]], cell: str, convention: str) -> None:
    if cell == "lstm" and PEEPHOLES.get(convention) in arrays:
        raise ValueError(f"weights has peepholes, {PEEPHOLES[convention]!r}, which PyTorch's LSTM does not have")
    needed = [name for name, (role, _) in layout.items() if role in ("weight_ih", "weight_hh")]
    biases = [name for name, (role, _) in layout.items() if role in ("bias_ih", "bias_hh")]
    if any(name in arrays for name in biases):
        needed += biases
    problems = [f"missing: {name}" for name in needed if name not in arrays]
    problems += [f"unexpected: {name}" for name in arrays if name not in layout]
    if problems:
        hint = "; suffix='_l0' chooses a layer of a state dict" if convention == "pytorch" else ""
        message = f"weights of a {cell} in the convention {convention} are {', '.join(layout)}{hint}"
        raise ValueError("\n  ".join([message, *problems]))


def _from_shape(name: str, array: Array, role: str, shape: str, sizes: dict[str, int], cell: str) -> Array:
    """Check the shape, learn the sizes that it tells, and return the array with the axes of its role."""
    axes = [axis.split("*") for axis in shape.split(", ")]
    if array.ndim == len(axes):
        for length, letters in zip(array.shape, axes, strict=True):
            unknown = [letter for letter in letters if letter not in sizes]
            known = math.prod(sizes[letter] for letter in letters if letter in sizes)
            if unknown and length % known == 0:
                sizes[unknown[0]] = length // known
    letters = [letter for axis in axes for letter in axis]
    if any(letter not in sizes for letter in letters):
        raise ValueError(f"{name} must be ({shape}) with G = {sizes['G']} for cell {cell!r}, got {array.shape}")
    expected = tuple(math.prod(sizes[letter] for letter in axis) for axis in axes)
    if array.shape != expected:
        H, shown = sizes["H"], shape if sizes.get("P") != sizes["H"] else shape.replace("P", "H")
        message = f"{name} must be ({shown}) = {expected} for cell {cell!r}, got {array.shape}"
        if cell == "gru" and array.shape in ((3 * H,), (1, 1, 3, H)) and role in ("biases", "lbr_bias"):
            message += ": a GRU of one bias a gate resets before the product, and PyTorch's after it; no weights make"
            message += " them equal"
        raise ValueError(message)
    letters = [letter for letter in letters if letter != "1"]
    split = array.reshape([sizes[letter] for letter in letters])
    return split.transpose([letters.index(axis) for axis in AXES[role]])


def _both_biases(parts: dict[str, Array], order: list[int]) -> Array | None:
    """Return (2, G, H) in PyTorch's order of gates, or None for a layer without biases."""
    if "biases" in parts:
        return parts["biases"][:, order]
    if "bias_ih" in parts:
        return np.stack([parts["bias_ih"], parts["bias_hh"]])[:, order]
    if "bias" in parts:
        return np.stack([parts["bias"], np.zeros_like(parts["bias"])])[:, order]
    if "lbr_bias" in parts:
        sums, of_product = parts["lbr_bias"][:3][order], parts["lbr_bias"][3]
        zeros = np.zeros_like(of_product)
        return np.stack([sums, [zeros, zeros, of_product]])
    return None


def _write(layer: _Layer, cell: str, convention: str) -> dict[str, Array]:
    layout = _layout(convention, cell)
    order = [GATES["pytorch"][cell].index(gate) for gate in GATES[convention][cell]]
    parts = {"weight_ih": layer.weight_ih[order], "weight_hh": layer.weight_hh[order]}
    if layer.weight_hr is not None:
        if not any(role == "weight_hr" for role, _ in layout.values()):
            raise ValueError(f"weights has a projection, and the LSTM of the convention {convention} has none")
        parts["weight_hr"] = layer.weight_hr
    if layer.biases is not None:
        biases = layer.biases[:, order]
        sums = biases[0] + biases[1]
        parts |= {"biases": biases, "bias_ih": biases[0], "bias_hh": biases[1], "bias": sums}
        if cell == "gru":  # z, r, n: n's two biases stay apart
            parts["lbr_bias"] = np.stack([sums[0], sums[1], biases[0, 2], biases[1, 2]])
    return {name: _to_shape(parts[role], role, shape) for name, (role, shape) in layout.items() if role in parts}


def _to_shape(array: Array, role: str, shape: str) -> Array:
    """Turn the axes of a role into the shape of a convention, as a new array."""
    sizes = {"1": 1, **dict(zip(AXES[role], array.shape, strict=True))}
    axes = [axis.split("*") for axis in shape.split(", ")]
    letters = [letter for axis in axes for letter in axis if letter != "1"]
    turned = array.transpose([AXES[role].index(letter) for letter in letters])
    return np.array(turned.reshape([math.prod(sizes[letter] for letter in axis) for axis in axes]), order="C")
