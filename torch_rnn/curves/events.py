"""Event files for TensorBoard: the loss and the gradient norm of every step, each side a run of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]
from torch.utils.tensorboard.summary import scalar

from numpy_rnn.files import write_aside
from numpy_rnn.training import Record
from torch_rnn.curves.runs import Pair

SIDES = ("numpy", "torch")
NAME = "events.out.tfevents.curves"  # without the time, so that an earlier run's is replaced


def prepare(directory: Path) -> None:
    """Create a directory for each side. Raises ``OSError`` if that cannot be."""
    for side in SIDES:
        (directory / side).mkdir(parents=True, exist_ok=True)


def write(directory: Path, pairs: Sequence[Pair]) -> list[Path]:
    """Write both sides' files into what ``prepare`` made, for ``tensorboard --logdir directory``; return their paths.

    The numbers keep the digits of float64; the time is that of writing.

    Raises ``OSError`` for what cannot be written.
    """
    paths = [directory / side / NAME for side in SIDES]
    for path, records in zip(paths, zip(*pairs, strict=True), strict=True):
        write_aside(path, partial(_write, records=records))
    return paths


def _write(path: Path, records: Sequence[Record]) -> None:
    now = time.time()
    with path.open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        for record in records:
            values = [
                value
                for name, number in (("loss", record.loss), ("grad_norm", record.grad_norm))
                for value in scalar(name, number, new_style=True, double_precision=True).value  # type: ignore[no-untyped-call]
            ]
            event = Event(wall_time=now, step=record.step, summary=Summary(value=values))
            writer.write(event.SerializeToString())
        writer.flush()
