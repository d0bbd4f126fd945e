"""``rnn-parity accuracy``: that it measures what it says, prints and writes it. No figure of its is a test."""

import copy
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from numpy_rnn.cells import gru, lstm
from torch_rnn.cli import accuracy as command
from torch_rnn.measure import accuracy, accuracy_report, cases, functions, truth
from torch_rnn.measure.accuracy import Settings
from torch_rnn.measure.cases import Case

CELLS = tuple(cases.CELLS)
DTYPES = ("float32", "float64")
SETTINGS = Settings(cells=CELLS, dtypes=DTYPES, quick=True)
SHAPE = (4, 2, 3, 5)
BOTH = ("numpy", "torch")


def make_tiny(patch):
    patch.setattr(cases, "QUICK", (SHAPE,))
    patch.setattr(cases, "QUICK_SPECIAL", SHAPE)
    patch.setattr(accuracy, "QUICK_SEEDS", 2)
    patch.setattr(functions, "POINTS", 100)


@pytest.fixture(scope="module")
def record():
    """A whole measurement, of tiny shapes."""
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        seen = []
        record = accuracy.measure(SETTINGS, seen.append)
        assert seen == accuracy.measured_cases(SETTINGS)
    return json.loads(json.dumps(record, allow_nan=False))


@pytest.fixture
def call(run):
    return partial(run, "accuracy")


@pytest.fixture
def no_longdouble(monkeypatch):
    """Let longdouble be float64, as it is on some systems."""
    real = np.finfo
    monkeypatch.setattr(truth.np, "finfo", lambda dtype: real(np.float64 if dtype is np.longdouble else dtype))


def test_the_grid_has_every_cell_dtype_and_hard_case():
    grid = cases.cases(CELLS, DTYPES)
    assert len(grid) == len(set(grid))
    for cell in CELLS:
        for dtype in DTYPES:
            chosen = [case for case in grid if (case.cell, case.dtype) == (cell, dtype)]
            kinds = {"plain", "memory"} | ({"saturated"} if cell != "rnn-relu" else set())
            assert {case.kind for case in chosen} == kinds | ({"gates shut"} if cell in ("lstm", "gru") else set())
            assert max(case.T for case in chosen) == 1000
            assert min(case.T for case in chosen) == 1
    assert max(len(case.label) for case in grid) <= 25  # the width of its column


