"""Two logs that some program left: what is read from them, how they are matched, and what is said of them."""

import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from parity_tests.mutations.curves import BUGS
from torch_rnn import compare_logs
from torch_rnn.curves.calibrate_logs import MovedOnce, drawn, measure
from torch_rnn.curves.logs import read_log
from torch_rnn.curves.logs_hints import hints
from torch_rnn.curves.logs_report import summary
from torch_rnn.curves.runs import SIDES, Settings
from torch_rnn.curves.seeds import compare_groups
from torch_rnn.tolerances import LOGS_BUG

RUN = {
    "task": "sunspots",
    "cell": "rnn",
    "hidden": 4,
    "layers": 1,
    "window": 30,
    "carry": "detach",
    "optimizer": "adam",
    "lr": 0.01,
    "clip": None,
    "epochs": 3,
    "dtype": "float64",
    "seed": 3,
    "controls": 1,
}


@cache
def honest(**changes):
    return trained(**changes)


def trained(sides=SIDES, **changes):
    """Train both sides and their controls, moved at the start alone; return the losses of each side."""
    run = MovedOnce(Settings(**{**RUN, **changes}), sides)
    list(run.train())
    return run.losses(0), run.losses(1)


def write(path, losses, form=repr):
    path.write_text("".join(["step,loss\n", *(f"{i},{form(float(x))}\n" for i, x in enumerate(losses, 1))]))
    return path


@pytest.fixture
def logs(tmp_path):
    """Write the columns of losses as logs; return their paths."""

    def logs(name, losses, form=repr):
        return [write(tmp_path / f"{name}{i}.csv", column, form) for i, column in enumerate(losses.T)]

    return logs


@pytest.fixture
def compared(logs):
    """Compare what both sides of a training logged."""

    def compared(losses, form=repr, controls="ab"):
        a, b = logs("a", losses[0], form), logs("b", losses[1], form)
        given = {f"controls_{side}": paths[1:] for side, paths in (("a", a), ("b", b)) if side in controls}
        return compare_logs(a[0], b[0], **given)

    return compared


