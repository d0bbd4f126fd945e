"""The command ``rnn-parity``: what it prints and writes, its exit statuses, and bad input."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import numpy_rnn
from numpy_rnn.cells import rnn as rnn_cell
from torch_rnn.cli import curves
from torch_rnn.cli.main import COMMANDS, main

WITH_A_MODEL = ("curves", "gradients")
QUICK = ["--hidden", "3", "--window", "50", "--epochs", "2", "--controls", "1"]


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    """Run the command in an empty directory and return its exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*argv):
        try:
            status = main([str(word) for word in argv])
        except SystemExit as exit:
            status = exit.code
        return status, *capsys.readouterr()

    return call


def test_default_run(call, tmp_path):
    status, out, err = call("curves")
    assert (status, err) == (0, "")
    head, epochs, scores, verdict, files = out.strip().split("\n\n")
    assert " ".join(head.replace("\\\n", "").split()) == (
        "rnn-parity curves --task sunspots --cell rnn --hidden 16 --layers 1 --window 20 --carry detach "
        "--optimizer adadelta --lr 1.0 --clip off --epochs 30 --dtype float64 --seed 0 --controls 4 --out loss-curves"
    )
    rows = [line.split() for line in epochs.splitlines()]
    assert [row[0] for row in rows] == ["epoch", "1", "5", "9", "13", "18", "22", "26", "30"]
    assert all(abs(float(ours) - float(theirs)) < 1e-9 for _, ours, theirs, _ in rows[1:])
    assert float(rows[-1][1]) < 0.2 * float(rows[1][1])  # it learns
    assert [line.split()[0] for line in scores.splitlines()[1:3]] == ["1921-1955", "1956-1979"]
    assert verdict.startswith("Rounding: at each of 330 steps the curves differ by at most ")
    names = ("report.html", "curves.csv", "curves.png", "curves.svg", "run.json")
    assert files.splitlines() == [f"wrote loss-curves/{name}" for name in names]
    assert all(len(line) <= 80 for line in out.splitlines())
    assert out.isascii()
    assert "\x1b" not in out
    assert len((tmp_path / "loss-curves" / "curves.csv").read_text().splitlines()) == 331


@pytest.mark.parametrize("seed", range(5))
def test_default_model_beats_persistence(seed):
    """Clearly: by half on 1921-1955, by a quarter on 1956-1979, and below the targets, whatever the seed."""
    from torch_rnn.curves.runs import Run, Settings

    run = Run(Settings("sunspots", "rnn", 16, 1, 20, "detach", "adadelta", 1.0, None, 30, "float64", seed, controls=0))
    list(run.train())
    (first, _), (second, _) = run.scores()
    assert first.error < first.target < 0.5 * first.baseline
    assert second.error < second.target < 0.75 * second.baseline


def test_settings_line_repeats_the_run(call, tmp_path):
    status, out, _ = call("curves", *QUICK, "--out", "a b/one", "--lr", "0.1", "--clip", "3", "--dtype", "float32")
    assert status == 0
    words = shlex.split(out.split("\n\n")[0].replace("\\\n", " "))
    assert words[0] == "rnn-parity"
    again = [word if word != "a b/one" else "two" for word in words[1:]]
    assert call(*again)[0] == 0
    assert (tmp_path / "two" / "curves.csv").read_bytes() == (tmp_path / "a b" / "one" / "curves.csv").read_bytes()
    settings = [json.loads((tmp_path / out / "run.json").read_text())["settings"] for out in ("a b/one", "two")]
    assert settings[0] == settings[1]


def test_article_brings_its_own_defaults(call, tmp_path):
    status, out, _ = call("curves", "--task", "article", "--epochs", "2")
    assert status == 0
    settings = json.loads((tmp_path / "loss-curves" / "run.json").read_text())["settings"]
    assert (settings["hidden"], settings["window"], settings["lr"]) == (1, 1, 0.01)
    assert "no test span" in out
    with (tmp_path / "loss-curves" / "curves.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 10


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--lr", "0.5", "--window", "2"], {"lr": 0.5, "window": 2, "optimizer": "adadelta"}),
        (["--optimizer", "sgd"], {"lr": 0.05, "window": 1, "optimizer": "sgd"}),
        (["--optimizer", "adadelta"], {"lr": 0.01}),
        (["--clip", "off"], {"clip": None}),
        (["--task", "sine"], {"lr": 1.0, "hidden": 16, "window": 20}),
        (["--task", "sine", "--optimizer", "sgd", "--hidden", "2"], {"lr": 0.05, "hidden": 2}),
    ],
    ids=str,
)
def test_given_options_win_over_the_tasks(call, tmp_path, argv, expected):
    assert call("curves", "--task", "article", "--epochs", "1", *argv)[0] == 0
    settings = json.loads((tmp_path / "loss-curves" / "run.json").read_text())["settings"]
    assert {name: settings[name] for name in expected} == expected


