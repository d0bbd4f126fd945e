"""``rnn-parity bench``: what only another machine, the whole grid or a former run brings about."""

import copy
import types

import pytest

import numpy_rnn
from torch_rnn.measure import compare, goals, machine, optimizers, overhead, threads, timing
from torch_rnn.measure.bench import PHASES
from torch_rnn.measure.grid import NEAR_THE_LIMIT, Row

INSTANT = timing.Effort(least=2, most=2, seconds=0.0, block=0.0, pause=0.0)
ROW = Row("gru", "float64", *NEAR_THE_LIMIT[0])


def record(*rows):
    """As much of a record as ``compare`` reads, of equal figures."""
    same = {"q1": 0.9, "median": 1.0, "q3": 1.1}
    return {
        "date": "2000-01-01",
        "machine": {"processor": "one", "cores": 2},
        "versions": {"numpy": "2.1"},
        "settings": {"threads": 2},
        "rows": [{**row.as_json(), "ratio": dict.fromkeys(PHASES, same)} for row in rows],
    }


def test_compare_takes_the_rows_that_both_have_and_says_where_the_two_were_measured():
    other = Row("gru", "float32", *NEAR_THE_LIMIT[0])
    old, new = record(ROW), record(other, ROW)
    assert [change["row"] for change in compare.changes(old, new)] == [f"gru float64 {ROW.label}"] * len(PHASES)
    assert "differ" not in compare.text(old, new)
    changed = copy.deepcopy(new)
    changed["machine"]["processor"] = "another"
    changed["settings"]["quick"] = True
    lines = compare.text(old, changed).splitlines()
    assert lines[1:3] == ["the two differ in machine: processor", "the two differ in settings: quick"]


@pytest.mark.parametrize(("cell", "least"), [("rnn", 0.8), ("lstm", 0.7), ("gru", 0.7)])
def test_large_rows_have_a_goal_near_the_limit(cell, least):
    row = Row(cell, "float64", *NEAR_THE_LIMIT[0])
    judged = goals.of_row(row, 1.0, least - 0.01)[1]
    assert (judged["name"], judged["goal"], judged["met"]) == ("of the limit", least, False)
    assert goals.of_row(row, 1.0, least)[1]["met"]


def test_an_optimizer_without_a_fused_kernel_is_timed_without_it(monkeypatch):
    monkeypatch.setattr(optimizers, "SIZES", optimizers.QUICK_SIZES)
    found = optimizers.compare("Adadelta", "float32", INSTANT, quick=False)
    assert found["ratio"].keys() == {"for-loop", "foreach"}
    assert [goal["name"] for goal in found["goals"]] == ["ratio", "temporaries"]
    assert found["goals"][1]["value"] == found["temporaries"] / found["largest_parameter"]
    assert optimizers.compare("SGD", "float32", INSTANT, quick=True)["ratio"].keys() == {"for-loop", "foreach", "fused"}


def test_the_processor_where_proc_is_missing(monkeypatch):
    def missing(path, **_):
        raise FileNotFoundError(path)

    monkeypatch.setattr(machine.Path, "read_text", missing)
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "arm64")
    assert machine.machine()["processor"] == "arm64"


def test_the_cores_where_the_system_tells_no_affinity(monkeypatch):
    monkeypatch.setattr(threads, "os", types.SimpleNamespace(cpu_count=lambda: 7))
    assert threads.cores() == 7
    monkeypatch.setattr(threads, "os", types.SimpleNamespace(cpu_count=lambda: None))
    assert threads.cores() == 1


def test_rounds_end_when_the_time_is_over(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(timing, "perf_counter", lambda: float(next(clock)))
    effort = timing.Effort(least=3, most=10**5, seconds=0.0, block=0.0, pause=0.0)
    assert timing.interleave({"A": lambda: {"call": 1.0}}, effort) == {"A": {"call": [1.0] * 3}}


def test_a_long_call_is_counted_and_not_made_again(monkeypatch):
    monkeypatch.setattr(timing, "LONG", 0.0)
    calls = []
    assert timing._block(lambda: calls.append(0) or {"call": 5.0}, calls=7) == {"call": 5.0}
    assert len(calls) == 1


def test_a_cell_that_runs_twice_in_a_call_is_no_measure_of_what_the_module_adds():
    from numpy_rnn.cells import rnn as cell

    deep = numpy_rnn.RNN(1, 1, num_layers=2, dtype="float64", rng=0)
    x = numpy_rnn.Tensor([[[1.0]]], requires_grad=True)

    def run():
        output = deep(x)[0]
        numpy_rnn.backward([output], [output.numpy()])

    with pytest.raises(RuntimeError, match="its cell forward and backward once, got 4 calls"):
        overhead.cell_calls(cell, run)
