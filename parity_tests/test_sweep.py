"""``rnn-parity sweep``: what a file may ask for, one row a run, going on after a stop, and a Dask cluster."""

import csv
import json
import math
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, fields
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from distributed import LocalCluster
from distributed.scheduler import KilledWorker

import numpy_rnn
import torch_rnn.curves
from torch_rnn import compare_curves
from torch_rnn.cli import sweep_file
from torch_rnn.cli.options import BadInput
from torch_rnn.curves import cluster as cluster_module
from torch_rnn.curves import sweep
from torch_rnn.curves.runs import Run, Settings

ROOT = Path(numpy_rnn.__file__).parents[1]
SMALL = '[settings]\ntask = "sine"\nhidden = 2\nwindow = 100\nepochs = 2\ncontrols = 1\n'
GRID = SMALL + '[grid]\ncell = ["rnn", "gru"]\nseed = [0, 1]\n'


@pytest.fixture
def file(tmp_path):
    """Write a file for a sweep and return its path."""

    def write(text):
        (tmp_path / "grid.toml").write_text(text, encoding="utf-8")
        return tmp_path / "grid.toml"

    return write


def outcomes(directory):
    with (directory / "sweep.csv").open(newline="") as table:
        return [(row["cell"], row["seed"], row["outcome"], row["error"]) for row in csv.DictReader(table)]


def test_the_grid_s_last_key_changes_fastest_and_the_explicit_runs_follow(file):
    adam = '[[run]]\noptimizer-settings = {betas = [0.8, 0.9], amsgrad = true}\noptimizer = "adam"\n'
    article = '[[run]]\ntask = "article"\nhidden = 1\nlr = 1\nclip = "off"\n'
    wanted = [run.settings for run in sweep_file.read(file(GRID + adam + article))]
    assert [(s.cell, s.seed) for s in wanted[:4]] == [("rnn", 0), ("rnn", 1), ("gru", 0), ("gru", 1)]
    assert wanted[4].optimizer_settings == {"betas": (0.8, 0.9), "amsgrad": True}
    assert (wanted[4].lr, wanted[4].clip, wanted[4].epochs, wanted[4].controls) == (0.01, None, 2, 1)
    assert (wanted[5].task, wanted[5].cell, wanted[5].lr, wanted[5].clip) == ("article", "rnn", 1.0, None)
    assert type(wanted[5].lr) is float  # as the option would make it, so that it is the same run


