"""``rnn-parity bench``: what it does, prints and writes. How long anything takes is never a test."""

import copy
import json
import re
from functools import partial

import numpy as np
import pytest
import torch

from torch_rnn.cli import bench as command
from torch_rnn.measure import compare, goals, grid, growth, limit, memory, overhead, recompute, report, sides, timing
from torch_rnn.measure.bench import PHASES, Settings, Task, measure
from torch_rnn.measure.grid import Row

SETTINGS = Settings(cells=("lstm", "gru"), dtypes=("float32", "float64"), threads=1, quick=True)
INSTANT = timing.Effort(least=2, most=2, seconds=0.0, block=0.0, pause=0.0)
ODD = Row("lstm", "float64", T=7, B=4, I=3, H=5)
ROWS = [
    ODD,
    Row("rnn", "float32", 6, 3, 2, 4, layers=2, bidirectional=True),
    Row("gru", "float64", 6, 5, 2, 4, lengths=True),
]


@pytest.fixture(scope="module")
def record():
    """A whole measurement, of tiny shapes."""
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        seen = []
        record = measure(SETTINGS, seen.append)
    assert all(isinstance(task, Task) for task in seen)
    return json.loads(json.dumps(record, allow_nan=False))


@pytest.fixture
def call(run):
    return partial(run, "bench")


@pytest.fixture
def measured(monkeypatch, record):
    """Let the command take ``record`` for what it has measured."""
    monkeypatch.setattr(command, "_measure", lambda settings: copy.deepcopy(record))


def make_tiny(patch):
    patch.setattr(grid, "QUICK_SHAPES", ((5, 1, 1, 1), (4, 3, 2, 6)))
    patch.setattr(grid, "QUICK_VARIED_SHAPE", (4, 3, 2, 6))
    patch.setattr("torch_rnn.measure.bench.QUICK_MEMORY_SHAPE", ODD.shape)
    patch.setattr("torch_rnn.measure.bench.QUICK", INSTANT)
    patch.setattr(growth, "QUICK_SWEEPS", {"T": (4, 8), "B": (2, 4), "H": (4, 8)})
    patch.setattr(recompute, "QUICK_SHAPE", (12, 2, 3, 4))
    patch.setattr(recompute, "QUICK_EVERY", (3, 12))
    patch.setattr(limit, "PROBE", INSTANT)
    patch.setattr(overhead, "_import", lambda name, compiled: {"call": len(name)})
    patch.setattr(overhead, "CALLS", 2)


def test_the_grid_is_the_one_of_the_goals():
    rows = grid.rows(tuple(grid.CELLS), grid.DTYPES)
    assert len(rows) == len(set(rows)) == 3 * 2 * 10
    assert set(grid.NEAR_THE_LIMIT) < {row.shape for row in rows}
    assert sum(goals.limit_goal(row) is not None for row in rows) == 3 * 2 * 2
    assert {goals.ratio_goal(row) for row in rows if (row.cell, row.dtype) == ("lstm", "float32")} == {0.5, 0.75}
    assert {goals.ratio_goal(row) for row in rows if (row.cell, row.dtype) != ("lstm", "float32")} == {1.0}
    assert max(len(row.label) for row in rows) <= 31  # the width of its column


def test_lengths_are_from_1_to_T_and_the_same_for_every_cell():
    row = Row("rnn", "float32", 50, 32, 64, 128, lengths=True)
    lengths = row.draw_lengths()
    assert lengths.min() >= 1
    assert lengths.max() <= 50
    assert sum(row.batch_sizes()) == lengths.sum()
    assert ODD.batch_sizes() == [4] * 7


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_both_sides_compute_the_same(row):
    both = sides.sides(row)
    for name in ("passes", "step"):
        taken = [getattr(side, name)() for side in both.values()]
        assert taken[0].keys() == taken[1].keys()
        if name == "passes":
            assert {"forward", "backward", "both"} == taken[0].keys()
            grads = [[leaf.grad for leaf in (side.x, *side.parameters)] for side in both.values()]
            tolerance = 1e-10 if row.dtype == "float64" else 1e-4
            for ours, theirs in zip(*grads, strict=True):
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_the_limit_does_as_many_multiplications_as_the_equations(row, monkeypatch):
    done = []
    monkeypatch.setattr(limit, "PROBE", INSTANT)
    work = limit.limit(row)
    monkeypatch.setattr(
        limit, "_run", lambda products: done.append(sum(a.shape[0] * a.shape[1] * b.shape[1] for a, b, _ in products))
    )
    assert work().keys() == set(PHASES)
    forward, back, dx = done
    N, gates, H, directions = sum(row.batch_sizes()), grid.CELLS[row.cell], row.H, 2 if row.bidirectional else 1
    weights = sum(gates * H * (width + H) for width in row.parts())
    assert forward == N * weights
    assert dx == N * gates * H * row.I * directions
    inner = sum(gates * H * width for width in row.parts()[directions:])
    assert back == N * (weights + gates * H * H * len(row.parts()) + inner)