def test_float32_says_how_far_the_curves_are_apart(call):
    status, out, _ = call("curves", "--dtype", "float32", *QUICK)
    assert status == 0
    text = " ".join(out.split())
    assert re.search(r"differ by at most \d+(\.\d+)? times what rounding alone does", text)
    assert re.search(r"A bug that moves the loss by \de-0[4-7] of it at step \d would have been seen", text)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_curves_exit_1_for_a_planted_bug(call, monkeypatch, tmp_path, dtype):
    monkeypatch.setattr(numpy_rnn.SGD, "_update", lambda self, p, g, state, group: p.__isub__(1.1 * group["lr"] * g))
    status, out, err = call("curves", "--optimizer", "sgd", "--dtype", dtype, *QUICK)
    assert (status, err) == (1, "")
    assert "Not rounding: at step 2 the curves differ by " in " ".join(out.split())
    found = json.loads((tmp_path / "loss-curves" / "run.json").read_text())["verdict"]
    assert (found["outcome"], found["fault"]["step"], found["fault"]["stage"]) == ("not rounding", 1, "update")


def test_curves_exit_3_for_losses_that_are_not_finite(call, tmp_path):
    argv = ["--cell", "rnn-relu", "--optimizer", "sgd", "--lr", "1e200", *QUICK]
    status, out, err = call("curves", *argv)
    assert (status, err) == (3, "")
    assert re.search(r"Cannot tell: .* stopped at step \d, where NumPy's loss is (nan|inf)", " ".join(out.split()))
    found = json.loads((tmp_path / "loss-curves" / "run.json").read_text())["verdict"]
    assert found["outcome"] == "cannot tell"
    assert {(place["side"], place["stage"]) for place in found["not_finite"]} == {
        ("numpy", "forward"),
        ("torch", "forward"),
    }


@pytest.mark.parametrize(
    "argv",
    [
        ["--torch-dtype", "float32"],
        ["--cell", "gru", "--layers", "2", "--dropout", "0.3"],
        ["--optimizer", "sgd", "--optimizer-settings", "momentum=0.9", "nesterov=True"],
        ["--optimizer", "adam", "--optimizer-settings", "betas=(0.8, 0.9)"],
        ["--schedule", "exponentiallr", "--schedule-settings", "gamma=0.5"],
    ],
    ids=str,
)
def test_every_option_reaches_the_run_and_the_settings_line(call, tmp_path, argv):
    status, out, err = call("curves", *QUICK, *argv)
    assert (status, err) == (0, "")
    words = shlex.split(out.split("\n\n")[0].replace("\\\n", " "))
    assert call(*words[1:], "--out", "again")[0] == 0
    first, again, plain = (tmp_path / name / "curves.csv" for name in ("loss-curves", "again", "plain"))
    assert first.read_bytes() == again.read_bytes()
    assert call("curves", *QUICK, "--out", "plain")[0] == 0
    assert first.read_bytes() != plain.read_bytes()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--dropout", "1"], "argument --dropout: expected a number from 0 and below 1, got '1'"),
        (["--dropout", "much"], "argument --dropout: expected a number from 0 and below 1, got 'much'"),
        (["--dropout", "0.5"], "argument --dropout: dropout must be 0 with one layer, .*"),
        (["--embedding", "4"], "argument --embedding: embedding must be None for task sunspots, .*"),
        (["--task", "adding", "--window", "5"], "argument --window: window must be 10, .*, got 5"),
        (["--optimizer-settings", "momentum"], "argument --optimizer-settings: expected NAME=VALUE, got 'momentum'"),
        (["--optimizer-settings", "mass=1"], "argument --optimizer-settings: .*'mass'"),
        (
            ["--optimizer-settings", "momentum=.9"],
            "argument --optimizer-settings: adadelta has rho, eps, weight_decay, maximize, and no setting 'momentum'",
        ),
        (
            ["--optimizer-settings", "lr=3"],
            "argument --optimizer-settings: expected settings other than lr, which --lr sets, got lr=3",
        ),
        (
            ["--schedule", "steplr"],
            "argument --schedule-settings: steplr needs step_size: expected step_size=X, got none",
        ),
        (["--split", "1"], "argument --split: expected a number above 0 and below 1, got '1'"),
        (["--split", "0"], "argument --split: expected a number above 0 and below 1, got '0'"),
        (["--schedule-settings", "gamma=1"], "argument --schedule-settings: .*--schedule.*"),
        (["--controls", "-1"], "argument --controls: expected a whole number of at least 0, got '-1'"),
    ],
    ids=str,
)
def test_options_that_are_refused(call, tmp_path, argv, message):
    check_refused(call("curves", *argv), f"rnn-parity curves: error: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--cell", "rnn-relu", "--layers", "2"],
        ["--cell", "lstm", "--proj-size", "2", "--bidirectional"],
        ["--task", "article"],
        ["--task", "copy"],
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients(call, tmp_path, argv, dtype):
    status, out, err = call("gradients", *argv, "--dtype", dtype, "--seed", "4")
    assert (status, err) == (0, "")
    asked = "embedding.dweight" if "copy" in argv else "dx"  # symbols have no gradient
    assert all(name in out for name in ("output", "h_n", asked, "dh_0", "dweight_hh_l0", "dbias_ih_l0"))
    assert "within" in out.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_gradients_exit_1_for_a_planted_bug(call, monkeypatch):
    honest = rnn_cell.backward

    def wrong(*args, **kwargs):
        gradients = honest(*args, **kwargs)
        return gradients._replace(dw_hh=gradients.dw_hh * (1 + 1e-9))

    monkeypatch.setattr(rnn_cell, "backward", wrong)
    status, out, _ = call("gradients")
    assert status == 1
    assert [line.split()[0] for line in out.splitlines() if line.endswith("FAIL")] == ["rnn.dweight_hh_l0"]