@pytest.mark.parametrize("name", [field.name for field in fields(Settings) if field.name != "digest"])
def test_every_setting_may_be_named(file, name):
    """Each that ``rnn-parity curves`` has an option for, as the option is written too."""
    for key in (name, name.replace("_", "-")):
        with pytest.raises(BadInput, match=rf"\[\[run\]\] 1 {name}: expected .*, got \[1\]"):
            sweep_file.read(file(f"[[run]]\n{key} = [1]\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[grid\n", r"expected TOML in UTF-8, got: .*line 1.*"),
        (SMALL, r"expected a \[grid\] or a \[\[run\]\], got neither"),
        ("[gird]\n", "expected the tables settings, grid, run, got gird"),
        ("grid = 3\n", r"expected \[grid\], got grid = 3"),
        ("run = [3]\n", r"expected \[\[run\]\], got run = \[3\]"),
        (SMALL + "[grid]\nlern = [1]\n", r"\[grid\] lern: expected one of task, cell, hidden, .*"),
        (SMALL + "[grid]\nseed = 3\n", r"\[grid\] seed: expected a list of at least one value, got 3"),
        (SMALL + "[grid]\nseed = []\n", r"\[grid\] seed: expected a list of at least one value, got \[\]"),
        (SMALL + "[grid]\nseed = [true]\n", r"\[grid\] seed: expected a whole number, got True"),
        (SMALL + "[grid]\nseed = [1.0]\n", r"\[grid\] seed: expected a whole number, got 1\.0"),
        (SMALL + "[[run]]\nlr = '1'\n", r"\[\[run\]\] 1 lr: expected a number, got '1'"),
        (SMALL + "[[run]]\n[[run]]\nclip = 'on'\n", r"\[\[run\]\] 2 clip: expected a number, got 'on'"),
        ("[settings]\nlr = [1]\n[[run]]\n", r"\[settings\] lr: .*, got \[1\]; lists belong into \[grid\]"),
        (SMALL + "[grid]\nlr = [1, 0]\n", r"\[grid\] lr: expected a finite number above 0, got '0'"),
        (SMALL + "[grid]\nlr = [nan]\n", r"\[grid\] lr: expected a finite number above 0, got 'nan'"),
        (SMALL + "[grid]\nlr = ['off']\n", r"\[grid\] lr: expected a number, got 'off'"),
        (SMALL + "[grid]\ncell = ['lstn']\n", r"\[grid\] cell: invalid choice: 'lstn' \(choose from .*\)"),
        (SMALL + "[grid]\nhidden = [3]\n", r"\[grid\] hidden: .* got it in \[settings\] too"),
        (SMALL + "[grid]\ntorch_dtype = ['float32']\ntorch-dtype = ['float32']\n", ".* torch_dtype: .* with - and .*"),
        (SMALL + "[grid]\nseed = [1, 1]\n", "expected each run once, got the run seed = 1 a second time"),
        (GRID + "[[run]]\ncell = 'gru'\n", "expected each run once, got the run cell = 'gru' a second time"),
        (
            "[settings]\nwindow = 5\n[grid]\ntask = ['sine', 'adding']\n",
            r"\[settings\] window: window must be 10, .*, got 5, in the run task = 'adding'",
        ),
        (SMALL + "[grid]\nschedule = ['steplr']\n", r"schedule-settings: .*step_size.*, in the run .*'steplr'"),
        (SMALL + "[[run]]\noptimizer_settings = {mass = 1}\n", r"\[\[run\]\] 1 optimizer-settings: .*'mass'.*"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_file_may_not_ask_for_is_one_line_before_the_first_run(run, file, tmp_path, text, message):
    status, out, err = run("sweep", file(text))
    assert (status, out) == (2, "")
    assert re.fullmatch(rf"rnn-parity sweep: error: {re.escape(str(tmp_path))}/grid\.toml: {message}\n", err), err
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]


def test_a_file_that_is_not_there_or_not_text(run, tmp_path):
    status, _, err = run("sweep", "grid.toml")
    assert (status, err) == (
        2,
        "rnn-parity sweep: error: argument FILE: cannot read grid.toml: No such file or directory\n",
    )
    (tmp_path / "grid.toml").write_bytes(b"[settings]\ntask = '\xe9'\n")
    assert "grid.toml: expected TOML in UTF-8, got: 'utf-8' codec" in run("sweep", "grid.toml")[2]


def test_the_example_of_the_readme(run, file, tmp_path):
    """A row is what the run gives alone, and is kept."""
    found = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    status, out, err = run("sweep", file(found[1]), "--jobs", "1")
    assert (status, err) == (0, "")
    assert "\n5 of 5 runs: 5 rounding.\n" in out
    page, table, lines = (tmp_path / "grid" / name for name in ("sweep.md", "sweep.csv", "sweep.jsonl"))
    assert page.read_text() in out
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(row["cell"], row["optimizer"], row["lr"]) for row in rows] == [
        *[(cell, "adadelta", lr) for cell in ("rnn", "lstm") for lr in (0.05, 0.2)],
        ("gru", "adam", 0.01),
    ]
    with table.open(newline="") as file:
        for row, cells in zip(rows, csv.DictReader(file), strict=True):
            assert list(cells) == list(row)
            assert [float(cells[name]) for name in ("numpy_loss", "statistic")] == [row["numpy_loss"], row["statistic"]]

    alone = compare_curves("sine", cell="lstm", lr=0.05, epochs=2)
    assert rows[2]["sentence"] == alone.verdict.sentence()
    assert [kept["settings"] for kept in kept_rows(tmp_path / "grid")].count(asdict(alone.settings)) == 1

    before = {path: path.read_bytes() for path in (page, table, lines)}
    assert "5 of 5 runs: 5 rounding; 5 of them were there already." in run("sweep", tmp_path / "grid.toml")[1]
    assert {path: path.read_bytes() for path in before} == before


def kept_rows(directory):
    return [json.loads(path.read_text()) for path in (directory / "rows").iterdir()]


def test_what_the_file_no_longer_asks_for_is_kept_but_not_shown(run, file, tmp_path, monkeypatch):
    assert run("sweep", file(GRID), "--out", "out", "--jobs", "1")[0] == 0
    monkeypatch.setattr(sweep, "make_row", lambda *_: pytest.fail("made a run that was there"))
    status, out, _ = run("sweep", file(GRID.replace('["rnn", "gru"]', '["gru"]')), "--out", "out")
    assert status == 0
    assert "2 of 2 runs: 2 rounding; 2 of them were there already.\nout/rows has 2 more, of runs that " in out
    assert outcomes(tmp_path / "out") == [("gru", "0", "rounding", ""), ("gru", "1", "rounding", "")]
    assert run("sweep", file(GRID), "--out", "out")[0] == 0
    assert len(outcomes(tmp_path / "out")) == 4