def test_all_layouts_of_a_product_are_the_same_size():
    part = limit.Part(4, 3, 5, [4, 4, 2], "float64")
    for candidates in (part._once(part.x, part.w_ih, 3), part._each(part.h, part.w_hh, 5, 0, 20), part._weights()):
        sizes = {sum(a.shape[0] * a.shape[1] * b.shape[1] for a, b, _ in products) for products in candidates}
        assert len(sizes) == 1
        for products in candidates:
            limit._run(products)  # np.dot refuses an out that does not fit


def test_rounds_are_taken_in_turn():
    order = []
    works = {name: lambda name=name: order.append(name) or {"call": 1.0} for name in "AB"}
    assert timing.interleave(works, INSTANT) == {"A": {"call": [1.0, 1.0]}, "B": {"call": [1.0, 1.0]}}
    assert "".join(order[4:]) == "AABBAABB"  # after two of each to warm up; a block is one uncounted and one counted


def test_an_import_is_timed_in_a_fresh_interpreter_that_compiles_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert 0 < overhead._import("numpy_rnn", str(tmp_path))["call"] < 60
    assert list(tmp_path.rglob("numpy_rnn/__init__.*.pyc"))


def test_arithmetic_of_ratios():
    assert timing.geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert timing.geometric_mean([1.0, 10.0, 100.0]) == pytest.approx(10.0)
    assert timing.ratio([2.0, 2.0, 8.0], [1.0, 4.0, 2.0]) == {"median": 1.0, "q1": 1.25, "q3": 3.0}
    assert growth.exponent([1, 2, 4, 8], [5 * n**1.5 for n in (1, 2, 4, 8)]) == pytest.approx(1.5)


@pytest.mark.parametrize("cell", grid.CELLS)
@pytest.mark.parametrize("dtype", grid.DTYPES)
def test_bytes_saved_are_counted(cell, dtype):
    row = Row(cell, dtype, T=13, B=4, I=3, H=5)
    counted = memory.least(row)
    assert counted <= memory.numpy_saved(row) < 3 * counted
    assert counted <= memory.torch_saved(row)
    if cell == "rnn":  # x, h_0 and h: nothing else
        assert memory.torch_saved(row) == counted


def test_the_peak_of_a_step_is_counted():
    both = sides.sides(Row("lstm", "float64", 20, 8, 16, 32))
    gradients = sum(parameter.data.nbytes for parameter in both["numpy"].parameters)
    for side in both.values():
        side.step()
    assert memory.allocated_at_once(both["numpy"].step) > gradients
    assert memory.torch_peak(both["torch"]) > gradients
    assert memory.allocated_at_once(lambda: np.ones(10**5)) == pytest.approx(8e5, rel=0.01)


