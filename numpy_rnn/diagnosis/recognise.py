"""See that somebody's plain functions are one of the cells, so that its known bugs can be recomputed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from numpy_rnn.diagnosis.replay import Case, replay
from numpy_rnn.diagnosis.signatures import close
from numpy_rnn.diagnosis.steps import LETTERS
from numpy_rnn.typing import Array

# What people call the arguments, without case, underscores and a final _l0.
ALIASES = {
    "x": ("x", "xs", "input", "inputs"),
    "h_0": ("h0", "hx", "h", "hprev", "hinit"),
    "c_0": ("c0", "cx", "c", "cprev", "cinit"),
    "weight_ih_l0": ("weightih", "wih", "wx", "wxh", "w"),
    "weight_hh_l0": ("weighthh", "whh", "wh", "u"),
    "bias_ih_l0": ("biasih", "bih", "bx", "b"),
    "bias_hh_l0": ("biashh", "bhh", "bh"),
    "weight_hr_l0": ("weighthr", "whr"),
}
DIMENSIONS = {"x": 3, "h_0": 3, "c_0": 3, "bias_ih_l0": 1, "bias_hh_l0": 1}  # of the others 2
NEAR = 1e-9


@dataclass(frozen=True)
class Recognised:
    """A case, and where its arrays stand among somebody's arguments and results."""

    case: Case
    inputs: Mapping[str, tuple[str, tuple[int, ...], bool]]  # theirs: ours, shape of theirs, whether transposed
    outputs: Sequence[str]  # ours, in the order of their results

    def results(self, bug: str = "") -> dict[str, Array]:
        """What their functions would give with a bug: gradients by the names of the arguments, outputs by number."""
        results = replay(self.case, bug)
        named = {
            theirs: (results[f"d{ours}"].T if turned else results[f"d{ours}"]).reshape(shape)
            for theirs, (ours, shape, turned) in self.inputs.items()
        }
        return named | {f"output {k}": results[name].ravel() for k, name in enumerate(self.outputs)}


def recognise(inputs: Mapping[str, Array], outputs: Sequence[Array], upstream: Sequence[Array]) -> Recognised | None:
    """Return which cell gives these ``outputs``, or None. One layer, one direction.

    ``inputs`` by name: ``x`` (T, B, I), (T, I) or (T,); ``h_0`` and for an LSTM ``c_0``; ``w_ih`` and ``w_hh``, also
    transposed; biases or none, under these or PyTorch's names or the commoner short ones. ``outputs`` are all states
    or the last ones; they decide, by their values.

    >>> x, h_0, w = np.ones((3, 1)), np.zeros(1), np.full((1, 1), 0.5)
    >>> h = [h_0]
    >>> for t in range(3):
    ...     h.append(np.tanh(0.5 * x[t] + 0.5 * h[-1]))
    >>> found = recognise({"x": x, "h0": h_0, "Wx": w, "Wh": w}, [np.array(h[1:])], [np.ones((3, 1))])
    >>> found.case.cell, found.outputs
    ('rnn', ['output'])
    """
    known = {alias: name for name, aliases in ALIASES.items() for alias in aliases}
    names = {given: known.get(given.lower().removesuffix("_l0").replace("_", "")) for given in inputs}
    mine = {name: given for given, name in names.items() if name is not None}
    if len(mine) != len(inputs) or not {"x", "weight_ih_l0", "weight_hh_l0"} <= set(mine):
        return None
    for turned in product((False, True), repeat=2):
        which = dict(zip(("weight_ih_l0", "weight_hh_l0"), turned, strict=True))
        arrays = {name: _shaped(name, inputs[given], which.get(name, False)) for name, given in mine.items()}
        for case in _cases(arrays):
            found = _matched(case, outputs, upstream)
            if found is not None:
                layout = {given: (name, inputs[given].shape, which.get(name, False)) for name, given in mine.items()}
                return Recognised(found[0], layout, found[1])
    return None


def _shaped(name: str, array: Array, turned: bool) -> Array:
    """Give an argument the dimensions that it has in a ``Case``."""
    array = np.asarray(array, np.float64)
    array = array.T if turned else array
    dimensions = DIMENSIONS.get(name, 2)
    if name == "x" and array.ndim < 3:
        return array.reshape(len(array) if array.ndim else 1, 1, -1)
    return array.reshape((1,) * (dimensions - array.ndim) + array.shape) if array.ndim < dimensions else array


def _cases(arrays: dict[str, Array]) -> Iterator[Case]:
    w_ih, w_hh, (_, B, I) = arrays["weight_ih_l0"], arrays["weight_hh_l0"], arrays["x"].shape  # noqa: E741
    if w_ih.ndim != 2 or w_hh.ndim != 2 or w_ih.shape[1] != I or len(w_ih) != len(w_hh):
        return
    P = w_hh.shape[1]
    H = arrays["weight_hr_l0"].shape[1] if "weight_hr_l0" in arrays else P
    for cell, letters in LETTERS.items():
        if len(w_hh) != len(letters) * H or (cell == "lstm") != ("c_0" in arrays or len(w_hh) == 4 * H):
            continue
        states = {"h_0": (1, B, P)} | ({"c_0": (1, B, H)} if cell == "lstm" else {})
        full = {name: np.zeros(shape) for name, shape in states.items()} | arrays
        if all(full[name].shape == shape for name, shape in states.items()) and all(
            list(full[name].shape) == [len(w_hh)] for name in ("bias_ih_l0", "bias_hh_l0") if name in full
        ):
            for nonlinearity in ("tanh", "relu") if cell == "rnn" else ("tanh",):
                yield Case(cell, full, nonlinearity)


def _matched(case: Case, outputs: Sequence[Array], upstream: Sequence[Array]) -> tuple[Case, list[str]] | None:
    """The case with its upstream gradients, and the name of each output, if the case gives them all."""
    results, names = replay(case), []
    given = dict(case.arrays)
    for output, d in zip(outputs, upstream, strict=True):
        for name in ("output", "h_n", "c_n"):
            result = results.get(name)
            if result is None or name in names or result.size != np.size(output):
                continue
            if close(np.asarray(output, np.float64).reshape(result.shape), result, NEAR):
                names.append(name)
                given[f"d{name}"] = np.asarray(d, np.float64).reshape(result.shape)
                break
        else:
            return None
    return Case(case.cell, given, case.nonlinearity), names