CHOICE = r"invalid choice: {} \(choose from .*\)"
WHOLE = "expected a whole number of at least {}, got '{}'"
NUMBER = "expected a finite number above 0, got '{}'"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--task", "moon", CHOICE.format("'moon'")),
        ("--proj-size", "-1", WHOLE.format(0, "-1")),
        ("--cell", "lstn", CHOICE.format("'lstn'")),
        ("--dtype", "float16", CHOICE.format("'float16'")),
        *[
            (name, value, WHOLE.format(1, value))
            for name in ("--hidden", "--layers", "--window")
            for value in ("0", "x")
        ],
        ("--hidden", "2.5", WHOLE.format(1, "2.5")),
        ("--seed", "-1", WHOLE.format(0, "-1")),
    ],
)
@pytest.mark.parametrize("command", WITH_A_MODEL)
def test_bad_model_options(call, tmp_path, command, option, value, message):
    check_refused(call(command, f"{option}={value}"), f"rnn-parity {command}: error: argument {option}: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--carry", "keep", CHOICE.format("'keep'")),
        ("--optimizer", "adamm", CHOICE.format("'adamm'")),
        *[("--epochs", value, WHOLE.format(1, value)) for value in ("0", "-3", "1e3", "")],
        *[("--lr", value, NUMBER.format(value)) for value in ("0", "-1", "nan", "inf", "1e999", "fast", "")],
        *[
            ("--clip", value, f"expected a finite number above 0 or off, got '{value}'")
            for value in ("0", "-1", "nan", "inf", "on")
        ],
        ("--out", "", "expected the name of a directory, got ''"),
    ],
)
def test_bad_training_options(call, tmp_path, option, value, message):
    check_refused(call("curves", f"{option}={value}"), f"rnn-parity curves: error: argument {option}: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", WITH_A_MODEL)
def test_article_has_one_hidden_unit(call, tmp_path, command):
    message = r"argument --hidden: hidden_size must be 1 for task article, whose .*, got 16"
    check_refused(call(command, "--task", "article", "--hidden", "16"), f"rnn-parity {command}: error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_bad_commands(call):
    check_refused(call(), "rnn-parity: error: the following arguments are required: COMMAND")
    check_refused(call("curve"), r"rnn-parity: error: argument COMMAND: invalid choice: 'curve' \(choose from .*\)")
    check_refused(call("curves", "--hide", "4"), "rnn-parity curves: error: unrecognized arguments: --hide 4")
    check_refused(call("curves", "--hidden"), "rnn-parity curves: error: argument --hidden: expected one argument")


@pytest.mark.parametrize("taken", ["out", "out/curves.png"])
def test_out_cannot_be_written_into(call, tmp_path, monkeypatch, taken):
    """A file where the directory should be, a directory where a file should be: said before the training."""
    monkeypatch.setattr(curves, "_train", lambda *_: pytest.fail("trained before --out was looked at"))
    if taken == "out":
        (tmp_path / "out").write_text("precious")
    else:
        (tmp_path / taken).mkdir(parents=True)
    expected = "rnn-parity curves: error: argument --out: expected a directory to write into, got {}: .+"
    check_refused(call("curves", "--out", "out"), expected.format("out"))
    if taken == "out":
        check_refused(call("curves", "--out", "out/deeper"), expected.format("out/deeper"))
        assert (tmp_path / "out").read_text() == "precious"


def test_out_is_read_only(call, monkeypatch):
    from torch_rnn.curves import report

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(curves, "_train", lambda *_: pytest.fail("trained before --out was looked at"))
    monkeypatch.setattr(report, "TemporaryFile", refuse)
    message = "expected a directory to write into, got loss-curves: Permission denied"
    check_refused(call("curves"), f"rnn-parity curves: error: argument --out: {message}")


def test_out_is_created_with_its_parents(call, tmp_path):
    assert call("curves", *QUICK, "--out", "a/b/c")[0] == 0
    assert call("curves", *QUICK, "--out", tmp_path / "a" / "b" / "c")[0] == 0  # and replaced
    assert len(list((tmp_path / "a" / "b" / "c").iterdir())) == 6


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "rnn-parity curves: interrupted"),
        (MemoryError(), 2, "rnn-parity curves: error: not enough memory: .*"),
        (OSError(28, "No space left on device"), 2, "rnn-parity curves: error: .*No space left on device"),
    ],
    ids=["interrupt", "memory", "disk"],
)
def test_what_goes_wrong_on_the_way_is_one_line(call, monkeypatch, error, status, message):
    def fail(*_):
        raise error

    monkeypatch.setattr(curves, "_train", fail)
    got, _, err = call("curves", *QUICK)
    assert got == status
    assert re.fullmatch(message + "\n", err)