def test_the_record_is_whole_and_consistent(record):
    assert len(record["rows"]) == 2 * 2 * 4
    for row in record["rows"]:
        for phase in PHASES:
            medians = {side: row["seconds"][side][phase]["median"] for side in ("numpy", "torch", "limit")}
            assert row["ratio"][phase]["median"] == pytest.approx(medians["torch"] / medians["numpy"])
            assert row["of_limit"][phase]["median"] == pytest.approx(medians["limit"] / medians["numpy"])
        assert row["goals"][0]["value"] == row["ratio"]["both"]["median"]
        assert row["goals"][0]["met"] == (row["goals"][0]["value"] >= row["goals"][0]["goal"])
    means = {mean["name"]: mean for mean in record["means"]}
    assert set(means) == {"lstm float32", "lstm float64", "gru float32", "gru float64", "gru", "whole grid"}
    ratios = [row["ratio"]["both"]["median"] for row in record["rows"]]
    assert means["whole grid"]["value"] == pytest.approx(timing.geometric_mean(ratios))
    assert means["gru"]["rows"] == 8
    assert [row["dtype"] for row in record["memory"]] == ["float32", "float64"] * 2
    assert {entry["varied"] for entry in record["growth"]} == set("TBH")
    for entry in record["recompute"]:
        none, every_3, every_12 = entry["points"]
        assert (none["every"], every_3["every"], every_12["every"]) == (None, 3, 12)
        assert none["saved"] > every_3["saved"] > every_12["saved"]
        assert none["time"]["median"] == 1
    assert [entry["cell"] for entry in record["recompute"]] == ["lstm", "gru"]
    assert all("for-loop" in entry["ratio"] for entry in record["optimizers"])
    assert len(record["overhead"]) == 2
    assert len(record["imports"]) == 1


def test_the_report_says_it_all_in_100_columns(record):
    text = report.text(record)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("jax") == 1
    for row in record["rows"]:
        assert row["label"] in text
    for word in (
        "Measured 20",
        "LSTM float64",
        "geometric means",
        "Memory",
        "Growth",
        "recompute_every=k",
        "Optimizers",
        "ufunc",
        "Importing",
    ):
        assert word in text
    for word in ("1 thread each", "--quick", torch.__version__, np.__version__):
        assert word in " ".join(text.split())


def test_the_report_stays_in_100_columns_with_jax_and_all_goals(record):
    wide = copy.deepcopy(record)
    wide["versions"]["jax"] = "0.0"
    for row in wide["rows"]:
        row["jax_ratio"] = row["ratio"]["both"]
        row["ratio"]["both"] = {"q1": 1234.0, "median": 1234.0, "q3": 1234.0}
        row["goals"].append(goals.judge("of the limit", 0.5, 0.75))
    text = report.text(wide)
    assert "limit >= 0.75 MISSED" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_markdown_table(record):
    head, rule, *rest = report.markdown(record).splitlines()
    table = rest[: rest.index("")]
    assert head == "| T, B, I, H | LSTM float32 | LSTM float64 | GRU float32 | GRU float64 |"
    assert rule == "|---|---|---|---|---|"
    assert [line.split("|")[1].strip() for line in table] == [
        "5, 1, 1, 1", "4, 3, 2, 6", "4, 3, 2, 6 2 layers bidir.", "4, 3, 2, 6 lengths", "geometric mean",
    ]  # fmt: skip
    assert all(re.fullmatch(r"\|[^|]+(\| [\d.]+ ){4}\|", line) for line in table)
    caption = " ".join(rest[rest.index("") :])
    assert all(word in caption for word in (record["date"], record["machine"]["processor"], "spans", "thread"))


def test_compare_says_what_moved_by_more_than_the_spread(record):
    record, new = copy.deepcopy(record), copy.deepcopy(record)
    for row in [*record["rows"], *new["rows"]]:
        row["ratio"] = {phase: {"q1": 0.9, "median": 1.0, "q3": 1.1} for phase in PHASES}
    assert not any(change["moved"] for change in compare.changes(record, new))
    assert "0 of 64 figures moved" in compare.text(record, new)
    new["rows"][0]["ratio"]["both"] = {"q1": 1.0, "median": 1.2, "q3": 1.3}  # within
    new["rows"][1]["ratio"]["both"] = {"q1": 1.9, "median": 2.0, "q3": 2.1}
    new["rows"][2]["ratio"]["step"] = {"q1": 0.4, "median": 0.5, "q3": 0.6}
    moved = [change for change in compare.changes(record, new) if change["moved"]]
    assert [(change["phase"], change["ratio"]) for change in moved] == [("both", 2.0), ("step", 0.5)]
    text = compare.text(record, new)
    assert "2 of 64 figures moved" in text
    assert max(map(len, text.splitlines())) <= 100
    del new["rows"][1:]
    assert len(compare.changes(record, new)) == len(PHASES)
    assert "no row is in both" in compare.text(record, {**new, "rows": []})