def test_data_are_looked_for_beside_the_file_read_once_and_made_again_when_they_have_changed(
    run, tmp_path, monkeypatch
):
    (tmp_path / "far").mkdir()
    table, path = tmp_path / "far" / "waves.csv", tmp_path / "far" / "grid.toml"
    table.write_text("".join(f"{math.sin(i / 3)}\n" for i in range(60)))
    path.write_text(SMALL.replace('task = "sine"', 'csv = "waves.csv"') + "[grid]\nseed = [0, 1]\nsplit = [0.5]\n")
    wanted = sweep_file.read(path)
    assert wanted[0].task is wanted[1].task
    assert [run.settings.csv for run in wanted] == [str(table)] * 2
    assert pickle.loads(pickle.dumps(wanted[0].task)).digest() == wanted[0].settings.digest
    assert "2 of 2 runs: 2 rounding." in run("sweep", path, "--jobs", "1")[1]
    assert "2 of 2 runs: 2 rounding; 2 of them were there already." in run("sweep", path, "--jobs", "1")[1]
    digest = wanted[0].settings.digest
    assert [digest in (tmp_path / "grid" / f"sweep.{end}").read_text() for end in ("csv", "jsonl", "md")] == [1, 1, 0]
    table.write_text("".join(f"{math.cos(i / 3)}\n" for i in range(60)))
    assert "2 of 2 runs: 2 rounding.\ngrid/rows has 2 more, of runs that " in run("sweep", path, "--jobs", "1")[1]
    table.unlink()
    message = rf"{re.escape(str(path))}: \[settings\] csv: expected a file, got 'waves.csv': No such .*, in the run .*"
    assert re.fullmatch(rf"rnn-parity sweep: error: {message}\n", run("sweep", path)[2])


def test_a_run_that_fails_is_a_row_and_is_made_again_the_next_time(run, file, tmp_path, monkeypatch):
    honest = Run.train

    def fail(self):
        if self.settings.seed == 1 and self.settings.cell == "rnn":
            raise MemoryError("no\nroom")
        return honest(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "train", fail)
        status, out, _ = run("sweep", file(GRID), "--out", "out", "--jobs", "1")
    assert status == 4
    assert re.search(r"\| rnn  \| 1    \| failed .* \| MemoryError: no room \|\n", out)
    assert "4 of 4 runs: 3 rounding, 1 failed.\n" in out
    assert outcomes(tmp_path / "out")[1] == ("rnn", "1", "", "MemoryError: no room")
    status, out, _ = run("sweep", tmp_path / "grid.toml", "--out", "out", "--jobs", "1")
    assert status == 0
    assert "4 of 4 runs: 4 rounding; 3 of them were there already.\n" in out


def test_a_bug_shows_in_its_row_and_in_the_status(run, file, monkeypatch):
    monkeypatch.setattr(numpy_rnn.SGD, "_update", lambda self, p, g, state, group: p.__isub__(1.1 * group["lr"] * g))
    text = SMALL + "[grid]\noptimizer = ['adam', 'sgd']\n[[run]]\ncontrols = 0\n"
    status, out, _ = run("sweep", file(text), "--jobs", "1")
    assert status == 1
    assert re.search(r"\| sgd .* \| not rounding \| .* \| step 1, update: .+ \|\n", out)
    assert "3 of 3 runs: 1 rounding, 1 not rounding, 1 cannot tell.\n" in out


def test_a_loss_that_is_not_finite_is_no_number(run, file, tmp_path):
    text = SMALL + "[[run]]\ncell = 'rnn-relu'\noptimizer = 'sgd'\nlr = 1e200\nepochs = 3\n"
    status, out, _ = run("sweep", file(text), "--jobs", "1")
    assert status == 3
    assert re.search(r"\| cannot tell \| .*(nan|inf).* \| step \d, (forward|loss): .+ is not finite \|\n", out)
    [line] = (tmp_path / "grid" / "sweep.jsonl").read_text().splitlines()
    assert json.loads(line)["numpy_loss"] in ("nan", "inf")