def test_numbers_are_drawn_as_the_kinds_say():
    for kind, dtype in (("gates shut", "float32"), ("saturated", "float32"), ("saturated", "float64")):
        case = Case("lstm", dtype, *SHAPE, kind)
        arrays, upstream = cases.draw(case, 0)
        assert {array.dtype.name for array in (*arrays.values(), *upstream.values())} == {dtype}
        saved = lstm.forward(**arrays)[-1]
        o, i, f, g = saved.gates[0].reshape(4, 4, 5, 2).swapaxes(0, 1)
        if kind == "gates shut":
            assert max(gate.max() for gate in (o, i, f)) < 1e-6
        else:
            lost = (1 - g.astype(float) ** 2) / np.sqrt(np.finfo(dtype).eps)
            assert 0.02 < np.median(lost) < 50
    case = Case("gru", "float64", *SHAPE, "memory")
    arrays, _ = cases.draw(case, 0)
    assert np.median(gru.forward(**arrays)[-1].gates[0].reshape(4, 3, 5, 2)[:, 1]) > 0.6  # of T = 4, 3 in 4 is kept
    arrays, _ = cases.draw(Case("rnn", "float64", 1000, 2, 3, 5, "memory"), 0)
    np.testing.assert_array_equal(arrays["w_hh"], np.eye(5))
    first, second = (cases.draw(case, seed)[0]["x"] for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_a_relu_is_kept_clear_of_its_kink(monkeypatch):
    case = Case("rnn-relu", "float32", 20, 4, 3, 5)
    draws = []
    real = cases._draw
    monkeypatch.setattr(cases, "_draw", lambda *arguments: draws.append(real(*arguments)) or draws[-1])
    monkeypatch.setattr(cases, "KINK", 1e4)  # so near is common
    drawn = [cases.draw(case, seed)[0] for seed in range(3)]
    assert len(draws) > 3
    within = 1e4 * np.finfo(np.float32).eps
    assert not any(cases._near_the_kink(arrays, within) for arrays in drawn)
    assert any(cases._near_the_kink(arrays, within) for arrays, _ in draws)


@pytest.mark.parametrize("cell", CELLS)
def test_longdouble_and_mpmath_agree_on_the_truth(cell):
    """Two arithmetics that have nothing in common; on float64's own 53 bits they would differ by 1e-16."""
    if np.finfo(np.longdouble).nmant == np.finfo(np.float64).nmant:
        pytest.skip("longdouble is float64 on this machine")
    pytest.importorskip("mpmath", reason="not installed: pip install 'rnn-parity[oracles]'")
    arrays, upstream = cases.draw(Case(cell, "float64", *SHAPE), 0)
    exact, wide, narrow = (
        truth.passes(cell, truth.widened(arrays, kind), truth.widened(upstream, kind))
        for kind in ("mpmath", "longdouble", "float64")
    )
    for name, values in exact.items():
        numbers = np.array([np.longdouble(str(value)) for value in values.ravel()]).reshape(values.shape)
        scale = np.abs(numbers).max()
        assert np.abs(wide[name] - numbers).max() < 3e-18 * scale, name
        assert 1e-17 * scale < np.abs(narrow[name] - numbers).max() < 3e-15 * scale, name


def test_units_are_of_the_tensors_largest_entry():
    eps = np.finfo(np.float32).eps
    found = np.array([1.0, 1e-3], np.float32)
    assert accuracy.units(found, found.astype(float)) == 0
    assert accuracy.units(found, found.astype(float) + np.array([0, 2.5 * eps])) == pytest.approx(2.5, rel=1e-3)
    assert accuracy.units(np.float32([0.0]), np.array([1e-60])) < 1e-10  # less than the smallest float32 is nothing


@pytest.mark.parametrize("cell", CELLS)
def test_both_sides_and_the_truth_name_the_same_tensors(cell):
    case = Case(cell, "float64", *SHAPE)
    arrays, upstream = cases.draw(case, 0)
    expected = truth.passes(cell, arrays, upstream)
    for found in accuracy.run_both(case, arrays, upstream).values():
        assert found.keys() == expected.keys()
        for name, array in found.items():
            assert array.dtype == np.float64
            np.testing.assert_allclose(array, expected[name], rtol=0, atol=1e-13 * np.abs(expected[name]).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("module", [lstm, gru], ids=["lstm", "gru"])
def test_a_planted_inaccuracy_is_seen(module, dtype, monkeypatch):
    """The logistic function by tanh, right in the middle, has no digit left where a gate is nearly shut."""

    def by_tanh(minus_z):
        minus_z[...] = 0.5 * (1 + np.tanh(-minus_z / 2))
        return minus_z

    cell = module.__name__.rpartition(".")[2]
    shut = Case(cell, dtype, *SHAPE, "gates shut")
    honest = accuracy.measure_case(shut, 3)
    monkeypatch.setattr(module, "open_gates", by_tanh)
    planted, plain = accuracy.measure_case(shut, 3), accuracy.measure_case(Case(cell, dtype, *SHAPE), 3)
    tensors = ("c_n", "dw_ih") if cell == "lstm" else ("dh_0", "dw_hh")
    for name in tensors:
        assert planted["tensors"][name]["ratio"] > 1000
        assert honest["tensors"][name]["ratio"] < 100
    assert max(tensor["ratio"] for tensor in plain["tensors"].values()) < 10
    goals = {goal["name"]: goal for goal in accuracy.summary([planted], cell, dtype)}
    assert not goals["anywhere"]["met"]
    assert "MISSED" in accuracy_report._cases("planted", [planted])


def test_a_wrong_formula_would_stand_as_millions_of_units(monkeypatch):
    real = truth.gru.backward
    monkeypatch.setattr(truth.gru, "backward", lambda *a, **k: real(*a, **k)._replace(db_hh=real(*a, **k).db_ih))
    tensors = accuracy.measure_case(Case("gru", "float32", *SHAPE), 1)["tensors"]
    assert tensors["db_hh"]["torch"]["worst"] > 1e5


def test_the_record_is_whole_and_consistent(record):
    assert [(row["cell"], row["dtype"]) for row in record["rows"]].count(("gru", "float64")) == 4
    assert record["truth"]["float32"] == "float64"
    for row in record["rows"]:
        states = {"h_n", "dh_0"} | ({"c_n", "dc_0"} if row["cell"] == "lstm" else set())
        assert set(row["tensors"]) == states | {"output", "dx", "dw_ih", "dw_hh", "db_ih", "db_hh"}
        assert row["seeds"] == 2
        for tensor in row["tensors"].values():
            assert all(0 <= tensor[library]["median"] <= tensor[library]["worst"] for library in BOTH)
            ours, theirs = (max(1.0, tensor[library]["median"]) for library in BOTH)
            assert tensor["ratio"] == ours / theirs
    goals = [goal for goal in record["goals"] if (goal["cell"], goal["dtype"]) == ("lstm", "float32")]
    rows = [row for row in record["rows"] if (row["cell"], row["dtype"]) == ("lstm", "float32")]
    tensors = [tensor for row in rows for tensor in row["tensors"].values()]
    anywhere, median, worst = goals
    assert anywhere["value"] == max(tensor["ratio"] for tensor in tensors)
    assert median["value"] == np.median([tensor["ratio"] for tensor in tensors])
    ours, theirs = (max(tensor[library]["worst"] for tensor in tensors) for library in BOTH)
    assert worst["value"] == ours / theirs
    assert all(goal["met"] == (goal["value"] <= goal["goal"]) for goal in record["goals"])
    assert {entry["name"] for entry in record["functions"]} == {"tanh", "sigmoid", "exp"}
    assert all(entry[library]["worst"] < 5 for entry in record["functions"] for library in BOTH)


def test_the_report_says_it_all_in_100_columns(record):
    wide = copy.deepcopy(record)
    for row in wide["rows"]:
        row["label"] = "1000, 8, 16, 32 gates shut"[:25]
        for tensor in row["tensors"].values():
            tensor["numpy"] = {"median": 1.234e12, "worst": 1.234e12}
            tensor["ratio"] = 1.234e9
    for text in (accuracy_report.text(record), accuracy_report.text(wide)):
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= 100
        for word in ("LSTM float64", "RNN-RELU float32", "dw_hh", "sigmoid near -20", "<= 1.5", "one thread each"):
            assert word in " ".join(text.split())
    assert "MISSED" in accuracy_report.text(wide)


def test_where_longdouble_is_float64_mpmath_measures_the_small_cases(no_longdouble):
    pytest.importorskip("mpmath", reason="not installed: pip install 'rnn-parity[oracles]'")
    assert truth.wider("float64") == "mpmath"
    measured = accuracy.measured_cases(Settings(("rnn", "gru"), DTYPES, False))
    small = [case for case in measured if case.dtype == "float64"]
    assert small
    assert all(case.multiplications <= truth.MOST_BY_MPMATH for case in small)
    assert max(case.T for case in measured if case.dtype == "float32") == 1000
    row = accuracy.measure_case(Case("gru", "float64", 2, 1, 2, 3), 1)
    assert 0 < row["tensors"]["dw_hh"]["numpy"]["worst"] < 100


def test_without_any_truth_the_report_says_so(no_longdouble, monkeypatch):
    monkeypatch.setattr(truth, "find_spec", lambda name: None)
    make_tiny(monkeypatch)
    record = accuracy.measure(Settings(("rnn",), DTYPES, True))
    assert {row["dtype"] for row in record["rows"]} == {"float32"}
    words = " ".join(accuracy_report.text(record).split())
    assert "float64 is not measured: longdouble is float64 on this machine, and mpmath is not installed." in words
    nothing = accuracy.measure(Settings(("rnn",), ("float64",), True))
    assert nothing["rows"] == nothing["goals"] == []
    assert "float64 is not measured" in accuracy_report.text(nothing)


def test_the_command_measures_and_writes(call, monkeypatch, tmp_path):
    make_tiny(monkeypatch)
    status, out, err = call("--quick", "--cells", "gru", "gru", "--dtypes", "float32", "--json", "a.json")
    assert (status, err) == (0, "")
    assert out.endswith("\nwrote a.json\n")
    written = json.loads((tmp_path / "a.json").read_text())
    assert {(row["cell"], row["dtype"]) for row in written["rows"]} == {("gru", "float32")}
    assert accuracy_report.text(written) + "\n\nwrote a.json\n" == out
    assert call("--quick", "--cells", "gru", "--dtypes", "float32") == (0, accuracy_report.text(written) + "\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_disk_that_is_full_at_the_end_is_named_by_its_option(call, monkeypatch):
    make_tiny(monkeypatch)
    monkeypatch.setattr(command, "check_file", lambda option, path: None)  # as it was when the command began
    status, _, err = call("--quick", "--cells", "gru", "--dtypes", "float32", "--json", "/dev/full")
    assert status == 2
    assert re.fullmatch("rnn-parity accuracy: error: argument --json: cannot write /dev/full: No space left .*\n", err)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--cells", "lstn"], "argument --cells: invalid choice: 'lstn' .*"),
        (["--dtypes", "float16"], "argument --dtypes: invalid choice: 'float16' .*"),
        (["--json", "no/such/file"], "argument --json: expected a file in a directory that exists, got no/such/file"),
        (["fast"], "unrecognized arguments: fast"),
    ],
    ids=str,
)
def test_bad_input_is_one_line_and_status_2(call, monkeypatch, tmp_path, argv, message):
    monkeypatch.setattr(command, "_measure", lambda settings: pytest.fail("measured before the input was looked at"))
    status, out, err = call(*argv)
    assert (status, out) == (2, "")
    assert re.fullmatch(f"rnn-parity accuracy: error: {message}\n", err), err
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_one_line(call, monkeypatch):
    def fail(settings):
        raise MemoryError

    monkeypatch.setattr(command, "_measure", fail)
    assert call() == (2, "", "rnn-parity accuracy: error: not enough memory for the largest shapes: try --quick\n")
