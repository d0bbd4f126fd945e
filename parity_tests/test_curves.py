"""Runs in lockstep, their verdict, and what is left of them on disk."""

import csv
import json
import math
from dataclasses import replace

import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.training import Record
from torch_rnn.curves import picture, report
from torch_rnn.curves.runs import Run, Settings
from torch_rnn.curves.verdict import BUG, OPEN, ROUNDING, Verdict, judge
from torch_rnn.twins import to_array

DEFAULTS = {
    "task": "sunspots",
    "cell": "rnn",
    "hidden": 5,
    "layers": 1,
    "window": 64,
    "carry": "detach",
    "optimizer": "adadelta",
    "lr": 1.0,
    "clip": None,
    "epochs": 2,
    "dtype": "float64",
    "seed": 0,
    "controls": 2,
}


def make(**changes):
    run = Run(Settings(**{**DEFAULTS, **changes}))
    list(run.train())
    return run


def pairs(*losses):
    return [tuple(Record(1, i, 1, loss, 0.0) for loss in both) for i, both in enumerate(losses, 1)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cell": "rnn-relu", "layers": 2},
        {"carry": "reset", "clip": 0.5},
        {"carry": "full", "optimizer": "sgd", "lr": 0.05},
        {"task": "sine", "optimizer": "sgd", "lr": 0.05, "seed": 3},
        {"task": "article", "hidden": 1, "window": 1, "lr": 0.01},
    ],
    ids=str,
)
def test_both_backends_agree(changes, dtype):
    run = make(**changes, dtype=dtype)
    verdict = judge(run)
    assert verdict.outcome == ROUNDING, verdict.sentence()
    assert len(run.pairs) == run.total == verdict.steps
    for ours, theirs in run.pairs:
        assert (ours.epoch, ours.step, ours.length) == (theirs.epoch, theirs.step, theirs.length)
        assert_allclose(ours.grad_norm, theirs.grad_norm, rtol=1e-10 if dtype == "float64" else 1e-3)
    ours, theirs = run.models
    for (name, weight), twin in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert_allclose(weight.data, to_array(twin), atol=1e-12 if dtype == "float64" else 1e-4, err_msg=name)
    for ours, theirs in run.scores():
        assert_allclose(ours.error, theirs.error, rtol=1e-10 if dtype == "float64" else 1e-3)


def test_steps_and_the_shorter_last_window():
    assert [ours.length for ours, _ in make().pairs] == [64, 64, 64, 28] * 2
    assert [ours.length for ours, _ in make(carry="full").pairs] == [220, 220]
    assert [ours.length for ours, _ in make(window=10**30).pairs] == [220, 220]


def test_the_seed_decides_the_weights():
    assert make(seed=1).pairs == make(seed=1).pairs
    assert make(seed=1).pairs[0] != make(seed=2).pairs[0]


@pytest.mark.parametrize(
    ("target", "name", "wrong"),
    [
        (numpy_rnn.SGD, "_update", lambda self, p, g, state, group: p.__isub__(group["lr"] * g * (1 + 1e-9))),
        (numpy_rnn.Adadelta, "_update", lambda self, p, g, state, group: p.__isub__(group["lr"] * 1e-3 * g)),
    ],
)
def test_a_wrong_optimizer_is_noticed(monkeypatch, target, name, wrong):
    monkeypatch.setattr(target, name, wrong)
    verdict = judge(make(optimizer=target.__name__.lower(), lr=0.05))
    assert verdict.outcome == BUG
    assert verdict.shown_at == 2  # the first step's loss is that of the same weights
    assert (verdict.fault.step, verdict.fault.stage) == (1, "update")


@pytest.fixture
def written(tmp_path):
    run = make(clip=2.0)
    verdict = judge(run)
    report.prepare(tmp_path)
    assert report.write(tmp_path, run, run.scores(), verdict, "rnn-parity curves") == [
        tmp_path / name for name in report.FILES
    ]
    return tmp_path, run, verdict


def test_losses_of_many_sizes_are_marked_by_powers_of_ten():
    run = make()
    run.pairs[:] = [
        (replace(ours, loss=10.0**-i), replace(theirs, loss=10.0**-i)) for i, (ours, theirs) in enumerate(run.pairs)
    ]
    axes = picture.figure(run, judge(run)).axes[0]
    axes.figure.canvas.draw()
    assert axes.get_yscale() == "log"
    assert {round(math.log10(tick) % 1, 6) for tick in axes.get_yticks()} == {0}


def test_csv_reads_back_to_the_same_numbers(written):
    directory, run, _ = written
    with (directory / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == report.COLUMNS
    assert len(rows) == run.total
    for row, (ours, theirs) in zip(rows, run.pairs, strict=True):
        assert (int(row["epoch"]), int(row["step"])) == (ours.epoch, ours.step)
        assert (float(row["numpy_loss"]), float(row["torch_loss"])) == (ours.loss, theirs.loss)
        assert (float(row["numpy_grad_norm"]), float(row["torch_grad_norm"])) == (ours.grad_norm, theirs.grad_norm)


def test_json_holds_settings_versions_and_figures(written):
    directory, run, verdict = written
    content = json.loads((directory / "run.json").read_text())
    assert Settings(**content["settings"]) == run.settings
    assert set(content["versions"]) == {"python", "numpy", "torch", "rnn-parity"}
    assert content["verdict"]["outcome"] == "rounding"
    assert content["verdict"]["sentence"] == verdict.sentence()
    assert content["verdict"]["statistic"] == verdict.evidence.statistic < content["verdict"]["threshold"]
    assert [score["span"] for score in content["scores"]] == ["1921-1955", "1956-1979"]
    last = [ours for ours, _ in run.pairs if ours.epoch == 2]
    mean = sum(record.length * record.loss for record in last) / 220
    assert_allclose(content["epochs"][-1]["numpy_loss"], mean, rtol=1e-14)


def test_picture(written):
    from matplotlib.image import imread

    directory, _, _ = written
    assert imread(directory / "curves.png").shape[:2] == (900, 1200)
    assert sorted(path.name for path in directory.iterdir()) == sorted(report.FILES)  # nothing half-written is left


@pytest.mark.parametrize(
    "losses",
    [
        [(1.0, 1.0)],
        [(0.0, 0.0), (1.0, 1.0)],
        [(math.nan, math.nan)],
        [(1.0, 2.0), (math.inf, 1e300), (math.nan, 1.0)],
        [(1e-300, 1e-300), (1e300, 2e300)],
    ],
    ids=str,
)
def test_every_run_can_be_written(tmp_path, losses):
    run = Run(Settings(**DEFAULTS))
    run.pairs = pairs(*losses)
    report.write(
        tmp_path, run, [], Verdict(OPEN, len(losses), None, None, reason="nothing was run"), "rnn-parity curves"
    )
    with (tmp_path / "curves.csv").open(newline="") as file:
        back = [(float(row["numpy_loss"]), float(row["torch_loss"])) for row in csv.DictReader(file)]
    assert_allclose(back, losses, rtol=0)
    json.loads((tmp_path / "run.json").read_text(), parse_constant=pytest.fail)


def test_a_failed_write_leaves_the_old_file(written, monkeypatch):
    directory, run, verdict = written
    before = {path.name: path.read_bytes() for path in directory.iterdir()}

    def half(path, pairs):
        path.write_text("epoch,")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "_write_csv", half)
    with pytest.raises(OSError, match="No space left"):
        report.write(directory, run, [], verdict, "rnn-parity curves")
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
