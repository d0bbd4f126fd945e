"""Results as JSON."""

import json
from pathlib import Path
from typing import Any

from numpy_rnn.files import write_aside


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as strict JSON: nan and inf are refused, so the caller says what stands for them."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"

    def write(aside: Path) -> None:
        aside.write_text(text, encoding="utf-8")

    write_aside(path, write)
