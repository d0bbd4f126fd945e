"""What the tasks hold, how predictions are judged, and what the article's loop gives."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import numpy_rnn
from numpy_rnn import tasks
from numpy_rnn.training import train
from torch_rnn import to_numpy


@pytest.fixture
def numbers() -> dict[int, float]:
    """The sunspot number of each year, read without the code under test."""
    path = Path(numpy_rnn.__file__).parent / "data" / "sunspots.csv"
    with path.open() as file:
        return {int(row["year"]): float(row["sunspots"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", tasks.TASKS)
def test_arrays(name):
    task = tasks.load(name)
    assert task.name == name
    if task.symbols is None:
        assert task.inputs.dtype == task.targets.dtype == np.float64
        assert task.inputs.ndim == task.targets.ndim == 3
    else:
        assert task.inputs.dtype.kind == task.targets.dtype.kind == "i"
        assert task.inputs.shape == task.targets.shape
        assert min(task.inputs.min(), task.targets.min()) >= 0
        assert max(task.inputs.max(), task.targets.max()) < task.symbols
    assert len(task.inputs) == len(task.targets) >= task.train_steps == len(task.x) == len(task.y)
    for steps in task.spans.values():
        assert task.train_steps <= steps.start < steps.stop <= len(task.targets)


def test_article_is_the_articles():
    task = tasks.load("article")
    assert_array_equal(task.x.ravel(), [1, 2, 3, 4, 5])
    assert_array_equal(task.y.ravel(), [2, 4, 6, 8, 10])
    assert task.defaults == {"hidden": 1, "window": 1, "optimizer": "adadelta", "lr": 0.01}
    assert isinstance(task.model("rnn", 1), numpy_rnn.RNN)
    assert task.score(task.targets) == ()
    with pytest.raises(ValueError, match=r"hidden_size must be 1 for task article, .*got 16"):
        task.model("rnn", 16)


def test_article_from_pytorchs_weights():
    """The losses of the article's data with a detached state, measured with PyTorch from its seed 0."""
    torch.manual_seed(0)
    rnn = to_numpy(torch.nn.RNN(1, 1))
    task = tasks.load("article")
    optimizer = numpy_rnn.Adadelta(rnn.parameters(), lr=0.01)
    x, y = task.x.astype(np.float32), task.y.astype(np.float32)
    losses = [record.loss for record in train(rnn, optimizer, x, y, window=1)]
    assert_allclose(losses, [8.505754, 24.684723, 48.587666, 80.478149, 120.370972], rtol=1e-6)


def test_sunspots_scaling_and_shift(numbers):
    task = tasks.load("sunspots")
    known = [numbers[year] for year in range(1700, 1921)]
    mean = sum(known) / len(known)
    std = (sum((n - mean) ** 2 for n in known) / len(known)) ** 0.5
    expected = [(numbers[year] - mean) / std for year in range(1700, 1980)]
    assert_allclose(task.inputs.ravel(), expected[:-1], rtol=1e-12, atol=1e-14)
    assert_allclose(task.targets.ravel(), expected[1:], rtol=1e-12, atol=1e-14)
    assert task.train_steps == 1920 - 1701 + 1  # the targets 1701..1920
    assert task.y[-1, 0, 0] == pytest.approx((numbers[1920] - mean) / std)


@pytest.mark.parametrize(("span", "first", "last"), [("1921-1955", 1921, 1955), ("1956-1979", 1956, 1979)])
def test_sunspots_scores_by_independent_arithmetic(numbers, span, first, last):
    """In sunspot numbers, not in scaled ones: the measure must not depend on the scaling."""
    task = tasks.load("sunspots")
    record = [numbers[year] for year in range(1700, 1980)]
    mean = sum(record) / len(record)
    variance = sum((n - mean) ** 2 for n in record) / len(record)
    years = range(first, last + 1)
    persistence = sum((numbers[year] - numbers[year - 1]) ** 2 for year in years) / len(years) / variance
    constant = sum((numbers[year] - 50.0) ** 2 for year in years) / len(years) / variance

    known = np.array([numbers[year] for year in range(1700, 1921)])
    (score,) = [
        s for s in task.score(np.full_like(task.targets, (50.0 - known.mean()) / known.std())) if s.span == span
    ]
    assert_allclose([score.error, score.baseline], [constant, persistence], rtol=1e-12)
    assert all(s.error == 0 for s in task.score(task.targets))


def test_sunspots_persistence_figures():
    assert_allclose([s.baseline for s in tasks.load("sunspots").score(tasks.load("sunspots").targets)],
                    [0.42679, 0.96467], atol=1e-5)  # fmt: skip


