"""The user's own data: what is read from a CSV file, a text and arrays, what is refused, and runs on them."""

import csv
import io
import json
import re
import shlex
import tracemalloc
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import numpy_rnn
from numpy_rnn import tasks
from numpy_rnn.tasks import own, table
from numpy_rnn.training import PART, predict, predictions, sample
from torch_rnn import compare_curves
from torch_rnn.backend import TORCH
from torch_rnn.curves.calibrate import describe
from torch_rnn.curves.picture import figure
from torch_rnn.curves.runs import Run, Settings
from torch_rnn.curves.verdict import ROUNDING
from torch_rnn.twins import twin

SMALL: dict[str, Any] = {"hidden": 3, "window": 10, "epochs": 2, "controls": 1}
OPTIONS = ["--hidden", "3", "--window", "10", "--epochs", "2", "--controls", "1"]


def file(tmp_path: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def weather(tmp_path: Path) -> Path:
    """Sixty days, with a column of text and two of numbers, one of which has gaps."""
    rng = np.random.default_rng(0)
    lines = ["day,place,warmth (C),rain"]
    for day in range(60):
        rain = "" if day in (7, 8, 30) else f"{rng.random():.2f}"
        lines.append(f'2026-{1 + day // 28}-{1 + day % 28},"Oslo, N",{10 * np.sin(day / 5) + rng.normal():.3f},{rain}')
    return file(tmp_path, "\n".join(lines) + "\n", "weather.csv")


# A column of a table


@pytest.mark.parametrize(
    ("content", "column", "values"),
    [
        ("a,b\n1,2\n3,4\n", "b", [2, 4]),
        ("a,b\r\n1,2\r\n3,4\r\n", "b", [2, 4]),
        ("a,b\r1,2\r3,4", "a", [1, 3]),
        (b"\xef\xbb\xbfa,b\n1,2\n", "a", [1]),
        ("a;b\n1,5;2\n-2,5e3;.5\n", "a", [1.5, -2500]),
        ("a;b\n1.5;2\n", "a", [1.5]),
        ("date;warm, C\n1;2\n", "date", [1]),
        ('"a";"b"\n1;2\n', "b", [2]),
        ("a\tb\n1\t2\n", "b", [2]),
        ("a, b\n 1 , +2 \n", "b", [2]),
        ('a, b\n1, "2"\n', "b", [2]),
        ('"a\nb","say ""c"""\n1,2\n', "a\nb", [1]),
        ('a,b\n"two\nlines",2\n"",4\n', "b", [2, 4]),
        ("\n\na,b\n\n1,2\n\n3,4\n\n", "b", [2, 4]),
        ("a,a\n1,2\n", "2", [2]),
        ("a,b\n1,2\n", "2", [2]),
        ("2,1\n3,4\n", "1", [2, 3]),
        ("2020-01-01,7\n2020-01-02,8\n", "2", [7, 8]),
        ("a\n1\n2\n\n\n", None, [1, 2]),
        ("1\n2\n", None, [1, 2]),
        ("é,b\n1,2\n", "é", [1]),
    ],
)
def test_a_column_is_read(tmp_path: Path, content: str | bytes, column: str | None, values: list[float]) -> None:
    name, numbers, filled = table.read_column(file(tmp_path, content), column)
    assert_array_equal(numbers, values)
    assert numbers.dtype == np.float64
    assert filled == 0
    assert name == (column if column and not column.isdecimal() else name)


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        ("", "a", r"csv must have a header and rows, got .*a\.csv, which is empty"),
        ("\n \n", "a", "which is empty"),
        ("a,b\n", "a", r"csv must have at least 3 rows of numbers, got 0 in .*a\.csv"),
        ("a,b\n1,2\n3,4\n", "a", "at least 3 rows of numbers, got 2"),
        ("a,b\n1,2\n", None, "column must be one of 'a', 'b', or a number from 1 to 2, got none"),
        ("a,b\n1,2\n", "c", "column must be one of 'a', 'b', or a number from 1 to 2, got 'c'"),
        ("a,b\n1,2\n", "3", "or a number from 1 to 2, got '3'"),
        (",".join(f"c{i}" for i in range(30)) + "\n", "x", r"'c19' and 10 more, or a number from 1 to 30, got 'x'"),
        ("1,2\n3,4\n", "a", "column must be a number from 1 to 2, for the file has no header: .*, got 'a'"),
        ("a,a\n1,2\n", "a", "column must name one column, got 'a', which 2 have: say 1 or 2"),
        ("a,b\n1,2\n,3\nNA,4\n", "a", "got 'a' with 2 of 3 missing, the first on line 3; fill_missing puts the entry"),
        ("a,b\n1,2\n3,4\nnan,4\n", "a", "1 of 3 missing, the first on line 4"),
        ("a\n1\n\n\n2\n", "a", "2 of 4 missing, the first on line 3"),
        ("a,b\n1,2\nwarm,3\n", "a", "column must have numbers, got 'a' with 'warm' on line 3"),
        ("a,b\n1_000,2\n", "a", "got 'a' with '1_000' on line 2"),
        ('a,b\n"1,5",2\n', "a", "got 'a' with '1,5' on line 2: decimal commas are read where semicolons separate"),
        ("a;b\n1,5;2\n1.000;3\n", "a", "with '1.000' on line 3: the column has both decimal points and commas"),
        ("a,b\n1,2\ninf,3\n", "a", "column must have finite numbers, got 'a' with 'inf' on line 3"),
        ("a,b\n1,2\n1e999,3\n", "a", "finite numbers, got 'a' with '1e999' on line 3"),
        (
            "a,b\n" + "5,2\n" * 9,
            "a",
            "column must vary where it is trained on, got 'a' with 5 in each of the first 7",
        ),
        ("a,b\n1e-200,0\n" + "0,0\n" * 6, "a", "got 'a' with 0 to 1e-200, a variance too small"),
        ("7,b\n1,2\n", None, "column must be a number from 1 to 2, .* no header: .* the number 7, got none"),
        (
            "a,b\n,1\n2,3\n",
            "a",
            "number in its first row, got 'a' with none in the first 1: remove .* fill_missing has",
        ),
        ("a,b\n1e200,0\n" + "0,0\n" * 5, "a", r"numbers whose squares are finite, got 'a' with up to 1e\+200"),
        ("a,b\n1,2\n3\n", "a", "csv must have 2 columns in every row as in its first, got 1 on line 3"),
        ("a,b\n1,2\n3,4,\n", "a", "got 3 on line 3"),
        ('a,b\n1,"2\n3,4\n', "a", "csv must have its quotation marks in pairs, and shorter entries: .*, near line 3"),
        ('a,b\n1,"' + "x" * 140_000 + '"\n', "a", "field larger than field limit .*, near line 2"),
        ('"a\n', "a", "csv must have its quotation marks in pairs: .*, near line 1"),
        ("a,b\n1,\0\n", "a", "csv must be text, got a zero byte on line 2"),
        ("größe,b\n1,2\n".encode("latin-1"), "b", r"csv must be a file in UTF-8, got .*a\.csv with the byte 0xf6"),
        ("a,b\n1,2\n".encode("utf-16"), "b", r"with the byte 0xff \(it looks like UTF-16\)"),
    ],
)
def test_a_column_is_refused(tmp_path: Path, content: str | bytes, column: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tasks.load(csv=file(tmp_path, content), column=column)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "LONGEST", 50)
    with pytest.raises(ValueError, match="csv must have lines of fewer than 50 characters, got a longer one, line 2"):
        tasks.load(csv=file(tmp_path, "a,b\n" + "1" * 60), column="a")