def test_what_cannot_be_read_or_has_other_versions_is_made_again(file, tmp_path, monkeypatch):
    [*wanted] = sweep_file.read(file(SMALL + "[grid]\nseed = [0, 1]\n"))
    assert len([*sweep.sweep(wanted, tmp_path, sweep.locally(1))]) == 2
    (tmp_path / "rows" / f"{wanted[0].key}.json").write_text('{"settings": ')
    assert [run.settings.seed for run, _ in sweep.sweep(wanted, tmp_path, sweep.locally(1))] == [0]
    monkeypatch.setattr(sweep, "versions", lambda: {"numpy": "3.0"})
    assert sweep.rows(sweep_file.read(tmp_path / "grid.toml"), tmp_path) == {}


@pytest.mark.parametrize("taken", ["out", "out/rows", "out/sweep.csv"])
def test_out_cannot_be_written_into(run, file, tmp_path, monkeypatch, taken):
    monkeypatch.setattr(sweep, "make_row", lambda *_: pytest.fail("made a run before --out was looked at"))
    if taken == "out/sweep.csv":
        (tmp_path / taken).mkdir(parents=True)
    else:
        (tmp_path / taken).parent.mkdir(exist_ok=True)
        (tmp_path / taken).write_text("precious")
    status, _, err = run("sweep", file(GRID), "--out", "out", "--jobs", "1")
    assert status == 2
    assert re.fullmatch(r"rnn-parity sweep: error: argument --out: expected a directory .*, got out: .+\n", err), err


def test_a_full_disk_on_the_way_is_one_line_and_keeps_what_is_there(run, file, tmp_path, monkeypatch):
    honest, written = sweep.write_json, []

    def fail(path, content):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(path)
        honest(path, content)

    monkeypatch.setattr(sweep, "write_json", fail)
    status, _, err = run("sweep", file(GRID), "--out", "out", "--jobs", "1")
    assert (status, err) == (2, "rnn-parity sweep: error: [Errno 28] No space left on device\n")
    assert len(outcomes(tmp_path / "out")) == 2


def test_ctrl_c_leaves_a_table_of_what_is_there_and_says_how_to_go_on(run, file, tmp_path, monkeypatch):
    honest = sweep.make_row

    def stop(settings, task):
        if settings.seed == 1:
            raise KeyboardInterrupt
        return honest(settings, task)

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "make_row", stop)
        status, out, err = run("sweep", file(GRID), "--out", "a b", "--jobs", "1")
    again = f"rnn-parity sweep {tmp_path}/grid.toml --out 'a b'"
    assert (status, err) == (130, f"rnn-parity sweep: stopped after 1 of 4 runs; to go on: {again}\n")
    assert "\n1 of 4 runs: 1 rounding.\n" in out
    assert outcomes(tmp_path / "a b") == [("rnn", "0", "rounding", "")]
    assert run(*shlex.split(again)[1:], "--jobs", "1")[0] == 0
    assert len(outcomes(tmp_path / "a b")) == 4


