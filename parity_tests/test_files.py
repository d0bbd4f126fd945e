"""Files appear whole or not at all, and what is no file is not replaced."""

import os
import threading
from pathlib import Path

import pytest

from numpy_rnn.files import write_aside
from torch_rnn.files import write_json


def test_a_failing_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(aside: Path) -> None:
        aside.write_text("half")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_aside(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_to_the_new_file(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    write_json(link, {"a": 1})
    assert link.is_symlink()
    assert real.read_text() == '{\n  "a": 1\n}\n'


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_text()))
    reader.start()
    write_json(pipe, [1])
    reader.join()
    assert seen == ["[\n  1\n]\n"]
    assert pipe.is_fifo()
