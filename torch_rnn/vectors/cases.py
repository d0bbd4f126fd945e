"""The cases of the golden vectors: small, awkward, and each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy_rnn.diagnosis import Case
from numpy_rnn.typing import Array
from torch_rnn.vectors.formula import fill, seed_of

CELLS = {"rnn": 1, "lstm": 4, "gru": 3}
STEPS = 3  # of each optimizer
OPTIMIZERS: dict[str, dict[str, float]] = {
    "sgd": {"lr": 0.125, "momentum": 0.875},
    "adam": {"lr": 0.0078125, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
}


@dataclass(frozen=True)
class Spec:
    """One case. T, B, I, H and P are the sizes, ``why`` what it finds that others do not."""

    name: str
    why: str
    cell: str
    T: int = 6
    B: int = 4
    I: int = 3  # noqa: E741
    H: int = 5
    P: int = 0
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True
    nonlinearity: str = "tanh"
    lengths: tuple[int, ...] | None = None
    windows: tuple[int, ...] = ()
    scales: Mapping[str, float] = field(default_factory=dict)  # by how the tensor's name starts
    offsets: Sequence[float] = ()  # of the blocks of bias_ih

    def settings(self) -> dict[str, Any]:
        """What the manifest says of the case, besides its tensors."""
        names = ("cell", "nonlinearity", "T", "B", "I", "H", "P", "layers", "bidirectional", "bias")
        known = {name: getattr(self, name) for name in names}
        if self.cell != "rnn":
            del known["nonlinearity"]
        return {"why": self.why} | known | {"lengths": self.lengths, "windows": self.windows or (self.T,)}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of everything that is given: input, initial states, parameters, upstream gradients."""
        D, P, rows = 1 + self.bidirectional, self.P or self.H, CELLS[self.cell] * self.H
        states = {"h": (self.layers * D, self.B, P)}
        if self.cell == "lstm":
            states["c"] = (self.layers * D, self.B, self.H)
        shapes: dict[str, tuple[int, ...]] = {"x": (self.T, self.B, self.I)}
        shapes |= {f"{letter}_0": shape for letter, shape in states.items()}
        for layer in range(self.layers):
            for suffix in ("", "_reverse")[:D]:
                part = f"l{layer}{suffix}"
                shapes[f"weight_ih_{part}"] = (rows, self.I if layer == 0 else D * P)
                shapes[f"weight_hh_{part}"] = (rows, P)
                if self.bias:
                    shapes |= {f"bias_ih_{part}": (rows,), f"bias_hh_{part}": (rows,)}
                if self.P:
                    shapes[f"weight_hr_{part}"] = (P, self.H)
        shapes["doutput"] = (self.T, self.B, D * P)
        return shapes | {f"d{letter}_n": shape for letter, shape in states.items()}

    def sources(self) -> dict[str, dict[str, Any]]:
        """Where each given tensor comes from: what ``formula.fill`` takes."""
        sources: dict[str, dict[str, Any]] = {}
        for name in self.shapes():
            default = 0.5 if name.startswith(("weight", "bias")) else 1.0
            scale = next((s for start, s in self.scales.items() if name.startswith(start)), default)
            sources[name] = {"seed": seed_of(f"{self.name}/{name}"), "scale": scale}
            if self.offsets and name.startswith("bias_ih"):
                sources[name]["offsets"] = list(self.offsets)
        return sources

    def given(self) -> dict[str, Array]:
        """All given tensors, float64."""
        sources = self.sources()
        return {name: fill(shape, sources[name]) for name, shape in self.shapes().items()}

    def case(self, arrays: Mapping[str, Array]) -> Case:
        """The same for ``numpy_rnn.diagnosis``."""
        return Case(self.cell, arrays, self.nonlinearity, self.lengths, self.windows)


def all_specs() -> dict[str, Spec]:
    """Return every case by name.

    >>> len(all_specs()), all_specs()["lstm-projection"].P
    (44, 2)
    """
    specs = []
    for cell in CELLS:
        specs += _of_every_cell(cell)

    def add(name: str, why: str, cell: str, **options: Any) -> None:
        specs.append(Spec(name, why, cell, **options))

    relu: dict[str, Any] = {"nonlinearity": "relu"}
    add("rnn-relu", "the other nonlinearity; some units are closed", "rnn", **relu)
    add(
        "rnn-relu-deep-bidirectional", "relu, two layers of two directions", "rnn", layers=2, bidirectional=True, **relu
    )
    add("lstm-projection", "the state h is smaller than c", "lstm", P=2)
    add(
        "lstm-projection-deep-bidirectional",
        "projected states go to the next layer and back in time",
        "lstm",
        P=2,
        layers=2,
        bidirectional=True,
    )
    add("lstm-forget-closed", "f near sigmoid(-20): c forgets, and must stay finite", "lstm", offsets=(0, -20, 0, 0))
    add("lstm-forget-open", "f near sigmoid(6): c adds up, as in a counter", "lstm", offsets=(0, 6, 0, 0))
    add("gru-update-open", "z near sigmoid(5): the state passes nearly unchanged", "gru", offsets=(0, 5, 0))
    add("gru-reset-closed", "r near sigmoid(-20): the state does not reach n", "gru", offsets=(-20, 0, 0))
    return {spec.name: spec for spec in specs}


def _of_every_cell(cell: str) -> list[Spec]:
    make: Callable[..., Spec] = lambda name, why, **options: Spec(cell + name, why, cell, **options)  # noqa: E731
    return [
        make("", "the plain case: one layer, one direction, all sizes different"),
        make("-one-unit", "T=3, everything else 1: small enough to follow by hand", T=3, B=1, I=1, H=1),
        make("-one-step", "T=1: nothing is carried, h_0 is all the state there is", T=1),
        make("-batch-of-one", "B=1: a mean over the batch looks like a sum", B=1),
        make("-no-bias", "without biases", bias=False),
        make("-deep", "three layers: the middle one has neighbours on both sides", layers=3),
        make("-bidirectional", "two directions", bidirectional=True),
        make("-deep-bidirectional", "two layers of two directions", layers=2, bidirectional=True),
        make(
            "-lengths",
            "sequences of different lengths, unsorted, one of a single step; x and doutput are not zero behind them",
            bidirectional=True,
            lengths=(3, 6, 1, 4),
        ),
        make(
            "-windows",
            "two windows of one sequence, the state detached between them",
            T=7,
            windows=(4, 3),
        ),
        make(
            "-saturated",
            "large weights and biases: many gates are saturated",
            scales={"weight": 4.0, "bias": 8.0},
        ),
        make("-long", "T=60", T=60, B=2, I=2, H=3),
    ]