def events(directory, name, rows):
    """Write an event file as TensorBoard's writers do."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(directory), filename_suffix=name)
    for step, tag, value in rows:
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(step=step, summary=summary))
    writer.close()


# Reading

TABLES = {
    "csv": b"step,loss,val_loss\n1,0.5,0.7\n2,0.25,0.6\n",
    "tab, CRLF, BOM, blank line": b"\xef\xbb\xbfstep\tloss\r\n1\t0.5\r\n\r\n2\t0.25\r\n",
    "semicolon, spaces, quotes": b'step; loss\n1; "0.5"\n2; 0.25\n',
    "written by numpy": b"# step,loss\n1.0e+00,5.0e-01\n2.0e+00,2.5e-01\n",
    "rows without a loss": b"step,loss\n1,0.5\n1,\n2,0.25\n3\n",
    "unsorted, restarted with its header": b"step,loss\n2,0.1\n1,0.5\nstep,loss\n2,0.25\n",
    "json": b'{"step": 1, "loss": 0.5}\n{"config": {"lr": 1}}\n{"step": 2, "loss": 0.25}',
    "json, nested, BOM, strings": b'\xef\xbb\xbf{"step": "1", "train": {"loss": "0.5"}}\r\n{"step": 2, "train": '
    b'{"loss": 0.25}, "val": {"loss": 3}}\r\n',
    "json that calls it otherwise": b'{"global_step": 1, "trainLoss": 0.5}\n{"global_step": 2, "trainLoss": 0.25}\n',
    "two that are held out": b"step,val_loss,nll_loss,Test Loss\n1,9,0.5,9\n2,9,0.25,9\n",
    "a name that is no loss": b"step,loss_kind,loss\n1,mse,0.5\n2,mse,0.25\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_formats(tmp_path, name):
    path = tmp_path / "log"
    path.write_bytes(TABLES[name])
    log = read_log(path)
    assert (log.losses.tolist(), log.steps.tolist()) == ([0.5, 0.25], [1, 2])


def test_events_of_one_run(tmp_path):
    """A restarted run has several files: of a step that comes twice the last one wins."""
    events(tmp_path, ".1", [(1, "train/loss", 0.5), (1, "val/loss", 9.0), (2, "train/loss", 0.1)])
    events(tmp_path, ".2", [(2, "train/loss", 0.25), (3, "lr", 1.0), (3, "train/loss", math.nan)])
    log = read_log(tmp_path)
    assert (log.column, log.steps.tolist()) == ("train/loss", [1, 2, 3])
    assert_array_equal(log.losses, [0.5, 0.25, math.nan])
    assert (log.precision, log.notes) == ("all digits of float32", ("1 row whose step comes again later left out",))
    one = next(path for path in tmp_path.iterdir() if path.name.endswith(".1"))
    assert read_log(f"{one}:val/loss").losses.tolist() == [9.0]
    inside = tmp_path / "runs"
    tmp_path.rename(tmp_path.with_name("moved"))
    inside = tmp_path.with_name("moved")
    with pytest.raises(ValueError, match=f"expected event files .*, they are in {re.escape(str(inside))}"):
        read_log(inside.parent)


@pytest.mark.parametrize(
    ("numbers", "precision", "unit"),
    [
        (["0.1235", "0.0042", "12.5000"], "4 decimals", [1e-4] * 3),
        (["1.235e-05", "1.235", "12.35"], "4 digits", [1e-8, 1e-3, 1e-2]),
        (["0.25", "0.5", "0.1234"], "4 decimals", [1e-4] * 3),
        (["0.25", "0.12345678901234567", "0.3"], "all digits of float64", [0, 0, 0]),
        ([repr(float(np.float32(x))) for x in (0.1, 0.2)], "all digits of float32", [0, 0]),
        (["nan", "0.12", "inf", "0"], "2 decimals", [0.01] * 4),
    ],
    ids=str,
)
def test_the_digits_of_a_log(tmp_path, numbers, precision, unit):
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["loss", *numbers]))
    log = read_log(path)
    assert log.precision == precision
    np.testing.assert_allclose(log.unit(log.losses), unit, rtol=1e-12)
    assert log.dtype == ("float64" if precision == "all digits of float64" else "float32")


REFUSED = {
    b"": "is empty",
    b"step,loss\n": "expected losses in column 'loss', got none",
    bytes(range(256)): "expected CSV, JSON lines or TensorBoard events, got binary data",
    "step,loss ü\n".encode("latin-1"): "expected text in UTF-8, got the byte 0xfc",
    "step,loss\n1,2\n".encode("utf-16"): "expected text in UTF-8, got the byte 0xff",
    b"step,loss\n1,0.5\n2,low\n": "line 3: expected a number in column 'loss', got 'low'",
    b"step,loss\n1,1_0\n": "line 2: expected a number in column 'loss', got '1_0'",
    b"step,loss\nx,0.5\n": "line 2: expected the step in column 'step', got 'x'",
    b"step,loss\nnan,0.5\n": "line 2: expected the step in column 'step', got 'nan'",
    b"step,loss\n1,0.5,7\n": "line 2: expected 2 cells, got 3",
    b"loss,loss\n1,2\n": "line 1: expected a name once, got 'loss' twice",
    b"0.5\n0.25\n": "line 1: expected the names of the columns, got '0.5'",
    b"step,mse\n1,2\n": "which column is the loss? Name one of step, mse",
    b"a_loss,b_loss\n1,2\n": "which column is the loss? Name one of a_loss, b_loss",
    b'{"loss": 1}\n{"loss": \n': "line 2: expected a JSON object, got '{\"loss\":'",
    b'[{"loss": 1}]\n': "line 1: expected a JSON object, got '[{\"loss\": 1}]'",
    b"{\n": "line 1: expected a JSON object, got '{'",
    b'{"loss": true}\n': "line 1: expected a number in column 'loss', got True",
    b'{"loss": ' + b"[" * 100_000 + b"\n": 'line 1: expected a JSON object, got \'{"loss": \\[+\\.\\.\\.',
    b'loss\n"' + b"1" * 200_000 + b'"\n': "line 2: field larger than field limit .*",
}


@pytest.mark.parametrize("content", REFUSED, ids=lambda content: str(content[:24]))
def test_what_is_no_log_is_refused_with_its_place(tmp_path, run, content):
    (tmp_path / "bad").write_bytes(content)
    write(tmp_path / "good.csv", [1.0, 0.5])
    message = REFUSED[content] if "\\" in REFUSED[content] or ".*" in REFUSED[content] else re.escape(REFUSED[content])
    status, out, err = run("compare", "good.csv", "bad")
    assert (status, out) == (2, "")
    assert re.fullmatch(f"rnn-parity compare: error: argument B: bad: {message}\n", err), err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["a.csv", "none.csv"], "argument B: none.csv: there is no such file or directory"),
        (["a.csv", "."], "argument B: .: expected event files of TensorBoard (*tfevents*), got none"),
        (["a.csv:", "a.csv"], "argument A: a.csv:: expected the name of a column behind the colon, got none"),
        (["a.csv:mse", "a.csv"], "argument A: a.csv: expected a column 'mse', got step, loss"),
        (
            ["a.csv", "a.csv", "--step-column", "t"],
            "argument A: a.csv: expected the steps in one of step, loss, got 't'",
        ),
        (["a.csv", "later.csv"], "the logs have no step in common: A 1 to 3; B 7 to 8"),
        (["a.csv", "a.csv", "--seeds-a", "x"], "argument --seeds-a: x: there is no such file or directory"),
        (
            ["a.csv", "a.csv", "--seeds-a", "a.csv", "--controls-b", "a.csv"],
            "argument --seeds-a, --seeds-b: not allowed with --controls-a or --controls-b",
        ),
        (
            ["a.csv", "b.csv", "--controls-a", "b.csv"],
            "control 1 of A (b.csv) must be its run again from weights moved by one unit in the last place, got a "
            "first loss of 0.7 for 0.5; other seeds are given with --seeds-a and --seeds-b",
        ),
        (
            ["a.csv", "b.csv", "--out", "a.csv"],
            "argument --out: expected a directory to write into, got a.csv: File exists",
        ),
    ],
    ids=str,
)
def test_bad_options(tmp_path, run, argv, message):
    write(tmp_path / "a.csv", [0.5, 0.25, 0.125])
    write(tmp_path / "b.csv", [0.7, 0.25, 0.125])
    (tmp_path / "later.csv").write_text("step,loss\n7,0.1\n8,0.1\n")
    assert run("compare", *argv) == (2, "", f"rnn-parity compare: error: {message}\n")
    assert len(list(tmp_path.iterdir())) == 3


def test_event_files_without_tensorboard_name_the_extra(tmp_path, run, monkeypatch):
    events(tmp_path, ".1", [(1, "loss", 0.5)])
    monkeypatch.setitem(__import__("sys").modules, "tensorboard.util", None)
    status, _, err = run("compare", ".", ".")
    assert status == 2
    assert err.endswith("event files need the package tensorboard: pip install 'rnn-parity[tensorboard]'\n")


# Matching


def test_different_intervals_are_matched_by_the_common_steps(tmp_path):
    write(tmp_path / "a.csv", np.arange(1.0, 31.0))
    (tmp_path / "b.jsonl").write_text("".join(f'{{"step": {i}, "loss": {i}.5}}\n' for i in (10, 20, 30, 40)))
    found = compare_logs(tmp_path / "a.csv", tmp_path / "b.jsonl")
    assert (found.by, found.steps.tolist(), found.b_loss.tolist()) == ("step", [10, 20, 30], [10.5, 20.5, 30.5])
    assert found.notes == (
        "A: 27 of its 30 rows have no partner and are left out",
        "B: 1 of its 4 rows has no partner and is left out",
    )
    assert "begin with step 10: whether both start alike is not seen" in hints(found)[0]


def test_without_steps_row_is_matched_with_row(tmp_path):
    write(tmp_path / "a.csv", [1.2345, 1.5432, 1.3333])
    (tmp_path / "b.csv").write_text("loss\n1.2345\n1.5432\n")
    (tmp_path / "c.csv").write_text("epoch,loss\n" + 2 * "1,1.2345\n" + 2 * "2,2\n")
    found = compare_logs(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (found.by, found.steps.tolist(), found.outcome) == ("row", [1, 2], "equal")
    counted = compare_logs(tmp_path / "a.csv", tmp_path / "c.csv")
    assert (counted.by, counted.b_loss.tolist()) == ("row", [1.2345, 1.2345, 2])
    assert counted.notes[0] == "B: 'epoch' repeats itself: rows counted instead"
    asked = compare_logs(tmp_path / "a.csv", tmp_path / "c.csv", step_column="row")
    assert (asked.by, asked.notes[0]) == ("row", "B: 1 of its 4 rows has no partner and is left out")


def test_steps_and_epochs_are_matched_only_if_asked_to(tmp_path, run):
    (tmp_path / "a.csv").write_text("global_step,loss\n" + "".join(f"{i},{1 / (i + 1)}\n" for i in range(30)))
    (tmp_path / "b.csv").write_text("epoch,loss\n" + "".join(f"{i / 10},{1 / (i + 1)}\n" for i in range(30)))
    status, _, err = run("compare", "a.csv", "b.csv")
    assert (status, err) == (
        2,
        "rnn-parity compare: error: the logs must count the same, got global_step in A (a.csv) and epoch in B (b.csv); "
        "--step-column names what to match by, or 'row'\n",
    )
    assert compare_logs(tmp_path / "a.csv", tmp_path / "b.csv", step_column="row").outcome == "equal"
    (tmp_path / "c.csv").write_text((tmp_path / "a.csv").read_text().replace("global_step", "Iter"))
    assert compare_logs(tmp_path / "a.csv", tmp_path / "c.csv").by == "step"


def test_one_common_step_says_nothing_of_growth_and_has_no_plural(tmp_path, run):
    marks = hints(compare_logs(write(tmp_path / "a.csv", [0.5]), write(tmp_path / "b.csv", [0.7])))
    assert [mark[:16] for mark in marks] == ["The first losses"]
    out = run("compare", "a.csv", "b.csv")[1]
    assert "a.csv: loss, 1 row, 1 decimal\n" in out
    assert "\n1 common step, step with step: 1 to 1\n" in out


def test_counting_from_0_and_from_1_is_noticed(tmp_path):
    write(tmp_path / "a.csv", [1.2345, 1.5432, 1.3333])
    (tmp_path / "b.csv").write_text("step,loss\n0,1.2345\n1,1.5432\n2,1.3333\n")
    found = compare_logs(tmp_path / "a.csv", tmp_path / "b.csv")
    assert found.notes[0].startswith("the steps of B are those of A -1; if they should be equal, the step column 'row'")
    assert compare_logs(tmp_path / "a.csv", tmp_path / "b.csv", step_column="row").outcome == "equal"


@pytest.mark.parametrize(("text", "step"), [("nan", 3), ("-inf", 3), ("nan", 1)])
def test_a_loss_that_is_not_finite_ends_the_comparison(tmp_path, text, step):
    write(tmp_path / "a.csv", [0.5, 0.25, 0.2, 0.1])
    (tmp_path / "b.jsonl").write_text(
        "".join(
            f'{{"loss": {x}}}\n' for x in ("0.5", "0.25", "NaN" if text == "nan" else "-Infinity", "0.1")[3 - step :]
        )
    )
    found = compare_logs(tmp_path / "a.csv", tmp_path / "b.jsonl", step_column="row")
    assert f"the loss of B is {text} at row {step}: compared up to there" in found.notes
    assert (found.outcome, len(found.steps)) == ("cannot tell", step - 1)
    assert f"the loss of B is {text} at row {step}" in found.sentence()


# Verdicts


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("controls", ["a", "b", "ab"])
def test_honest_runs_differ_by_rounding(compared, dtype, controls):
    found = compared(honest(dtype=dtype, lr=0.1), controls=controls)
    assert found.outcome == "rounding", found.sentence()
    assert found.dtype == dtype
    assert found.evidence.statistic > -1  # there is a difference, and the controls are no larger


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_no_rounding(compared, bug):
    found = compared(trained(bug.sides, **bug.settings))
    assert found.outcome == "not rounding", found.sentence()
    assert found.shown_at <= 9
    assert f"at step {found.shown_at:.0f} the curves differ by " in found.sentence()


@pytest.mark.parametrize(("times", "outcome"), [(5, "rounding"), (30, "cannot tell"), (200, "not rounding")])
def test_between_rounding_and_a_bug_the_logs_do_not_decide(compared, times, outcome):
    loss = 1 + np.random.default_rng(0).random(30)
    found = compared([np.column_stack([loss + apart, loss + apart + 1e-12]) for apart in (0, times * 1e-12)])
    assert found.outcome == outcome
    if outcome == "cannot tell":
        assert (
            "curves differ by 30 times what rounding does to the controls. Honest runs seldom differ by 10 times"
            in found.reason
        )


def test_controls_of_the_finer_side_alone_show_nothing(compared):
    losses = trained(dtype="float32", torch_dtype="float64")
    assert compared(losses, controls="a").outcome == compared(losses, controls="ab").outcome == "rounding"
    found = compared(losses, controls="b")
    assert found.outcome == "cannot tell"
    assert found.reason == "the controls show what rounding does in float32, the coarser, only if they are of A"


def test_digits_that_a_log_does_not_hold_are_no_evidence(compared):
    loss = 1 + np.random.default_rng(0).random(30)
    wrong = [np.column_stack([loss + apart, loss + apart + 1e-6]) for apart in (0, 5e-4)]
    assert compared(wrong, "{:.7f}".format).outcome == "not rounding"
    assert compared(wrong, "{:.5f}".format).outcome == "cannot tell"
    coarse = compared(honest(), "{:.4f}".format)
    assert coarse.outcome == "equal"
    assert "in the 4 decimals that the logs hold" in coarse.sentence()
    assert "the logs hold 1 decimal, so that no bug below " in compared(honest(), "{:.1f}".format).sentence()
    noise = np.array([[0.4321, 0.4321], [0.3212, 0.3213], [0.2111, 0.2111]])  # from two numbers nearer than 1e-9
    found = compared((noise, noise[:, ::-1]), "{:.4f}".format)
    assert (found.evidence.statistic, found.first_different) == (-math.inf, 2)
    assert found.outcome == "cannot tell"  # no bug below a percent could be seen


def test_controls_that_were_not_moved_show_nothing(compared):
    losses = honest()
    still = [np.column_stack([side[:, 0], side[:, 0]]) for side in losses]
    assert compared(still).reason.startswith("no control differs from its run in any digit of the logs")


def test_one_step_or_what_rounding_hides_does_not_decide(compared):
    a, b = honest(dtype="float32", lr=0.1)
    assert compared((a[:1], b[:1])).reason == "the logs have one step in common; more would decide"
    loss, later = 1 + np.random.default_rng(0).random(5), np.array([0, 1, 1, 1, 1])
    found = compared([np.column_stack([loss + apart * later, loss + 1e-3 * later]) for apart in (0, 1e-4)])
    assert found.outcome == "cannot tell"
    assert "rounding moves the curves so much that no bug below" in found.reason


def test_equal_curves(tmp_path, run):
    path = write(tmp_path / "a.csv", honest()[0][:, 0])
    (tmp_path / "b.csv").write_bytes(path.read_bytes())
    for other in ("b.csv", "a.csv"):
        status, out, _ = run("compare", "a.csv", other)
        assert status == 0
        assert "Equal: the curves are equal to the last bit at each of 24 steps." in " ".join(out.split())
        assert ("A and B are the same column of the same file" in out) == (other == "a.csv")


@pytest.mark.parametrize(
    ("change", "first", "then"),
    [
        (
            lambda a, t: 1e-16 * 1.2**t,
            "equal in all digits|as from equal weights and data",
            "without a jump, by a factor of 1.199 ",
        ),
        (
            lambda a, t: np.where(t < 40, 0, 1e-6),
            "equal in all digits",
            "At step 41 the difference jumps, from .* to 1e-06",
        ),
        (
            lambda a, t: 0.2 + 0 * t,
            "differ by 2e-01 of the loss; .* So the weights, the data or the loss differ",
            "neither",
        ),
        (lambda a, t: 1e-8 + 0 * t, "in float32, and not in float64", "neither"),
    ],
)
def test_without_controls_there_are_marks_and_no_verdict(tmp_path, run, change, first, then):
    t = np.arange(80)
    a = 1 + np.random.default_rng(0).random(80)
    a[0] = 1
    write(tmp_path / "a.csv", a)
    write(tmp_path / "b.csv", a + change(a, t))
    status, out, _ = run("compare", "a.csv", "b.csv")
    assert status == 3
    verdict, marks = " ".join(out.split()).split("Marks, which prove nothing:")
    assert "Cannot tell: without control runs nothing shows what rounding does." in verdict
    assert re.search(first, marks), marks
    assert re.search(then, marks), marks


# Seeds


def test_p_is_the_share_of_all_deals_that_lie_as_far_apart():
    rng = np.random.default_rng(1)
    walks = rng.normal(size=(40, 10)).cumsum(axis=0)
    alike = [compare_groups(w[:, :5], w[:, 5:]).p for w in rng.normal(size=(200, 40, 10)).cumsum(axis=1)]
    assert np.mean(np.array(alike) <= 0.1) == pytest.approx(0.1, abs=0.05)
    apart = compare_groups(walks[:, :5], walks[:, 5:] + 100)
    assert (apart.p, apart.smallest, apart.exact) == (2 / 252, 2 / 252, True)  # a deal and its mirror image
    assert compare_groups(walks[:, :1], walks[:, 1:] + 1e4).smallest == 1 / 10
    assert compare_groups(walks[:, [0, 1, 2, 3, 4]], walks[:, [4, 3, 2, 1, 0]]).p == 1
    many = rng.normal(size=(5, 20))
    drawn_ways = compare_groups(many[:, :10], many[:, 10:] + 9)
    assert (drawn_ways.exact, drawn_ways.p) == (False, pytest.approx(1e-4, rel=0.5))


def test_what_would_have_been_seen_is_seen():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 30, 5))
    found = compare_groups(a, b)
    assert found.outcome == "not different"
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    spread = np.sqrt((a**2 + b**2).sum(axis=1, keepdims=True) / 8)
    assert compare_groups(a, b + found.seen * spread).outcome == "different"
    assert compare_groups(a, b + 0.8 * found.seen * spread).outcome == "not different"


def test_groups_of_seeds(logs, run):
    def group(seeds, side, **changes):
        settings = {**RUN, "controls": 0, "window": 55, "epochs": 4, "lr": 0.05, **changes}
        loops = [MovedOnce(Settings(**{**settings, "seed": seed})).loop(side) for seed in seeds]
        return np.array([[loop.step().loss for loop in loops] for _ in range(loops[0].total)])

    a, b = logs("a", group(range(5), 0)), logs("b", group(range(5, 10), 1))
    c = logs("c", group(range(5, 10), 1, optimizer="sgd", lr=0.001))
    assert compare_logs(a[0], b[0], seeds_a=a[1:], seeds_b=b[1:]).outcome == "not different"
    status, out, _ = run("compare", a[0], c[0], "--seeds-a", *a[1:], "--seeds-b", *c[1:])
    assert status == 1
    assert re.search(r"Different: .* times the spread of the seeds; p = 0\.0079\)", " ".join(out.split()))
    found = summary(compare_logs(a[0], c[0], seeds_a=a[1:], seeds_b=c[1:]))
    assert (found["outcome"], found["seeds"]["p"], found["seeds"]["runs"]) == ("different", 2 / 252, [5, 5])
    copy = a[0].with_name("copy.csv")
    copy.write_bytes(a[1].read_bytes())
    for option, argv in (("a", ["--seeds-a", *a[1:], copy]), ("b", ["--seeds-b", *a[2:], a[1], copy])):
        status, _, err = run("compare", a[0], c[0], *argv)
        assert status == 2
        assert f"argument --seeds-{option}: expected runs from different seeds, got the same curve as " in err
        assert f"({a[1]}) and as " in err
        assert err.endswith(f"({copy})\n")
    few = compare_logs(a[0], c[0], seeds_a=a[1:3], seeds_b=c[1:3])
    assert few.sentence().startswith("Cannot tell: with 3 and 3 runs p cannot be below 0.1, and at most 0.01 is called")
    assert "5 runs a side would decide" in few.sentence()


# The command and what it writes


def test_the_command_prints_and_writes_it_all(logs, run, tmp_path):
    a, b = (logs(name, losses) for name, losses in zip("ab", honest(dtype="float64", lr=0.1), strict=True))
    status, out, err = run("compare", a[0], b[0], "--controls-a", a[1], "--controls-b", b[1], "--out", "x/y")
    assert (status, err) == (0, "")
    head, table, figures, verdict, files = out.strip().split("\n\n")
    assert head.splitlines()[2] == "24 common steps, step with step: 1 to 24"
    assert table.split()[:8] == ["step", "loss", "of", "A", "loss", "of", "B", "difference"]
    assert len(table.splitlines()) == 9
    assert figures.startswith("first difference ")
    assert verdict.startswith("Rounding: at each of 24 steps the curves differ by at most ")
    names = ["compare.csv", "compare.png", "compare.svg", "compare.json"]
    assert files.splitlines() == [f"wrote x/y/{name}" for name in names]
    assert sorted(path.name for path in (tmp_path / "x" / "y").iterdir()) == sorted(names)
    back = compare_logs("x/y/compare.csv:a_loss", "x/y/compare.csv:b_loss", controls_a=["x/y/compare.csv:a_control_1"])
    assert_array_equal(back.b_loss, read_log(b[0]).losses)
    assert_array_equal(back.a_others[:, 0], read_log(a[1]).losses)
    content = json.loads(Path("x/y/compare.json").read_text(), parse_constant=pytest.fail)
    assert content["statistic"] == compare_logs(a[0], b[0], controls_a=a[1:], controls_b=b[1:]).evidence.statistic
    assert (content["outcome"], content["steps"], content["a"]["column"]) == ("rounding", 24, "loss")


def test_a_notebook_shows_even_one_step(tmp_path):
    found = compare_logs(write(tmp_path / "a.csv", [1.0]), write(tmp_path / "b.csv", [0.0]))
    assert found._repr_html_().startswith("<p>Cannot tell: ")


def test_a_long_curve_is_drawn_with_few_points_and_its_largest_difference(tmp_path):
    loss = np.linspace(2, 1, 5000)
    jump = np.zeros(5000)
    jump[4321] = 1
    found = compare_logs(write(tmp_path / "a.csv", loss), write(tmp_path / "b.csv", loss + jump))
    lines = {line.get_label(): line.get_ydata() for axes in found.plot().axes for line in axes.lines}
    assert all(len(y) <= 2000 for y in lines.values())
    assert lines["|A - B|"].max() == 1


def test_a_setting_of_the_calibration_stays_below_the_threshold():
    assert max(measure(*drawn(3))) < LOGS_BUG


def test_controls_and_seeds_are_not_given_together(tmp_path):
    files = []
    for name, loss in (("a", "1.0"), ("b", "2.0")):
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text(f"step,loss\n1,{loss}\n2,0.5\n")
    with pytest.raises(ValueError, match="controls and seeds must not be given together"):
        compare_logs(*files, controls_a=files[:1], seeds_b=files[1:])
    found = compare_logs(*files)
    assert repr(found) == f"<LogComparison: {found.sentence()}>"


def test_an_empty_line_between_json_lines_is_skipped(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"step": 1, "loss": 0.5}\n\n{"step": 2, "loss": 0.25}\n')
    assert compare_logs(file, file).a_loss.tolist() == [0.5, 0.25]