def test_the_command_writes_what_it_was_asked_for(call, measured, record, tmp_path):
    status, out, err = call("--json", "a.json", "--chart", "a.png", "--threads", "1")
    assert (status, err) == (0, "")
    assert out.endswith("wrote a.json\nwrote a.png\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.png"]
    assert json.loads((tmp_path / "a.json").read_text()) == record
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    status, out, err = call("--markdown", "--compare", "a.json")
    assert (status, err) == (0, "")
    assert out.startswith("| T, B, I, H |")
    assert "0 of 64 figures moved by more than their spread" in out


def test_the_command_measures(call, monkeypatch):
    make_tiny(monkeypatch)
    threads = torch.get_num_threads()
    status, out, err = call("--quick", "--threads", "1", "--cells", "rnn", "rnn", "--dtypes", "float64")
    assert (status, err) == (0, "")
    assert "RNN float64" in out
    assert "LSTM float" not in out.replace("LSTM(", "")
    assert torch.get_num_threads() == threads


def test_no_file_is_half_written(call, measured, monkeypatch, tmp_path):
    (tmp_path / "a.png").write_text("former")

    def fail(path, record):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch_rnn.measure.chart.draw", fail)
    status, out, err = call("--chart", "a.png")
    assert (status, out) == (2, "")
    assert "No space left" in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_text() == "former"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--cells", "lstn"], "argument --cells: invalid choice: 'lstn' .*"),
        (["--cells"], "argument --cells: expected at least one argument"),
        (["--dtypes", "float16"], "argument --dtypes: invalid choice: 'float16' .*"),
        (["--threads", "0"], "argument --threads: expected a whole number of at least 1, got '0'"),
        (["--threads", "9999"], r"argument --threads: expected at most the number of cores, \d+, got 9999"),
        (["--json", "no/such/file"], "argument --json: expected a file in a directory that exists, got no/such/file"),
        (["--chart", "."], "argument --chart: expected a file in a directory that exists, got ."),
        (["--json", "a", "--chart", "a"], "argument --chart: expected another file than that of --json, got a"),
        (["--compare", "none.json"], "argument --compare: cannot read none.json: No such file or directory"),
        (["fast"], "unrecognized arguments: fast"),
    ],
    ids=str,
)
def test_bad_input_is_one_line_and_status_2(call, monkeypatch, tmp_path, argv, message):
    monkeypatch.setattr(command, "_measure", lambda settings: pytest.fail("measured before the input was looked at"))
    status, out, err = call(*argv)
    assert (status, out) == (2, "")
    assert re.fullmatch(f"rnn-parity bench: error: {message}\n", err), err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_into_is_said_before_the_time_is_spent(call, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(command, "_measure", lambda settings: pytest.fail("measured before --json was looked at"))
    monkeypatch.setattr("torch_rnn.cli.options.TemporaryFile", refuse)
    message = "argument --json: cannot write into .: Permission denied"
    assert call("--json", "a.json") == (2, "", f"rnn-parity bench: error: {message}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON: .*"),
        ("[]", "is not a record of rnn-parity bench of format 1"),
        ('{"format": 2}', "is not a record of rnn-parity bench of format 1"),
        ('{"format": 1}', "is not a whole record of rnn-parity bench: KeyError.*"),
    ],
)
def test_a_file_that_is_no_record_is_refused(call, monkeypatch, tmp_path, content, message):
    monkeypatch.setattr(command, "_measure", lambda settings: pytest.fail("measured before the input was looked at"))
    (tmp_path / "old.json").write_text(content)
    status, out, err = call("--compare", "old.json")
    assert (status, out) == (2, "")
    assert re.fullmatch(f"rnn-parity bench: error: argument --compare: old.json {message}\n", err), err


def test_too_little_memory_is_one_line(call, monkeypatch):
    def fail(settings):
        raise MemoryError

    monkeypatch.setattr(command, "_measure", fail)
    assert call() == (2, "", "rnn-parity bench: error: not enough memory for the largest shapes: try --quick\n")