def test_missing_entries_are_filled_on_request(weather: Path, tmp_path: Path) -> None:
    with weather.open(newline="") as opened:
        expected = [row["rain"] for row in csv.DictReader(opened)]
    for day in (7, 8, 30):
        expected[day] = expected[day - 1]
    _, values, filled = table.read_column(weather, "rain", fill_missing=True)
    assert_array_equal(values, np.array(expected, float))
    assert filled == 3
    assert tasks.load(csv=weather, column="rain", fill_missing=True).note.endswith(
        "; 3 missing filled with the entry before"
    )
    with pytest.raises(ValueError, match="a number in its first row, got 'a' with none in the first 1: remove"):
        tasks.load(csv=file(tmp_path, "a,b\n,1\n2,3\n"), column="a", fill_missing=True)


def test_scaling_split_and_persistence_by_independent_arithmetic(weather: Path) -> None:
    with weather.open(newline="") as opened:
        record = [float(row["warmth (C)"]) for row in csv.DictReader(opened)]
    task = tasks.load(csv=weather, column="warmth (C)", split=0.75)
    assert task.name == "weather.csv, warmth (C)"
    assert (task.train_steps, list(task.spans)) == (44, ["last 15 rows"])
    known = record[:45]
    mean = sum(known) / 45
    std = (sum((n - mean) ** 2 for n in known) / 45) ** 0.5
    assert_allclose(task.inputs[:, 0, 0], [(n - mean) / std for n in record[:-1]], rtol=1e-11)
    assert_allclose(task.targets[:, 0, 0], [(n - mean) / std for n in record[1:]], rtol=1e-11)
    whole = sum(record) / 60
    variance = sum((n - whole) ** 2 for n in record) / 60
    persistence = sum((record[i] - record[i - 1]) ** 2 for i in range(45, 60)) / 15 / variance
    (score,) = task.score(task.inputs)
    assert_allclose([score.error, score.baseline], persistence, rtol=1e-12)


