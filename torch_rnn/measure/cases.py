"""On which networks and numbers accuracy is measured: shapes, long windows, and the places where digits get lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from numpy_rnn.cells import rnn
from torch_rnn.measure.truth import Arrays

CELLS = {"rnn": 1, "rnn-relu": 1, "lstm": 4, "gru": 3}  # how many (H, ...) blocks the weights have
SHUT = -20.0  # what enters a nearly closed gate: it is open by 2e-9
KINK = 8  # units: a relu's argument nearer to 0 than that may be open in one library and closed in the other

Shape = tuple[int, int, int, int]  # T, B, I, H
GRID: tuple[Shape, ...] = ((1, 4, 3, 5), (7, 1, 2, 3), (20, 4, 8, 16), (100, 8, 16, 32), (1000, 2, 8, 16))
LARGE: tuple[Shape, ...] = ((50, 32, 64, 128), (1000, 4, 8, 32))  # in float32 alone: longdouble has no BLAS
SPECIAL: dict[str, tuple[tuple[str, ...], tuple[Shape, ...]]] = {  # which cells, and which shapes
    "gates shut": (("lstm", "gru"), ((20, 4, 8, 16), (100, 8, 16, 32))),
    "saturated": (("rnn", "lstm", "gru"), ((20, 4, 8, 16), (100, 8, 16, 32))),
    "memory": (("rnn", "rnn-relu", "lstm", "gru"), ((100, 8, 16, 32), (1000, 2, 8, 16))),
}
QUICK: tuple[Shape, ...] = ((1, 4, 3, 5), (20, 4, 8, 16))
QUICK_SPECIAL: Shape = (20, 4, 8, 16)


@dataclass(frozen=True)
class Case:
    """One network and the kind of numbers in it: T steps, B sequences, I inputs, H hidden units."""

    cell: str
    dtype: str
    T: int
    B: int
    I: int  # noqa: E741 the field's letter
    H: int
    kind: str = "plain"

    @property
    def label(self) -> str:
        shape = f"{self.T}, {self.B}, {self.I}, {self.H}"
        return shape if self.kind == "plain" else f"{shape} {self.kind}"

    @property
    def multiplications(self) -> int:
        """How many the matrix products of a forward take."""
        return self.T * self.B * CELLS[self.cell] * self.H * (self.I + self.H)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "label": self.label}


def cases(cells: Sequence[str], dtypes: Sequence[str], quick: bool = False) -> list[Case]:
    """Return every case of every cell and dtype.

    >>> [case.label for case in cases(["gru"], ["float64"], quick=True)]
    ['1, 4, 3, 5', '20, 4, 8, 16', '20, 4, 8, 16 gates shut', '20, 4, 8, 16 saturated', '20, 4, 8, 16 memory']
    """
    found = []
    for cell in cells:
        for dtype in dtypes:
            shapes = QUICK if quick else GRID + (LARGE if dtype == "float32" else ())
            found += [Case(cell, dtype, *shape) for shape in shapes]
            for kind, (of_cells, special) in SPECIAL.items():
                shapes = (QUICK_SPECIAL,) if quick else special
                found += [Case(cell, dtype, *shape, kind) for shape in shapes if cell in of_cells]
    return found


def draw(case: Case, seed: int) -> tuple[Arrays, Arrays]:
    """Return the arguments of the cell's forward, and upstream gradients of all that it returns.

    Weights are uniform within 1/sqrt(H), PyTorch's law, the rest is normal. "gates shut": ``SHUT`` enters all logistic
    gates. "saturated": so much enters a tanh that half the digits of its slope are lost, and an LSTM's cell state is as
    large. "memory": what a state holds stays for the whole window, T of 1000 not excepted. A relu is drawn again
    where it is asked for a number within rounding of 0, for which one library may be open and the other closed.
    """
    rng = np.random.default_rng([seed, case.T, case.B, case.I, case.H])
    if case.cell != "rnn-relu":
        return _draw(case, rng)
    drawn = _draw(case, rng)
    while _near_the_kink(drawn[0], KINK * float(np.finfo(case.dtype).eps)):
        drawn = _draw(case, rng)
    return drawn


def _draw(case: Case, rng: np.random.Generator) -> tuple[Arrays, Arrays]:
    T, B, I, H, gates = case.T, case.B, case.I, case.H, CELLS[case.cell]  # noqa: E741
    state_names = ("h_0", "c_0") if case.cell == "lstm" else ("h_0",)
    arrays = {"x": rng.normal(size=(T, B, I)), **{name: rng.normal(size=(B, H)) for name in state_names}}
    for name, shape in (("w_ih", (gates * H, I)), ("w_hh", (gates * H, H)), ("b_ih", gates * H), ("b_hh", gates * H)):
        arrays[name] = rng.uniform(-1, 1, shape) / np.sqrt(H)
    upstream = {"dh": rng.normal(size=(T, B, H))}
    upstream |= {f"d{name[0]}_n": rng.normal(size=(B, H)) for name in state_names}
    _TURNED[case.kind](case, arrays, rng)
    return tuple({name: a.astype(case.dtype) for name, a in group.items()} for group in (arrays, upstream))  # type: ignore[return-value]


def _plain(case: Case, arrays: Arrays, rng: np.random.Generator) -> None:
    pass


def _gates_shut(case: Case, arrays: Arrays, rng: np.random.Generator) -> None:
    logistic = {"lstm": (0, 1, 3), "gru": (0, 1)}[case.cell]
    for gate in logistic:
        _block(arrays["b_ih"], gate, case.H)[:] += SHUT


def _saturated(case: Case, arrays: Arrays, rng: np.random.Generator) -> None:
    """1 - tanh(z)^2 is about 4 exp(-2z): at the square root of eps half the digits of the slope are lost."""
    z = np.log(4 / np.sqrt(np.finfo(case.dtype).eps)) / 2
    gate = {"rnn": 0, "lstm": 2, "gru": 2}[case.cell]
    _block(arrays["b_ih"], gate, case.H)[:] += z * rng.choice([-1, 1], case.H)
    if case.cell == "lstm":
        arrays["c_0"] += z * rng.choice([-1, 1], case.H)


def _memory(case: Case, arrays: Arrays, rng: np.random.Generator) -> None:
    """The recurrent weights of an RNN are the identity and its input small; the gates of the others all but keep."""
    if case.cell in ("lstm", "gru"):
        _block(arrays["b_ih"], 1, case.H)[:] += np.log(case.T)  # open for all but one in T steps
        return
    arrays["w_hh"][:] = np.eye(case.H)
    for name in ("w_ih", "b_ih", "b_hh"):
        arrays[name] /= case.T
    if case.cell == "rnn-relu":  # every step adds: a unit that has closed is asked for ever smaller numbers otherwise
        for name in ("x", "w_ih", "b_ih", "b_hh"):
            arrays[name] = np.abs(arrays[name])


_TURNED = {"plain": _plain, "gates shut": _gates_shut, "saturated": _saturated, "memory": _memory}


def _block(rows: Any, gate: int, H: int) -> Any:
    return rows[gate * H : (gate + 1) * H]


def _near_the_kink(arrays: Arrays, within: float) -> bool:
    """Whether the relu of some unit is asked for a number within ``within`` of 0, of the largest asked for."""
    exact: dict[str, Any] = {name: array.astype(np.float64) for name, array in arrays.items()}
    h = rnn.forward(**exact, nonlinearity="relu")[0]
    before = np.concatenate([exact["h_0"][None], h[:-1]])
    z = exact["x"] @ exact["w_ih"].T + before @ exact["w_hh"].T + exact["b_ih"] + exact["b_hh"]
    return bool(np.abs(z).min() < within * np.abs(z).max())
