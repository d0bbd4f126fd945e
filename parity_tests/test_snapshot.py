"""A run that is killed, stopped, or refused by the disk goes on as if nothing had happened, to the last bit."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numpy_rnn
from numpy_rnn import tasks
from numpy_rnn.files import write_aside
from numpy_rnn.training import NUMPY
from numpy_rnn.weights import load_weights, save_weights
from torch_rnn.cli import curves, progress
from torch_rnn.curves import report, snapshot
from torch_rnn.curves.runs import Run, Settings
from torch_rnn.files import write_json

SMALL: dict[str, Any] = {
    "task": "sunspots",
    "cell": "rnn",
    "hidden": 3,
    "layers": 1,
    "window": 60,
    "carry": "detach",
    "optimizer": "adam",
    "lr": 0.01,
    "clip": None,
    "epochs": 3,
    "dtype": "float64",
    "seed": 3,
    "controls": 1,
}
WORDS = ["curves", "--hidden", "3", "--window", "60", "--epochs", "3", "--controls", "1"]  # 12 steps
RESULTS = ("curves.csv", "run.json")


@pytest.fixture(autouse=True)
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """To draw takes most of the time of so short a run, and is not what is looked at here."""

    def write(directory: Path, run: Run, scores: Any, verdict: Any, *_: Any) -> list[Path]:
        write_aside(directory / RESULTS[0], lambda aside: report._write_csv(aside, run.pairs))
        write_json(directory / RESULTS[1], report.summary(run, scores, verdict))
        return []

    monkeypatch.setattr(report, "write", write)


@pytest.fixture(autouse=True)
def no_signal_is_ignored() -> Iterator[None]:
    """As Ctrl-C is where the tests run in the background."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


VARIANTS: dict[str, dict[str, Any]] = {
    "adadelta": {"lr": 1.0, "layers": 2, "dropout": 0.4},
    "sgd": {"carry": "reset", "clip": 0.5, "optimizer_settings": {"momentum": 0.9, "nesterov": True}},
    "adagrad": {"cell": "lstm", "layers": 2, "dropout": 0.3, "dtype": "float32", "bidirectional": True},
    "rmsprop": {"cell": "gru", "dtype": "float32", "optimizer_settings": {"momentum": 0.9, "centered": True}},
    "adam": {
        "dtype": "float32",
        "torch_dtype": "float64",
        "optimizer_settings": {"amsgrad": True, "betas": (0.8, 0.9)},
    },
    "adamw": {"cell": "gru", "schedule": "steplr", "schedule_settings": {"step_size": 1, "gamma": 0.5}},
    "nadam": {"cell": "lstm", "schedule": "reducelronplateau", "schedule_settings": {"patience": 0}},
    "radam": {"carry": "full", "epochs": 9, "schedule": "exponentiallr", "schedule_settings": {"gamma": 0.9}},
    "adamax": {"task": "text", "cell": "lstm", "proj_size": 2, "embedding": 2, "window": 100},
    "asgd": {"optimizer_settings": {"t0": 3}, "schedule": "cosineannealinglr", "schedule_settings": {"T_max": 2}},
}


def in_pieces(run: Run, path: Path, steps: int) -> Run:
    """Train to the end, and after so many steps save the run, forget it, and load it."""
    while not run.over:
        for _ in zip(range(steps), run.train(), strict=False):
            pass
        snapshot.save(run, path)
        run = snapshot.load(path)
    return run