def test_sine_persistence_by_trigonometry():
    """sin((t + 1)/4) - sin(t/4) = 2 sin(1/8) cos((t + 1/2)/4)."""
    task = tasks.load("sine")
    steps = np.arange(200, 300)
    squares = (2 * np.sin(1 / 8) * np.cos((steps + 0.5) / 4)) ** 2
    (score,) = task.score(task.inputs)
    assert_allclose(score.baseline, squares.mean() / np.sin(np.arange(301) / 4).var(), rtol=1e-12)
    assert score.error == score.baseline


def test_scores_of_float32_and_of_nan():
    task = tasks.load("sine")
    (score,) = task.score(task.inputs.astype(np.float32))
    assert_allclose(score.error, score.baseline, rtol=1e-6)
    (score,) = task.score(np.full_like(task.targets, np.nan))
    assert np.isnan(score.error)
    (score,) = task.score(np.full_like(task.targets, 1e300))
    assert np.isinf(score.error)


def test_errors():
    task = tasks.load("sine")
    with pytest.raises(
        ValueError, match=r"task must be one of sunspots, article, sine, adding, copy, text, got 'sinus'"
    ):
        tasks.load("sinus")
    with pytest.raises(ValueError, match=r"predictions must be \(T, B, K\) = \(300, 1, 1\), got \(200, 1, 1\)"):
        task.score(task.y)


def test_a_shorter_last_window_is_kept():
    task = tasks.load("sunspots")
    model = task.model("rnn", 3, rng=0)
    records = list(train(model, numpy_rnn.SGD(model.parameters()), task.x, task.y, window=64))
    assert [record.length for record in records] == [64, 64, 64, 28]


def test_adding_by_its_definition():
    task = tasks.load("adding")
    for start in range(0, len(task.inputs), task.length):
        numbers, marks = np.moveaxis(task.inputs[start : start + task.length], 2, 0)  # (10, 40) each
        assert_array_equal(marks[:5].sum(axis=0), 1)
        assert_array_equal(marks[5:].sum(axis=0), 1)
        assert_allclose((numbers * marks).sum(axis=0), task.targets[start + task.length - 1, :, 0], rtol=1e-15)
    (score,) = task.score(np.ones_like(task.targets))
    assert score.baseline == 1 / 6
    assert_allclose(score.error, 1 / 6, rtol=0.15)  # of 400 sequences; it is 1/6 in the mean


def test_copy_by_its_definition_and_only_the_answer_counts():
    task = tasks.load("copy")
    sequences = task.inputs.reshape(-1, task.length, 40)
    answers = task.targets.reshape(-1, task.length, 40)
    assert_array_equal(answers[:, -3:], sequences[:, :3])
    assert_array_equal(sequences[:, 3:], np.repeat([8] * 5 + [9] * 3, 40).reshape(1, 8, 40).repeat(60, axis=0))
    logits = np.zeros((*task.targets.shape, 10))
    np.put_along_axis(logits, task.targets[..., None], 50.0, axis=2)
    before = np.arange(len(logits)) % task.length < task.length - 3
    logits[before] = np.random.default_rng(0).normal(size=logits[before].shape)
    (score,) = task.score(logits)
    assert score.error < 1e-12
    assert_allclose(task.score(np.where(np.arange(10) < 8, 0.0, -1e9) + 0 * logits)[0].error, np.log(8), rtol=1e-12)


def test_text_is_the_files_in_parallel_streams():
    task = tasks.load("text")
    text = (Path(numpy_rnn.__file__).parent / "data" / "alice.txt").read_text(encoding="utf-8")
    read = "".join(task.alphabet[number] for number in task.inputs.T.ravel())
    assert text.startswith(read)
    assert len(text) - len(read) <= 16
    following = "".join(task.alphabet[number] for number in task.targets.T.ravel())
    assert text[1:].startswith(following)
    (score,) = task.score(np.zeros((*task.targets.shape, task.symbols)))
    assert_allclose(score.error, np.log(task.symbols), rtol=1e-12)
    train, test = np.split(task.targets, [task.train_steps])
    surprise = [-np.log((train == k).sum() + 1) for k in range(task.symbols)]
    expected = np.mean([surprise[k] for k in test.ravel()]) + np.log(train.size + task.symbols)
    assert_allclose(score.baseline, expected, rtol=1e-12)  # each letter counted once more than it was seen
    assert tasks.characters("no letter is left over", "ab" * 8, 2).inputs.shape == (7, 2)
    with pytest.raises(ValueError, match="text must have at least 33 characters"):
        tasks.characters("short", "ab" * 10, 16)