@pytest.mark.parametrize("split", [1e-9, 0.5, 1 - 1e-9])
def test_both_parts_of_a_split_have_a_step(tmp_path: Path, split: float) -> None:
    task = tasks.load(csv=file(tmp_path, "a\n1\n2\n4\n"), split=split)
    assert (task.train_steps, len(task.inputs), list(task.spans)) == (1, 2, ["last 1 row"])


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """A file of 2 MB; at its end there are 40 KB of numbers, or a byte a character."""
    table_of = file(tmp_path, "a,b\n" + f"{'x' * 400},1.25\n{'x' * 400},2.5\n" * 2500)
    text_of = file(tmp_path, "tick, tock\n" * 180_000, "a.txt")
    for limit, source in ((0.6e6, {"csv": table_of, "column": "b"}), (11e6, {"text": text_of})):
        tracemalloc.start()
        tasks.load(**source)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < limit, (source, peak)


def test_a_long_series_is_gone_through_in_affordable_steps(tmp_path: Path) -> None:
    task = tasks.load(csv=file(tmp_path, "a\n" + "1\n2\n3\n" * 20_000))
    assert task.defaults == {"window": 47, "epochs": 1}


# A text


def test_a_text_is_cut_into_streams(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + ("Grün\r\nist es.\n" * 60).encode()
    task = tasks.load(text=file(tmp_path, content, "a.txt"))
    read = "".join(task.alphabet[symbol] for symbol in task.inputs.T.ravel())
    following = "".join(task.alphabet[symbol] for symbol in task.targets.T.ravel())
    assert ("Grün\nist es.\n" * 60).startswith(read)
    assert ("Grün\nist es.\n" * 60)[1:].startswith(following)
    assert (task.inputs.shape, task.train_steps) == ((259, 3), 233)
    assert task.inputs.dtype == np.int8


@pytest.mark.parametrize(("symbols", "dtype"), [(128, np.int8), (129, np.int16), (32769, np.int32)])
def test_symbols_are_kept_in_few_bytes(symbols: int, dtype: type) -> None:
    text = "".join(map(chr, range(0x4E00 + symbols - 1, 0x4E00 - 1, -1)))
    task = tasks.characters("many", [text[:100], text[100:]], 1)
    assert task.inputs.dtype == dtype
    assert_array_equal(task.inputs[:, 0], np.arange(symbols - 1, 0, -1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text must have at least 3 characters, got 0"),
        (b"aaaaaaaaa", "text must have characters that differ, got 9 that are all 'a'"),
        (b"ab", "at least 3 characters, got 2"),
        (b"gr\xfcn", r"text must be a file in UTF-8, got .*a\.txt with the byte 0xfc"),
    ],
)
def test_a_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tasks.load(text=file(tmp_path, content, "a.txt"))


def test_sampling_by_its_definition() -> None:
    model = numpy_rnn.SequenceModel("gru", 3, 4, 5, vocabulary=5, dtype="float64", rng=0)
    read, draws = [0, 1, 2], np.random.default_rng(1).random(12)
    for draw in draws:
        logits = predict(model, np.array(read).reshape(-1, 1))[-1, 0]
        shares = np.exp(logits) / np.exp(logits).sum()
        read.append(next(k for k in range(5) if draw < shares[: k + 1].sum()))
    assert len(set(read[3:])) > 2
    assert sample(model, np.array(read[:3]), draws) == read[3:]
    assert sample(twin(model), np.array(read[:3]), draws, TORCH) == read[3:]
    model.linear.bias.data[0] = -1e4  # a symbol of probability 0
    assert sample(model, np.array([0]), np.zeros(1)) == [1]
    model.linear.bias.data[0] = np.nan
    assert sample(model, np.array([0]), draws) == []


# Arrays


class Bomb:
    def __reduce__(self) -> Any:
        return pytest.fail, ("was unpickled",)


RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 4, 3)), RNG.normal(size=(20, 4, 2))
SYMBOLS = RNG.integers(5, size=(2, 20, 4))