@pytest.mark.parametrize("optimizer", NUMPY.optimizers)
def test_a_run_in_pieces_is_the_run(tmp_path: Path, optimizer: str) -> None:
    """The snapshots are equal byte for byte: losses, norms, weights, optimizers, carries, controls and generators."""
    settings = Settings(**{**SMALL, "optimizer": optimizer, **VARIANTS[optimizer]})
    whole = Run(settings)
    list(whole.train())
    again = in_pieces(Run(settings), tmp_path / "pieces.npz", 5)
    assert again.settings == settings
    assert again.pairs == whole.pairs
    snapshot.save(whole, tmp_path / "whole.npz")
    snapshot.save(again, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.usefixtures("untraced")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_run_that_is_killed_again_and_again_is_the_run(run, tmp_path: Path) -> None:
    words, moments = [*WORDS, "--epochs", "20", "--optimizer", "nadam"], random.Random(7)  # 80 steps
    path = tmp_path / "killed" / snapshot.NAME
    with processes(tmp_path) as start:
        for kill in range(2):
            argv = ["--resume", "killed"] if kill else [*words[1:], "--out", "killed"]
            pid, status = start("curves", *argv, "--snapshot-every", "0")
            step = 5 + 30 * kill + moments.randrange(20)
            late = time.monotonic() + 120
            while (snapshot.unfinished(path) or (0, 0))[0] < step and time.monotonic() < late:
                time.sleep(0.05)
            time.sleep(0.02 * moments.random())
            os.kill(pid, signal.SIGKILL)
            assert status() == signal.SIGKILL
            assert step <= snapshot.unfinished(path)[0] < 80
    assert run("curves", "--resume", "killed")[0] == 0
    assert run(*words, "--out", "whole")[0] == 0
    assert results(tmp_path / "killed") == results(tmp_path / "whole")
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == sorted(NAMES)  # no half of a file


FORKS = """
import os, sys
import torch, torch_rnn.curves.report, torch_rnn.curves.verdict
from torch_rnn.cli.main import main
torch.optim.SGD(torch.nn.Linear(1, 1).parameters())  # imports the rest
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(line.split()))
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@contextmanager
def processes(directory: Path) -> Iterator[Callable[..., tuple[int, Callable[[], int]]]]:
    """Yield what starts the command as a process, and returns its number and how to wait for its status.

    They are forks of one process that has torch already, which takes longer to import than the runs take.
    """
    there = {**os.environ, "PYTHONPATH": str(Path(numpy_rnn.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", FORKS],
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=there,
    ) as parent:

        def start(*argv: str) -> tuple[int, Callable[[], int]]:
            parent.stdin.write(" ".join(argv) + "\n")
            parent.stdin.flush()
            return int(parent.stdout.readline()), lambda: int(parent.stdout.readline())

        yield start
        parent.stdin.close()


NAMES = (*RESULTS, snapshot.NAME)


def results(directory: Path) -> list[bytes]:
    return [(directory / name).read_bytes() for name in RESULTS]


def after(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], object]) -> None:
    """Let ``act`` happen while the command makes this step."""

    @contextmanager
    def training(made: int, total: int) -> Iterator[Callable[[float], None]]:
        steps = iter(range(made + 1, total + 1))
        yield lambda loss: next(steps) == step and act() and None

    monkeypatch.setattr(curves, "training", training)


# Ctrl-C and SIGTERM


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_results_and_the_resumed_run_is_the_run(run, tmp_path, monkeypatch, number, expected) -> None:
    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        after(patch, 5, lambda: signal.raise_signal(number))
        status, out, err = run(*WORDS, "--out", "a b")
    assert (status, err) == (expected, "stopped at step 5 of 12; to go on: rnn-parity curves --resume 'a b'\n")
    assert signal.getsignal(number) is before
    assert "at each of 5 steps" in " ".join(out.split())
    assert len((tmp_path / "a b" / "curves.csv").read_text().splitlines()) == 6
    assert json.loads((tmp_path / "a b" / "run.json").read_text())["steps"] == {"made": 5, "planned": 12}
    assert sorted(path.name for path in (tmp_path / "a b").iterdir()) == sorted(NAMES)
    status, out, err = run("curves", "--resume", "a b")
    assert (status, err) == (0, "")
    assert "Resumed at step 5 of 12." in out
    assert run(*WORDS, "--out", "whole")[0] == 0
    assert results(tmp_path / "a b") == results(tmp_path / "whole")


def test_a_second_ctrl_c_stops_at_once_with_whole_files(run, tmp_path, monkeypatch) -> None:
    assert run(*WORDS)[0] == 0
    before = results(tmp_path / "loss-curves")

    def twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    after(monkeypatch, 5, twice)
    status, _, err = run(*WORDS, "--lr", "0.5")
    said = "rnn-parity curves: interrupted before all files were written; nothing is saved for --resume\n"
    assert (status, err) == (130, said)
    assert results(tmp_path / "loss-curves") == before
    assert sorted(path.name for path in (tmp_path / "loss-curves").iterdir()) == sorted(NAMES)


def test_a_signal_at_the_last_step_changes_nothing(run, monkeypatch) -> None:
    after(monkeypatch, 12, lambda: signal.raise_signal(signal.SIGINT))
    assert run(*WORDS)[::2] == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_between_the_last_step_and_the_files(run, tmp_path, monkeypatch, number) -> None:
    write = report.write

    def signalled(times: int) -> None:
        def late(*args: Any) -> list[Path]:
            for _ in range(times):
                signal.raise_signal(number)
            return write(*args)

        monkeypatch.setattr(report, "write", late)

    signalled(2)
    status, _, err = run(*WORDS)
    again = "step 12 is saved: rnn-parity curves --resume loss-curves"
    assert (status, err) == (
        128 + number,
        f"rnn-parity curves: interrupted before all files were written; {again}\n",
    )
    assert not (tmp_path / "loss-curves" / RESULTS[0]).exists()
    signalled(1)
    assert run("curves", "--resume", "loss-curves")[::2] == (0, "")
    assert (tmp_path / "loss-curves" / RESULTS[0]).exists()


def test_signals_that_are_ignored_stay_so_and_a_thread_has_none() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with progress.stoppable() as stopped:
            signal.raise_signal(signal.SIGINT)
            assert stopped() is None
    finally:
        signal.signal(signal.SIGINT, before)
    seen: list[int | None] = []

    def elsewhere() -> None:
        with progress.stoppable() as stopped:
            seen.append(stopped())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [None]


# A run that has ended


def test_a_run_that_has_ended_is_judged_again_made_longer_and_made_shorter(run, tmp_path: Path) -> None:
    for epochs in (2, 3, 4):
        run(*WORDS, "--epochs", epochs, "--out", f"whole-{epochs}")
    assert run(*WORDS)[0] == 0
    out = tmp_path / "loss-curves"
    before = results(out)
    status, text, err = run("curves", "--resume", "loss-curves")
    assert (status, err) == (0, "")
    assert "Ended already at step 12 of 12." in text
    assert results(out) == before
    assert run("curves", "--resume", "loss-curves", "--epochs=4")[0] == 0
    assert results(out) == results(tmp_path / "whole-4")
    message = "argument --resume: loss-curves/snapshot.npz is at step 16, and 2 epochs end at 8"
    assert run("curves", "--resume", "loss-curves", "--epochs", "2") == refusal(message)


def test_a_loss_that_is_not_finite_ends_the_run_for_good(run, tmp_path: Path) -> None:
    words = [*WORDS, "--cell", "rnn-relu", "--optimizer", "sgd", "--lr", "1e200"]
    assert run(*words)[0] == 3
    before = results(tmp_path / "loss-curves")
    status, out, _ = run("curves", "--resume", "loss-curves", "--epochs", "3")
    assert status == 3
    assert re.search(r"Ended already at step \d of 12\.", out)
    assert results(tmp_path / "loss-curves") == before
    assert b"Infinity" not in before[1]
    assert b"NaN" not in before[1]
    assert run(*words)[0] == 3  # begun anew


# What is refused


def refusal(message: str) -> tuple[int, str, str]:
    return 2, "", f"rnn-parity curves: error: {message}\n"


@pytest.fixture
def stopped(run, monkeypatch, tmp_path: Path) -> Path:
    """The snapshot of a run that stopped at step 5."""
    with monkeypatch.context() as patch:
        after(patch, 5, lambda: signal.raise_signal(signal.SIGINT))
        run(*WORDS)
    return tmp_path / "loss-curves" / snapshot.NAME


def test_an_unfinished_run_is_not_replaced(run, stopped: Path) -> None:
    before = stopped.read_bytes()
    message = (
        "argument --out: loss-curves holds a run that stopped at step 5 of 12: go on with it by --resume loss-curves, "
        "name another directory, or delete its snapshot.npz"
    )
    assert run(*WORDS) == refusal(message)
    assert stopped.read_bytes() == before
    stopped.write_bytes(before[:1000])  # nothing goes on from here
    assert run(*WORDS)[0] == 0


def test_settings_beside_resume_are_refused_by_name(run, stopped: Path) -> None:
    tail = "not allowed with --resume, whose run keeps its settings; --epochs, --snapshot-every, --tensorboard are"
    for option in (["--lr", "0.1"], ["--controls=1"], ["--clip", "off"], ["--out", "loss-curves"]):
        name = option[0].partition("=")[0]
        assert run("curves", "--resume", "loss-curves", *option) == refusal(f"argument {name}: {tail}")


def edited(**changes: Any) -> Callable[[Path], None]:
    """Return what changes entries of a snapshot's JSON part."""

    def edit(path: Path) -> None:
        arrays = load_weights(path)
        content = {**json.loads(arrays["json"].tobytes()), **changes}
        save_weights({**arrays, "json": np.frombuffer(json.dumps(content).encode(), np.uint8)}, path)

    return edit


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


def foreign(path: Path) -> None:
    save_weights({"weight": np.ones(3)}, path)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (Path.unlink, "expected a directory that holds a run, got loss-curves without snapshot.npz, .*"),
        (truncate, "{} is not a whole .npz file: .*"),
        (flip_a_bit, "{} is not a whole .npz file: .*"),
        (foreign, "{} is no snapshot of a run"),
        (edited(format=2), "{} is of format 2, and this program reads format 1"),
        (edited(versions={"torch": "1.0"}), "{} was written with torch 1.0, not .*: what follows would not be .*"),
        (edited(settings={"task": "sunspots"}), "{} does not fit this program: .*"),
        (edited(loops=[[{}, {}], [{}, {}]]), "{} does not fit this program: 'position'"),
    ],
)
def test_a_snapshot_that_cannot_be_used_is_one_line(run, stopped: Path, harm, message: str) -> None:
    harm(stopped)
    status, out, err = run("curves", "--resume", "loss-curves")
    assert (status, out) == (2, "")
    expected = f"rnn-parity curves: error: argument --resume: {message.format('loss-curves/snapshot.npz')}\n"
    assert re.fullmatch(expected, err), err