def test_the_output_may_go_into_a_string(monkeypatch):
    """As in a notebook, whose streams are no files with an encoding."""
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert main(["gradients", "--hidden", "2", "--window", "3"]) == 0
    assert "dweight_hh_l0" in sys.stdout.getvalue()


def test_a_missing_module_of_our_own_is_no_advice_to_install_something(call, monkeypatch):
    def fail(*_):
        raise ModuleNotFoundError("No module named 'torch_rnn.lost'", name="torch_rnn.lost")

    monkeypatch.setattr(curves, "_train", fail)
    with pytest.raises(ModuleNotFoundError, match=r"torch_rnn\.lost"):
        call("curves", *QUICK)


@pytest.mark.parametrize("missing", ["torch", "matplotlib", "plotly", "rich", "tensorboard"])
def test_missing_library(tmp_path, missing):
    """As where it is not installed: one line that says what to install, before anything is done."""
    extra = "tensorboard" if missing == "tensorboard" else "parity"
    done = python(
        tmp_path,
        f"""
        import sys
        class Missing:
            def find_spec(self, name, path, target=None):
                if name.split(".")[0] == {missing!r}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name={missing!r})
        sys.meta_path.insert(0, Missing())
        from torch_rnn.cli.main import main
        sys.exit(main(["curves", "--epochs", "1", "--tensorboard"]))
        """,
    )
    assert done.returncode == 2
    assert done.stderr == f"rnn-parity curves: error: {missing} is not installed: pip install 'rnn-parity[{extra}]'\n"
    assert missing == "rich" or list(tmp_path.iterdir()) == []  # rich is first needed for the progress bar


@pytest.mark.parametrize("argv", [["--help"], ["curves", "--help"], ["gradients", "--help"], ["--version"]], ids=str)
def test_help_does_not_import_torch(tmp_path, argv):
    done = python(
        tmp_path,
        f"""
        import sys
        from torch_rnn.cli.main import main
        try:
            main({argv!r})
        finally:
            print([name for name in ("torch", "matplotlib", "plotly", "rich") if name in sys.modules], file=sys.stderr)
        """,
    )
    assert done.returncode == 0
    assert done.stderr == "[]\n"
    assert done.stdout.startswith("rnn-parity" if argv == ["--version"] else "usage: rnn-parity")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_it_all(call, command):
    status, out, _ = call(command, "--help")
    assert status == 0
    assert all(word in out for word in ("exit status", "examples:", "Printed:"))
    if command in WITH_A_MODEL:
        assert all(word in out for word in ("default: 16", "--seed", "article"))
    assert out.isascii()
    assert all(len(line) <= 80 for line in out.splitlines())


def test_a_closed_pipe_is_quiet(tmp_path):
    """As with ``rnn-parity curves | head -1``."""
    code = "import sys; from torch_rnn.cli.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "curves", *QUICK],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 141


def check_refused(result, message):
    """One line on stderr, exit status 2, nothing on stdout."""
    status, out, err = result
    assert (status, out) == (2, "")
    assert re.fullmatch(message + "\n", err), err


def environment():
    """The interpreter's own, with the packages under test on the path."""
    return {**os.environ, "PYTHONPATH": str(Path(numpy_rnn.__file__).parents[1])}


def python(directory, code):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, env=environment(), check=False)