def test_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X.astype(np.float32), y=Y, notes="kept out")
    task = tasks.load(npz=tmp_path / "a.npz", split=0.75)
    assert_array_equal(task.inputs, X.astype(np.float32))
    assert_array_equal(task.targets, Y)
    (score,) = task.score(np.broadcast_to(Y[:15].mean(axis=(0, 1)), Y.shape))
    assert (score.span, task.baseline) == ("last 5 steps", "training mean")
    assert_allclose([score.error, score.baseline], ((Y[15:] - Y[:15].mean(axis=(0, 1))) ** 2).mean() / Y.var())


def test_arrays_of_symbols(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=SYMBOLS[0].astype(np.uint16), y=SYMBOLS[1])
    task = tasks.load(npz=tmp_path / "a.npz")
    assert (task.symbols, task.inputs.dtype, task.loss) == (5, np.int8, "cross_entropy")
    assert_array_equal(task.inputs, SYMBOLS[0])
    seen = np.array([(SYMBOLS[1][:16] == k).sum() + 1 for k in range(5)])
    asked = [-np.log(seen[k] / seen.sum()) for k in SYMBOLS[1][16:].ravel()]
    assert_allclose(task.baselines["last 4 steps"], np.mean(asked), rtol=1e-12)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, r"npz must hold the arrays x and y, got x in .*a\.npz"),
        ({}, "x and y, got none"),
        ({"x": X, "y": Y[:19]}, r"x \(T, B, I\) and y \(T, B, K\), .*, got x \(20, 4, 3\) float64 and y \(19, 4, 2\)"),
        ({"x": X[:, 0], "y": Y[:, 0]}, r"got x \(20, 3\) float64"),
        ({"x": X, "y": SYMBOLS[0]}, r"and y \(20, 4\) int64"),
        ({"x": X > 0, "y": Y}, "float64"),
        ({"x": X[:1], "y": Y[:1]}, "npz must hold at least T = 2 steps"),
        ({"x": X[:, :0], "y": Y[:, :0]}, r"got x \(20, 0, 3\)"),
        ({"x": np.where(np.arange(3) == 1, np.nan, X), "y": Y}, r"finite numbers, got nan at x\[0, 0, 1\]"),
        ({"x": X, "y": Y * np.inf}, r"at y\[0, 0, 0\]"),
        ({"x": X, "y": 0 * Y + 2}, "npz must hold y that varies, with a finite variance, got the variance 0"),
        ({"x": SYMBOLS[0], "y": 0 * SYMBOLS[1]}, "npz must hold y that varies, got the symbol 0 everywhere"),
        ({"x": SYMBOLS[0], "y": -SYMBOLS[1]}, "npz must hold symbols from 0 to 1048575, got -4 to 4"),
        ({"x": SYMBOLS[0], "y": 10**9 * SYMBOLS[1]}, "got 0 to 4000000000"),
        ({"x": np.array([Bomb()]), "y": Y}, "npz must be a .npz file .*'x' holds pickled objects, which are never"),
    ],
)
def test_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        tasks.load(npz=tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\3\4 and no more"])
def test_what_is_no_npz_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match=r"npz must be a .npz file with the arrays x and y: .*a\.npz is not a whole"):
        own.from_npz(file(tmp_path, content, "a.npz"))


