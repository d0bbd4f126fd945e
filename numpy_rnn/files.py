"""Files that appear whole or not at all."""

import os
import threading
from collections.abc import Callable
from pathlib import Path


def write_aside(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` make the file under another name and rename it, so that nobody reads half of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "greeting.txt")
    ...     write_aside(path, lambda aside: aside.write_text("hello") and None)
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('hello', 1)

    Whatever ``write`` raises is raised; ``path`` is then what it was before, and nothing else is left. A link stays a
    link, to the new file; what is no file (a pipe, a device) is written to, not replaced.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        write(path)
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        write(aside)
        with aside.open("rb+") as file:
            os.fsync(file.fileno())  # the content is on the disk before the name is
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
