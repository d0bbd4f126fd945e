"""Results as text and as JSON."""

import json
from pathlib import Path
from typing import Any

from numpy_rnn.files import write_aside


def write_text(path: Path, text: str) -> None:
    """Write ``text`` in UTF-8."""

    def write(aside: Path) -> None:
        aside.write_text(text, encoding="utf-8")

    write_aside(path, write)


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as strict JSON: nan and inf are refused, so the caller says what stands for them."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")
