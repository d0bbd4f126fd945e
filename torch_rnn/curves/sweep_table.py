"""The rows of a sweep as one table: for programs with all columns, for people with those that differ."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy_rnn.files import write_aside
from torch_rnn.curves.sweep import Planned, Row
from torch_rnn.files import write_text

FILES = ("sweep.csv", "sweep.jsonl", "sweep.md")
OF_VERDICT = ("outcome", "statistic", "threshold", "steps", "shown_at", "separate_at", "growth")
OF_FAULT = ("step", "stage", "tensor", "difference", "rounding")
LEGEND = """\
"of rounding": how many times what rounding alone does to either curve the two
differ by, at the worst step, and how many are allowed. "separate": the step from
which they are 1 % of the loss apart. "growth": of the difference, by each step
until then. "loss" of the last epoch and "test error" are NumPy's / PyTorch's
where four digits show a difference."""


def write(directory: Path, wanted: Sequence[Planned], rows: Mapping[Planned, Row]) -> list[Path]:
    """Write the rows that are there as sweep.csv, sweep.jsonl and sweep.md, in the order of ``wanted``.

    Raises ``OSError`` for what cannot be written.
    """
    flat = [flattened(rows[run]) for run in wanted if run in rows]
    by_column = {name: None for row in flat for name in row}
    lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in flat)
    page = markdown(wanted, rows)
    table, json_lines, text = paths = [directory / name for name in FILES]
    directory.mkdir(parents=True, exist_ok=True)
    write_aside(table, lambda aside: _write_csv(aside, sorted(by_column, key=_rank), flat))
    write_text(json_lines, lines)
    write_text(text, page)
    return paths


def flattened(row: Row) -> dict[str, Any]:
    """Return a row by column: settings, verdict, first fault, last epoch, each test span's score, sentence, error."""
    verdict = row.get("verdict", {})
    fault = verdict.get("fault") or {}
    flat = dict(row["settings"])
    flat |= {name: verdict.get(name) for name in OF_VERDICT}
    flat |= {f"fault_{name}": fault.get(name) for name in OF_FAULT}
    flat |= row["epochs"][-1] if "epochs" in row else {"epoch": None, "numpy_loss": None, "torch_loss": None}
    flat |= {name: row.get(name) for name in ("measure", "baseline")}
    for i, score in enumerate(row.get("scores", ()), 1):
        flat |= {f"score_{i}_{name}": value for name, value in score.items()}
    return flat | {"sentence": verdict.get("sentence"), "error": row.get("error")}


def _rank(column: str) -> int:
    """The scores of a row with more of them would else come after the sentence of the first."""
    return ("sentence", "error").index(column) + 1 if column in ("sentence", "error") else 0


def _write_csv(path: Path, columns: Sequence[str], flat: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in flat:
            writer.writerow({name: json.dumps(v) if isinstance(v, dict) else v for name, v in row.items()})


def markdown(wanted: Sequence[Planned], rows: Mapping[Planned, Row]) -> str:
    """Return a page: the settings that all runs share, a table of the rows, what its columns mean."""
    settings = [asdict(run.settings) for run in wanted]
    for entry in settings:
        del entry["digest"]  # 64 characters, for programs; the data have a name
    differ = [name for name in settings[0] if any(entry[name] != settings[0][name] for entry in settings)]
    shared = {name: value for name, value in settings[0].items() if name not in differ and _cell(value)}
    lines = [[*differ, "verdict", "of rounding", "separate", "growth", "loss", "test error", "baseline", "remark"]]
    for run, entry in zip(wanted, settings, strict=True):
        if run in rows:
            lines.append([*(_cell(entry[name]) for name in differ), *_judged(rows[run])])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    table = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    page = [", ".join(f"{name} {_cell(value)}" for name, value in shared.items())]
    return "\n\n".join([*page, "\n".join(f"| {line} |" for line in table), LEGEND]) + "\n"


def _judged(row: Row) -> list[str]:
    if "error" in row:
        return ["failed", *[""] * 6, _cell(row["error"])]
    verdict, last, scores = row["verdict"], row["epochs"][-1], row["scores"]
    fault = verdict["fault"]
    places = [_place(fault)] if fault else [f"{_place(place)} is not finite" for place in verdict["not_finite"]]
    times = "" if verdict["threshold"] is None else f"{_times(verdict['statistic'])} of {_times(verdict['threshold'])}"
    return [
        verdict["outcome"],
        times,
        _written(verdict["separate_at"]),
        _written(verdict["growth"]),
        _both(last["numpy_loss"], last["torch_loss"]),
        ", ".join(_both(score["numpy"], score["torch"]) for score in scores),
        ", ".join(_written(score["baseline"]) for score in scores),
        places[0] if places else "",
    ]


def _place(found: Mapping[str, Any]) -> str:
    return f"step {found['step']}, {found['stage']}: {found['tensor']}"


def _times(excess: float | str) -> str:
    """Return ten to a power, which is a string where it is not finite."""
    return f"{10 ** float(excess):.2g}"


def _both(ours: float | str, theirs: float | str) -> str:
    return " / ".join(dict.fromkeys((_written(ours), _written(theirs))))


def _written(value: float | str | None) -> str:
    """Return a measured number with four digits; it is a string where it is not finite."""
    return f"{value:.4g}" if isinstance(value, float) else _cell(value)


def _cell(value: Any) -> str:
    return "" if value in (None, {}) else str(value).replace("|", "\\|")
