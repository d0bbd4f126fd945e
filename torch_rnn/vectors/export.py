"""Compute the golden vectors in float64, confirm them by torch, write them and their manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import numpy_rnn
from numpy_rnn.files import write_aside
from numpy_rnn.gradcheck import Comparison, compare
from numpy_rnn.typing import Array
from torch_rnn import parity
from torch_rnn.tolerances import PARITY
from torch_rnn.twins import to_array, twin
from torch_rnn.vectors.cases import OPTIMIZERS, STEPS, Spec, all_specs
from torch_rnn.vectors.formula import TEXT
from torch_rnn.vectors.manifest import EQUATIONS, FILES, FORMAT, MANIFEST, NAMES, OWN_HASH, digest, dumps
from torch_rnn.version import project_version


class NotConfirmed(Exception):
    """PyTorch computes something else."""


@dataclass(frozen=True)
class Side:
    """The words in which the two libraries differ."""

    leaf: Callable[[Array], Any]
    array: Callable[[Any], Array]
    call: Callable[[Any, Any, Any, Any], Any]  # module, x, state, lengths
    backward: Callable[[Any, Any], None]
    gradient: Callable[[Array], Any]
    optimizers: Mapping[str, Callable[[Any], Any]]


def _optimizers(library: Any) -> dict[str, Callable[[Any], Any]]:
    adam = OPTIMIZERS["adam"]
    return {
        "sgd": lambda parameters: library.SGD(parameters, **OPTIMIZERS["sgd"]),
        "adam": lambda parameters: library.Adam(
            parameters, adam["lr"], betas=(adam["beta1"], adam["beta2"]), eps=adam["eps"]
        ),
    }


NUMPY = Side(
    leaf=lambda array: numpy_rnn.Tensor(array.copy(), requires_grad=True),
    array=lambda tensor: np.array(tensor.data),
    call=lambda module, x, state, lengths: module(x, state, lengths=lengths),
    backward=numpy_rnn.backward,
    gradient=lambda array: array.copy(),
    optimizers=_optimizers(numpy_rnn),
)
TORCH = Side(
    leaf=lambda array: torch.from_numpy(array.copy()).requires_grad_(),
    array=to_array,
    call=lambda module, x, state, lengths: parity.call(module, (x, state), lengths),
    backward=torch.autograd.backward,
    gradient=lambda array: torch.from_numpy(array.copy()),
    optimizers=_optimizers(torch.optim),
)


def module_of(spec: Spec, given: Mapping[str, Array]) -> numpy_rnn.Module:
    """Return the NumPy network of a case, in the dtype of what is given."""
    options: dict[str, Any] = {"num_layers": spec.layers, "bias": spec.bias, "bidirectional": spec.bidirectional}
    if spec.cell == "rnn":
        options["nonlinearity"] = spec.nonlinearity
    if spec.P:
        options["proj_size"] = spec.P
    kind = getattr(numpy_rnn, spec.cell.upper())
    module: numpy_rnn.Module = kind(spec.I, spec.H, **options, dtype=given["x"].dtype, rng=0)
    module.load_state_dict({name: given[name] for name, _ in module.named_parameters()})
    return module


def results_of(spec: Spec, given: Mapping[str, Array], side: Side, module: Any) -> dict[str, Array]:
    """Return outputs, final states and all gradients, and leave the gradients in the module's parameters."""
    letters = ("h", "c") if spec.cell == "lstm" else ("h",)
    leaves = {name: side.leaf(given[name]) for name in ("x", *(f"{letter}_0" for letter in letters))}
    states = [leaves[f"{letter}_0"] for letter in letters]
    outputs, start = [], 0
    for window in spec.windows or (spec.T,):
        x = leaves["x"] if window == spec.T else leaves["x"][start : start + window]
        if start:
            states = [state.detach() for state in states]
        output, final = side.call(module, x, states[0] if len(states) == 1 else tuple(states), spec.lengths)
        states = list(final) if isinstance(final, tuple) else [final]
        outputs.append(output)
        start += window
    ends = np.cumsum(spec.windows or (spec.T,))
    upstream = [side.gradient(d) for d in np.split(given["doutput"], ends[:-1])]
    upstream += [side.gradient(given[f"d{letter}_n"]) for letter in letters]
    side.backward([*outputs, *states], upstream)

    results = {"output": np.concatenate([side.array(output) for output in outputs])}
    results |= {f"{letter}_n": side.array(state) for letter, state in zip(letters, states, strict=True)}
    results |= {f"d{name}": side.array(leaf.grad) for name, leaf in leaves.items()}
    return results | {f"d{name}": side.array(parameter.grad) for name, parameter in module.named_parameters()}