# Where data are from


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"task": "sine", "csv": "a"}, "csv must be left out where task is given: a run has one source"),
        ({"csv": "a", "npz": "a"}, "npz must be left out where csv is given"),
        ({"column": "a"}, "column must be left out without csv"),
        ({"text": "a", "fill_missing": True}, "fill_missing must be left out without csv"),
        ({"task": "sine", "split": 0.5}, "split must be left out without csv or text or npz"),
        ({"csv": "a", "split": 1.0}, r"split must be above 0 and below 1, got 1\.0"),
    ],
)
def test_arguments_that_do_not_go_together(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tasks.load(**source)


def test_a_run_from_its_settings_refuses_data_that_have_changed(weather: Path) -> None:
    made = compare_curves(csv=weather, column="warmth (C)", **SMALL)
    settings = Settings(**json.loads(json.dumps(asdict(made.settings))))
    assert settings == made.settings
    again = Run(settings)
    assert [pair[0].loss for pair in again.train()] == made.numpy_loss.tolist()
    weather.write_text(weather.read_text().replace("Oslo", "Rome"))
    Run(settings)  # another column
    weather.write_text(weather.read_text() + "2026-3-5,Rome,3.5,0.1\n")
    for make in (lambda: Run(settings), lambda: compare_curves(**asdict(settings))):
        with pytest.raises(
            ValueError, match=r"data must be what they were .*, and weather\.csv, warmth \(C\) has chan"
        ):
            make()


def test_a_task_of_ones_own_arrays() -> None:
    task = tasks.Task("$x^$ 価", X, Y, 15, {"end": slice(15, 20)}, {"end": 1.0}, {"window": 5})
    comparison = compare_curves(task, hidden=3, epochs=1, controls=1)
    assert comparison.verdict.outcome == ROUNDING
    assert (comparison.settings.task, comparison.settings.window, comparison.settings.digest) == (
        "$x^$ 価",
        5,
        task.digest(),
    )
    comparison.plot().savefig(io.BytesIO())  # the name is no mathematics, and the font has not all of it
    with pytest.raises(ValueError, match="csv must be left out where task is a Task"):
        compare_curves(task, csv="a")


def test_the_digest_is_that_of_the_data() -> None:
    def digest(x: Any, y: Any, train_steps: int = 15) -> str:
        return tasks.Task("", x, y, train_steps, {}, {}, {}).digest()

    other = Y.copy()
    other[-1, -1, -1] += 1e-15
    assert digest(X.astype(np.float32), Y) == digest(X.astype(np.float32).astype(np.float64), Y.copy(order="F"))
    assert len({digest(X, Y), digest(X, other), digest(Y, X), digest(X, Y, 14), digest(X.reshape(20, 3, 4), Y)}) == 5


# A long series is never in memory more than once


@pytest.mark.parametrize("backend", [numpy_rnn.training.NUMPY, TORCH], ids=["numpy", "torch"])
def test_predictions_in_parts_are_those_of_the_whole(backend: Any) -> None:
    x = np.random.default_rng(0).normal(size=(PART // 4 + 5, 4, 1))
    model = numpy_rnn.SequenceModel("lstm", 1, 2, 1, num_layers=2, dropout=0.5, dtype="float64", rng=0)
    both = model if backend.name == "numpy" else twin(model)
    parts = list(predictions(both, x, backend))
    assert [len(part) for part in parts] == [PART // 4, 5]
    model.eval()
    assert_allclose(np.concatenate(parts), model(x)[0].numpy(), rtol=1e-12, atol=1e-14)
    assert both.training == (backend.name == "torch")  # what it was: of the twin, nothing was changed


@pytest.mark.parametrize("name", ["sunspots", "copy"])
def test_scores_in_parts_are_those_of_the_whole(name: str) -> None:
    task = tasks.load(name)
    shape = task.targets.shape if task.symbols is None else (*task.targets.shape, task.symbols)
    outputs = np.random.default_rng(0).normal(size=shape)
    parts = (outputs[start : start + 17] for start in range(0, len(outputs), 17))
    for ours, whole in zip(task.score(parts), task.score(outputs), strict=True):
        assert_allclose(ours.error, whole.error, rtol=1e-12)
    with pytest.raises(ValueError, match="predictions must be"):
        task.score(iter([outputs[:17]]))
    with pytest.raises(ValueError, match="predictions must be"):
        task.score(iter([outputs, outputs]))


# A second direction and a projection


@pytest.mark.parametrize(
    "changes",
    [
        {"cell": "rnn", "bidirectional": True, "carry": "full", "epochs": 3},
        {"cell": "gru", "bidirectional": True, "layers": 2, "dropout": 0.3},
        {"cell": "lstm", "proj_size": 2},
        {"cell": "lstm", "proj_size": 2, "bidirectional": True, "layers": 2, "dropout": 0.3, "carry": "reset"},
        {"task": "article", "cell": "lstm", "hidden": 3, "proj_size": 1, "window": 2},
        {"task": "text", "cell": "lstm", "bidirectional": True, "epochs": 1, "window": 60},
    ],
    ids=str,
)
def test_directions_and_projections_are_rounding(changes: dict[str, Any]) -> None:
    comparison = compare_curves(**{"task": "sine", **SMALL, "window": 50, **changes})
    assert comparison.verdict.outcome == ROUNDING, comparison.verdict.sentence()
    assert comparison.run.samples() == ()
    rnn = getattr(comparison.run.models[0], "rnn", comparison.run.models[0])
    assert (rnn.bidirectional, rnn.proj_size) == (changes.get("bidirectional", False), changes.get("proj_size", 0))
    s = comparison.settings
    assert ("bidirectional" in describe(s), "P 2" in describe(s)) == (s.bidirectional, s.proj_size == 2)
    subtitle = figure(comparison.run, comparison.verdict).axes[0].texts[0].get_text()
    assert ("bidirectional" in subtitle, "projection" in subtitle) == (s.bidirectional, s.proj_size > 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"proj_size": 2}, "proj_size must be 0 for cell rnn, which has no projection, got 2"),
        ({"cell": "lstm", "proj_size": 3}, "proj_size must be from 0 to hidden_size - 1 = 2, got 3"),
        ({"task": "article", "bidirectional": True}, "bidirectional must be False for task article, whose hidden"),
        ({"task": "article", "cell": "lstm", "proj_size": 2}, "proj_size must be 1 for task article, .*, got 2"),
    ],
)
def test_directions_and_projections_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_curves(**{"task": "sine", **SMALL, **changes})


# The command


@pytest.mark.parametrize("kind", ["csv", "text", "npz"])
def test_the_command_on_a_file_and_again_from_its_settings_line(run: Any, weather: Path, kind: str) -> None:
    path = Path(f"my data.{kind}")
    argv = [f"--{kind}", path, *OPTIONS, "--out", "one"]
    if kind == "csv":
        weather.rename(weather.with_name(path.name))
        argv += ["--column", "rain", "--fill-missing", "--bidirectional"]
    elif kind == "text":
        weather.with_name(path.name).write_text("tick, tock\n" * 40)
    else:
        np.savez(weather.with_name(path.name), x=X, y=Y)
        argv += ["--cell", "lstm", "--proj-size", "2", "--dtype", "float32"]
    status, out, err = run("curves", *argv)
    assert (status, err) == (0, "")
    words = shlex.split(out.split("\n\n")[0].replace("\\\n", " "))
    assert words[2:4] == [f"--{kind}", str(weather.with_name(path.name))]
    text = " ".join(out.split())
    assert "optimizer steps on each side" in text
    assert ("Both write on by the same random numbers: NumPy" in text) == (kind == "text")
    assert run(*words[1:-1], "two")[0] == 0
    assert Path("one/curves.csv").read_bytes() == Path("two/curves.csv").read_bytes()
    saved = [json.loads(Path(out, "run.json").read_text())["settings"] for out in ("one", "two")]
    assert saved[0] == saved[1]
    assert all(len(line) <= 80 for line in out.split("\n\n", 1)[1].splitlines())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--csv", "none.csv"], "argument --csv: expected a file, got 'none.csv': No such file or directory"),
        (["--text", "."], "argument --text: expected a file, got '.': Is a directory"),
        (["--csv", "weather.csv", "--column", "sun"], "argument --column: column must be one of 'day', 'place', .*"),
        (["--csv", "weather.csv", "--column", "rain"], "argument --column: .*; --fill-missing puts the entry .*"),
        (["--npz", "weather.csv"], "argument --npz: npz must be a .npz file .*"),
        (["--task", "sine", "--npz", "a"], "argument --npz: npz must be left out where task is given: .*"),
        (["--split", "0.5"], "argument --split: split must be left out without csv or text or npz"),
        (["--proj-size", "2"], "argument --proj-size: proj_size must be 0 for cell rnn, .*"),
    ],
    ids=str,
)
def test_the_command_refuses_in_one_line(run: Any, weather: Path, argv: list[str], message: str) -> None:
    status, out, err = run("curves", *argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert re.fullmatch(f"rnn-parity curves: error: {message}\n", err), err
