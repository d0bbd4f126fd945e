"""Files that appear whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_aside(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` make the file under another name and rename it, so that nobody reads half of it."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as strict JSON: nan and inf are refused, so the caller says what stands for them."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"

    def write(aside: Path) -> None:
        aside.write_text(text, encoding="utf-8")

    write_aside(path, write)