@pytest.mark.usefixtures("untraced")
def test_two_processes_make_the_same_bytes_and_none_outlives_a_sweep_that_is_killed(run, file, tmp_path):
    three = SMALL + "[grid]\nseed = [0, 1, 2]\n"
    path = file(three + "[[run]]\nepochs = 1000000\n")
    code = "import sys; from torch_rnn.cli.main import main; sys.exit(main())"
    process = psutil.Popen(
        [sys.executable, "-c", code, "sweep", path, "--out", "out", "--jobs", "2"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    wait(lambda: len([*tmp_path.glob("out/rows/*.json")]) == 3)
    workers = [child for child in process.children() if "popen_loky_posix" in " ".join(child.cmdline())]
    assert len(workers) == 2
    for worker in workers:
        worker.send_signal(signal.SIGINT)  # as Ctrl-C at a terminal does: they leave it to their parent
    time.sleep(0.5)
    assert all(child.is_running() for child in [process, *workers])
    process.kill()
    process.wait()
    assert psutil.wait_procs(workers, timeout=60)[1] == []
    out = run("sweep", file(three), "--out", "out", "--jobs", "1")[1]
    assert "3 of 3 runs: 3 rounding; 3 of them were there already." in out
    assert run("sweep", file(three), "--out", "alone", "--jobs", "1")[0] == 0
    check_same(tmp_path / "out", tmp_path / "alone")


def check_same(one, other):
    """The same files with the same bytes."""
    files = [{path.relative_to(d): path.read_bytes() for path in d.rglob("*.*")} for d in (one, other)]
    assert files[0] == files[1]


def wait(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("nothing came in a minute")


@pytest.mark.usefixtures("untraced")
def test_a_cluster_that_loses_a_worker_gives_each_row_once_and_the_same_bytes(run, file, tmp_path, monkeypatch):
    text = SMALL.replace("epochs = 2\n", "layers = 2\ndropout = 0.3\n") + "[grid]\nepochs = [12, 1, 2, 3]\n"
    path, honest, killed = file(text), sweep.write_json, []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        busy, address = cluster.scheduler.workers, cluster.scheduler_address
        for versions, message in (
            (lambda: {"numpy": str(os.getpid())}, rf"has numpy \d+, expected numpy {os.getpid()}"),
            (lambda: os.nothing, r"cannot run rnn-parity: .*'nothing'.*"),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(cluster_module, "versions", versions)
                err = run("sweep", path, "--out", "out", "--scheduler", address)[2]
            assert re.fullmatch(rf"rnn-parity sweep: error: argument --scheduler: the worker \S+ {message}\n", err), err

        def kill(row, content):
            if not killed:
                wait(lambda: any(worker.processing for worker in busy.values()))
                worker = next(worker for worker in busy.values() if worker.processing)
                killed.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)
            honest(row, content)

        with monkeypatch.context() as patch:
            patch.setattr(sweep, "write_json", kill)
            status, out, err = run("sweep", path, "--out", "out", "--scheduler", address)
        assert (err, len(killed)) == ("", 1)
        assert "\n4 of 4 runs: " in out
    assert run("sweep", path, "--out", "alone", "--jobs", "1")[0] == status
    check_same(tmp_path / "out", tmp_path / "alone")


def test_no_scheduler_and_no_worker(run, file, monkeypatch):
    path = file(GRID)
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.2)
    for address in ("tcp://127.0.0.1:9", "nowhere", "foo://127.0.0.1:9"):
        with monkeypatch.context() as patch:
            patch.setattr(cluster_module, "Client", lambda *_, **__: pytest.fail("made a client that nobody closes"))
            status, out, err = run("sweep", path, "--scheduler", address)
        assert (status, out) == (2, "")
        assert err == f"rnn-parity sweep: error: argument --scheduler: no scheduler answers at {address}\n"
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        err = run("sweep", path, "--scheduler", cluster.scheduler_address)[2]
        assert err.endswith(f"the scheduler at {cluster.scheduler_address} has no worker\n")
    err = run("sweep", path, "--scheduler", "tcp://127.0.0.1:9", "--jobs", "2")[2]
    assert err == "rnn-parity sweep: error: argument --jobs: not allowed with argument --scheduler\n"


def test_a_cluster_where_dask_is_not_installed(run, file, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "torch_rnn.curves.cluster")
    monkeypatch.delattr(torch_rnn.curves, "cluster")
    err = run("sweep", file(GRID), "--scheduler", "tcp://127.0.0.1:9")[2]
    assert err == "rnn-parity sweep: error: distributed is not installed: pip install 'rnn-parity[cluster]'\n"


def test_what_a_future_came_to(file):
    [wanted, *_] = sweep_file.read(file(GRID))
    row = {"settings": {}, "versions": sweep.versions()}

    def of(status, result):
        return cluster_module._row(wanted, SimpleNamespace(status=status), result)

    assert of("finished", row) == row
    assert of("finished", row | {"versions": {"numpy": "3.0"}})["error"].startswith("a worker has numpy 3.0, expected ")
    assert of("error", (None, KilledWorker("row", SimpleNamespace(address="a"), 3), None))["error"].startswith("Killed")
    with pytest.raises(sweep.Lost, match="the scheduler is gone"):
        of("cancelled", None)


def test_a_process_that_is_killed_ends_the_sweep_with_what_is_there(run, file, monkeypatch):
    def parallel(*args, **kwargs):
        def generator(calls):
            function, args, kwargs = next(iter(calls))
            yield function(*args, **kwargs)
            raise BrokenProcessPool

        return generator

    monkeypatch.setattr(sweep.joblib, "Parallel", parallel)
    status, out, err = run("sweep", file(GRID), "--jobs", "2")
    assert status == 4
    assert "\n1 of 4 runs: 1 rounding.\n" in out
    assert (
        "stopped after 1 of 4 runs: a process was killed, perhaps for want of memory: fewer --jobs take less; " in err
    )