def steps_of(spec: Spec, given: Mapping[str, Array], side: Side, make: Callable[[], Any]) -> dict[str, Array]:
    """Return the parameters after each of three steps of each optimizer; ``make`` builds a fresh module."""
    results: dict[str, Array] = {}
    for name, optimizer_of in side.optimizers.items():
        module = make()
        optimizer = optimizer_of(module.parameters())
        for step in range(1, STEPS + 1):
            optimizer.zero_grad()
            results_of(spec, given, side, module)
            optimizer.step()
            results |= {f"{name}/{step}/{key}": side.array(p) for key, p in module.named_parameters()}
    return results


def compute(spec: Spec, side: Side, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return everything that one library computes for a case."""

    def make() -> Any:
        module = module_of(spec, given)
        return module if side is NUMPY else twin(module)

    return results_of(spec, given, side, make()) | steps_of(spec, given, side, make)


def export(directory: Path) -> list[Path]:
    """Write the golden vectors into ``directory``, which is created, and return the files.

    Raises ``NotConfirmed`` where torch computes something else, before anything is written; ``OSError``.
    """
    tensors: dict[str, Array] = {}
    cases = {}
    for name, spec in all_specs().items():
        given = spec.given()
        ours, theirs = compute(spec, NUMPY, given), compute(spec, TORCH, given)
        rows = [compare(f"{name}/{key}", ours[key], theirs[key]) for key in ours]
        worst = max(rows, key=lambda row: row.relative)
        if worst.relative > PARITY[np.dtype(np.float64)]:
            raise NotConfirmed(f"{worst.name} differs from torch's by {worst.relative:.1e} of its scale")
        cases[name] = _entry(spec, given, ours, worst)
        tensors |= {f"{name}/{key}": array for key, array in {**given, **ours}.items()}
    directory.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        numpy_rnn.save_weights(tensors, directory / file)
    content = dumps(_manifest(cases, directory)).encode()

    def write(aside: Path) -> None:
        aside.write_bytes(content)

    write_aside(directory / MANIFEST, write)
    return [directory / file for file in (*FILES, MANIFEST)]


def _entry(spec: Spec, given: Mapping[str, Array], ours: Mapping[str, Array], worst: Comparison) -> dict[str, Any]:
    sources = spec.sources()
    tensors = {
        name: {"shape": list(array.shape), "from": sources[name], "first": array.ravel()[:3].tolist()}
        for name, array in given.items()
    }
    tensors |= {name: {"shape": list(array.shape)} for name, array in ours.items()}
    confirmed = {"worst_error_over_scale": float(f"{worst.relative:.1e}"), "tensor": worst.name}
    return {**json.loads(json.dumps(spec.settings())), "torch": confirmed, "tensors": tensors}


def _manifest(cases: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    hashes = {file: hashlib.sha256((directory / file).read_bytes()).hexdigest() for file in FILES}
    packages = {name: version(name) for name in ("numpy", "torch", "safetensors")}
    manifest = {
        "format": FORMAT,
        "versions": {"rnn-parity": project_version(), **packages},
        "sha256": hashes,
        "dtype": "float64",
        "names": NAMES,
        "formula": TEXT,
        "equations": EQUATIONS,
        "tolerances": {str(dtype): tolerance for dtype, tolerance in PARITY.items()},
        "optimizers": {name: {**settings, "steps": STEPS} for name, settings in OPTIMIZERS.items()},
        "cases": cases,
    }
    return manifest | {OWN_HASH: digest(manifest)}
