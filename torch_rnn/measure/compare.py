"""Two records beside each other: which ratios have moved by more than their spread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch_rnn.measure.bench import FORMAT, PHASES, Record
from torch_rnn.measure.report import conditions, short
from torch_rnn.measure.timing import geometric_mean


def load(path: Path) -> Record:
    """Return the record in a file.

    Raises ``ValueError`` for anything else, ``OSError`` for a file that cannot be read.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"not a record of rnn-parity bench of format {FORMAT}")
    try:
        conditions(record)
        for row in record["rows"]:
            _key(row)
            for phase in PHASES:
                geometric_mean([row["ratio"][phase][name] for name in ("q1", "median", "q3")])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a whole record of rnn-parity bench: {error!r}") from error
    return record


def changes(old: Record, new: Record) -> list[dict[str, Any]]:
    """Return, for every row that both have and each phase, the new ratio over the old, and whether it moved.

    It moved where the middle halves of the rounds' ratios do not overlap.
    """
    before = {_key(row): row["ratio"] for row in old["rows"]}
    found = []
    for row in new["rows"]:
        if (key := _key(row)) not in before:
            continue
        for phase in PHASES:
            was, now = before[key][phase], row["ratio"][phase]
            found.append(
                {
                    "row": f"{row['cell']} {row['dtype']} {row['label']}",
                    "phase": phase,
                    "old": was["median"],
                    "new": now["median"],
                    "ratio": now["median"] / was["median"],
                    "moved": now["q1"] > was["q3"] or now["q3"] < was["q1"],
                }
            )
    return found


def text(old: Record, new: Record) -> str:
    """Say what has moved since ``old``."""
    found = changes(old, new)
    lines = [f"Against the measurement of {old['date']} (new ratio over old: above 1 NumPy has gained on PyTorch):"]
    if not found:
        return f"{lines[0]}\nno row is in both."
    for name in ("machine", "versions", "settings"):
        if differing := [key for key in new[name] if new[name][key] != old[name].get(key)]:
            lines.append(f"the two differ in {name}: {', '.join(differing)}")
    moved = sorted((change for change in found if change["moved"]), key=lambda change: float(change["ratio"]))
    for change in moved:
        figures = f"{short(change['old']):>7} -> {short(change['new']):<6}"
        lines.append(f"{change['row']:<46}{change['phase']:<9}{figures} x {short(change['ratio'])}")
    both = geometric_mean([change["ratio"] for change in found if change["phase"] == "both"])
    lines.append(f"{len(moved)} of {len(found)} figures moved by more than their spread")
    lines.append(f"geometric mean of both, over {len(found) // len(PHASES)} rows: x {short(both)}")
    return "\n".join(lines)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("cell", "dtype", "T", "B", "I", "H", "layers", "bidirectional", "lengths"))
