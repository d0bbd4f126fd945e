"""Every mistake that the checks must notice, from all tables, with the check in which it shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from parity_tests.mutations import (
    descent,
    gru_cell,
    head,
    layers,
    losses,
    lstm_cell,
    mutated,
    optim,
    packing,
    recompute,
    rnn_cell,
    tape,
    training,
)
from parity_tests.mutations.judges.descent import Descent, Loss
from parity_tests.mutations.judges.head import Head
from parity_tests.mutations.judges.judge import Judge
from parity_tests.mutations.judges.loop import Chain, Training
from parity_tests.mutations.judges.network import Network


@dataclass(frozen=True)
class Mistake:
    """A small edit of the real source, and the strong check that must notice it."""

    area: str  # of the table of derivations/tests-that-cannot-fail.md
    id: str
    module: str
    attribute: str
    edits: tuple[tuple[str, str], ...]
    judge: Judge

    def __str__(self) -> str:
        return f"{self.area}: {self.id}"

    def planted(self) -> AbstractContextManager[None]:
        return mutated(self.module, self.attribute, *self.edits)


def _cells() -> Iterator[Mistake]:
    """The tables of the three cells: backward, forward, and what needs relu, a projection or blocks of steps.

    Not here: a backward that writes into its upstream gradients. The tape hands it a copy, so that no module can show
    it; the cells' own test does.
    """

    def rows(area: str, cell: str, table: list[Any], judge: Judge, attribute: str | None = None) -> Iterator[Mistake]:
        for row in table:
            name, edits = (attribute, row.values[0]) if attribute else row.values
            id = f"{name}-{row.id}" if attribute == "forward" else row.id
            id = f"{cell}-{row.id}" if area == "blocks of steps" else id
            yield Mistake(area, id, f"numpy_rnn.cells.{cell}", name, tuple(edits), judge)

    for area, cell, table in (("RNN", "rnn", rnn_cell), ("LSTM", "lstm", lstm_cell), ("GRU", "gru", gru_cell)):
        yield from rows(area, cell, table.MISTAKES, Network(cell), "backward")
        yield from rows(area, cell, table.MORE_MISTAKES, Network(cell))
        if table is rnn_cell:
            yield from rows(area, cell, table.RELU_MISTAKES, Network("rnn-relu"))
        else:
            yield from rows(area, cell, table.FORWARD_MISTAKES, Network(cell), "forward")
        if table is lstm_cell:
            yield from rows(area, cell, table.PROJECTION_MISTAKES, Network(cell, P=2), "backward")
    yield from rows("blocks of steps", "lstm", lstm_cell.BLOCK_MISTAKES, Network("lstm", block=3, P=2))
    yield from rows("blocks of steps", "gru", gru_cell.BLOCK_MISTAKES, Network("gru", block=3))


def _modules() -> Iterator[Mistake]:
    """Between the cells: layers, directions, dropout, lengths, recomputing, and the tape."""
    deep, both = Network(layers=3), Network("lstm", bidirectional=True)
    dropped = Network(layers=4, dropout=0.5)
    for area, table, judge in (
        ("layers", layers.LAYERS, deep),
        ("directions", layers.DIRECTIONS, both),
        ("dropout", layers.DROPOUT, dropped),
    ):
        for row in table:
            yield Mistake(area, row.id, "numpy_rnn.modules.window", row.values[0], tuple(row.values[1]), judge)
    lengths = Network(lengths=True)
    for area, table, judge in (
        ("blocks of steps", packing.RUNS, Network(block=3)),
        ("lengths and layouts", packing.LENGTHS, lengths),
        ("lengths and layouts", packing.FLIPS, Network("gru", lengths=True, bidirectional=True)),
        ("lengths and layouts", packing.PACKED, Network(lengths=True, packed=True)),
        ("lengths and layouts", packing.BATCH_FIRST, Network(batch_first=True)),
        ("embedding, dropout, linear", head.MISTAKES, Head()),
        ("tape", [*tape.RULES, *tape.MISTAKES], Network(layers=1, rules=True)),
    ):
        for row in table:
            yield Mistake(area, row.id, row.values[0], row.values[1], tuple(row.values[2]), judge)
    for row in recompute.MISTAKES:
        module, judge = "numpy_rnn.modules.recompute", Network("lstm", every=3)
        yield Mistake("recomputing", row.id, module, f"Recomputed.{row.values[0]}", tuple(row.values[1]), judge)


def _loops() -> Iterator[Mistake]:
    """The training loop, and chains of single steps."""
    for row in training.CARRY:
        carry, attribute, edits = row.values
        yield Mistake("training loop", row.id, "numpy_rnn.training", attribute, tuple(edits), Training(carry))
    for row in training.STEP_CELLS:
        cell, attribute, edits = row.values
        yield Mistake("single steps", row.id, "numpy_rnn.modules.step_cells", attribute, tuple(edits), Chain(cell))


def _descent() -> Iterator[Mistake]:
    """Losses, optimizers, clipping, schedules."""
    for row in losses.MISTAKES:
        loss, module, attribute, edits = row.values
        yield Mistake("losses", row.id, module, attribute, tuple(edits), Loss(loss))
    for row in optim.MISTAKES:
        name, settings, (module, attribute, *edits) = row.values
        yield Mistake("optimizers", row.id, module, attribute, tuple(edits), Descent(name, tuple(settings.items())))
    for row in descent.CLIPPING:
        yield Mistake(
            "clipping", row.id, descent.CLIP, row.values[0], tuple(row.values[1]), Descent(clip=True, steps=16)
        )
    for row in descent.SCHEDULES:
        name, settings, method, edits = row.values
        judge = Descent("SGD", (("lr", 0.1),), name, tuple(settings.items()), steps=30)
        yield Mistake("schedules", f"{name}-{row.id}", descent.SCHEDULE, f"{name}.{method}", tuple(edits), judge)


MISTAKES = [*_cells(), *_modules(), *_loops(), *_descent()]