def test_data_that_have_changed_since_are_refused(run, stopped: Path, monkeypatch) -> None:
    task = tasks.load("sunspots")
    moved = task.inputs.copy()
    moved[7] += 1e-9
    monkeypatch.setattr(tasks, "load", lambda *_, **__: replace(task, inputs=moved))
    path = "loss-curves/snapshot.npz"
    message = f"argument --resume: {path} is of a run on other data: those of sunspots have changed since"
    assert run("curves", "--resume", "loss-curves") == refusal(message)


def test_a_file_of_data_is_read_again_and_must_be_the_same(run, monkeypatch, tmp_path: Path) -> None:
    table = tmp_path / "waves.csv"
    table.write_text("\n".join(["wave", *(f"{np.sin(t):.6f}" for t in range(300))]))
    words = [*WORDS, "--csv", "waves.csv"]  # 12 steps
    with monkeypatch.context() as patch:
        after(patch, 5, lambda: signal.raise_signal(signal.SIGINT))
        assert run(*words)[0] == 130
    before = table.read_text()
    table.write_text(before.replace("0.841471", "0.841472"))
    status, _, err = run("curves", "--resume", "loss-curves")
    assert (status, err.count("\n")) == (2, 1)
    assert re.search(r"waves\.csv.* has changed since", err)
    table.unlink()
    status, _, err = run("curves", "--resume", "loss-curves")
    assert (status, err.count("\n")) == (2, 1)
    assert f"argument --resume: expected the run's file {table.resolve()}, got: No such file" in err
    table.write_text(before)
    assert run("curves", "--resume", "loss-curves")[0] == 0
    assert run(*words, "--out", "whole")[0] == 0
    assert results(tmp_path / "loss-curves") == results(tmp_path / "whole")


# A disk that refuses


class Disk:
    """Stands in for ``os.fsync``, where a full disk shows; ``full`` says of each call in turn whether it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, full: Callable[[int], bool]) -> None:
        self.calls = 0
        self.full = full
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, file: int) -> None:
        self.calls += 1
        if self.full(self.calls):
            raise OSError(errno.ENOSPC, "No space left on device")


REFUSED = "rnn-parity curves: cannot save what --resume needs: No space left on device\n"


def test_a_full_disk_does_not_stop_the_training_and_is_said_once(run, tmp_path: Path, monkeypatch) -> None:
    assert run(*WORDS, "--out", "whole")[0] == 0
    Disk(monkeypatch, lambda call: call in (2, 3, 4))
    status, _, err = run(*WORDS, "--snapshot-every", "0")
    assert (status, err) == (0, REFUSED)
    assert results(tmp_path / "loss-curves") == results(tmp_path / "whole")


def test_results_that_cannot_be_written_are_printed_and_what_is_kept_is_said(run, tmp_path, monkeypatch) -> None:
    assert run(*WORDS)[0] == 0
    directory = tmp_path / "loss-curves"
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with monkeypatch.context() as patch:
        Disk(patch, lambda call: True)
        status, out, err = run(*WORDS, "--lr", "0.5")
    assert status == 2
    assert "Rounding: at each of 12 steps" in out
    problem = "cannot write into loss-curves: No space left on device;"
    assert err == f"{REFUSED}rnn-parity curves: error: {problem} nothing is saved for --resume\n"
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    with monkeypatch.context() as patch:
        Disk(patch, lambda call: call > 1)
        status, out, err = run(*WORDS, "--lr", "0.5")
    kept = "step 12 is saved: rnn-parity curves --resume loss-curves"
    assert (status, err) == (2, f"rnn-parity curves: error: {problem} {kept}\n")
    assert {name: (directory / name).read_bytes() for name in RESULTS} == {name: before[name] for name in RESULTS}
    assert run("curves", "--resume", "loss-curves")[0] == 0
    assert run(*WORDS, "--lr", "0.5", "--out", "whole")[0] == 0
    assert results(directory) == results(tmp_path / "whole")


def test_what_a_killed_process_left_half_written_is_removed(run, tmp_path: Path) -> None:
    (tmp_path / "loss-curves").mkdir()
    (tmp_path / "loss-curves" / ".snapshot.npz.123-456.part").write_text("half")
    assert run(*WORDS)[0] == 0
    assert sorted(path.name for path in (tmp_path / "loss-curves").iterdir()) == sorted(NAMES)


# Progress


def test_a_log_has_a_line_for_each_tenth_of_long_work(monkeypatch, capsys) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for seconds_a_step, lines in ((0.1, 0), (0.9, 1), (2.0, 2), (60.0, 8)):
        with progress.training(20, 100) as step:
            for _ in range(80):
                now[0] += seconds_a_step
                step(0.25)
        assert len(capsys.readouterr().err.splitlines()) == lines, seconds_a_step
    with progress.training(20, 100) as step:
        for _ in range(40):
            now[0] += 90.0
            step(0.25)
    assert capsys.readouterr().err.splitlines()[-1] == (
        "training: 60 of 100 steps, loss 0.25, 1:00:00 gone, 1:00:00 left"
    )


def test_a_terminal_has_a_bar(monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with progress.training(20, 100) as step:
        step(0.25)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert re.search(r"training .* 21/100 steps, loss 0\.25, 0:00:00 gone, .* left", shown)
