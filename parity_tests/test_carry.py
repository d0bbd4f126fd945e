"""Windows in a row: detached with a step between, with full history, reset; and whole training runs."""

from typing import Any

import numpy as np
import pytest
import torch

import numpy_rnn
from numpy_rnn.training import NUMPY, epoch_loss, predict, train
from parity_tests.helpers import assert_parity, randomise
from torch_rnn import twin
from torch_rnn.backend import TORCH

WINDOWS, T, B, I, H = 4, 3, 2, 3, 5  # noqa: E741


def make() -> tuple[Any, Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    model = numpy_rnn.SequenceModel("rnn", I, H, 2, num_layers=2, dtype="float64")
    randomise(model, rng)
    return model, twin(model), rng.normal(size=(WINDOWS, T, B, I)), rng.normal(size=(WINDOWS, T, B, 2))


def assert_gradients(model: Any, torch_model: Any, case: str) -> None:
    for (name, a), b in zip(model.named_parameters(), torch_model.parameters(), strict=True):
        assert_parity(a.grad, b.grad, f"d {name}, {case}")
        assert_parity(a, b, f"{name}, {case}")


@pytest.mark.parametrize("carry", ["detach", "reset"])
def test_windows_with_a_step_between(carry: str) -> None:
    model, torch_model, x, y = make()
    optimizers = [
        numpy_rnn.SGD(model.parameters(), lr=0.1, momentum=0.9),
        torch.optim.SGD(torch_model.parameters(), lr=0.1, momentum=0.9),
    ]
    state = torch_state = None
    for i in range(WINDOWS):
        for optimizer in optimizers:
            optimizer.zero_grad()
        output, state = model(x[i], state)
        numpy_rnn.mse_loss(output, y[i]).backward()
        torch_output, torch_state = torch_model(torch.from_numpy(x[i]), torch_state)
        torch.nn.functional.mse_loss(torch_output, torch.from_numpy(y[i])).backward()
        for optimizer in optimizers:
            optimizer.step()
        assert_gradients(model, torch_model, f"{carry}, window {i}")
        state, torch_state = (state.detach(), torch_state.detach()) if carry == "detach" else (None, None)


def test_a_detached_carry_without_detach_fails_so_the_test_above_needs_it() -> None:
    model, _, x, y = make()
    optimizer = numpy_rnn.SGD(model.parameters(), lr=0.1)
    output, state = model(x[0])
    numpy_rnn.mse_loss(output, y[0]).backward(retain_graph=True)
    optimizer.step()
    output, state = model(x[1], state)
    with pytest.raises(numpy_rnn.InPlaceModificationError):
        numpy_rnn.mse_loss(output, y[1]).backward()


def test_full_history_equals_pytorchs_undetached_graph_and_one_long_window() -> None:
    model, torch_model, x, y = make()
    state = torch_state = None
    losses, torch_losses = [], []
    for i in range(WINDOWS):
        output, state = model(x[i], state)
        losses.append(numpy_rnn.mse_loss(output, y[i], reduction="sum"))
        torch_output, torch_state = torch_model(torch.from_numpy(x[i]), torch_state)
        torch_losses.append(torch.nn.functional.mse_loss(torch_output, torch.from_numpy(y[i]), reduction="sum"))
    sum(losses).backward()
    sum(torch_losses).backward()
    assert_gradients(model, torch_model, "full history")
    added = [p.grad.numpy().copy() for p in model.parameters()]

    model.zero_grad()
    output, _ = model(x.reshape(WINDOWS * T, B, I))
    numpy_rnn.mse_loss(output, y.reshape(WINDOWS * T, B, 2), reduction="sum").backward()
    for (name, parameter), gradient in zip(model.named_parameters(), added, strict=True):
        assert_parity(parameter.grad, gradient, f"d {name}, one long window")


def test_the_training_loops_full_carry_is_one_step_on_one_long_window() -> None:
    model, _, x, y = make()
    x, y = x.reshape(WINDOWS * T, B, I), y.reshape(WINDOWS * T, B, 2)
    start = model.state_dict()
    (record,) = train(model, numpy_rnn.SGD(model.parameters(), lr=0.1), x, y, window=5, carry="full")
    windowed = model.state_dict()
    assert record.length == WINDOWS * T
    model.load_state_dict(start)
    (long,) = train(model, numpy_rnn.SGD(model.parameters(), lr=0.1), x, y, window=len(x))
    np.testing.assert_allclose([record.loss, record.grad_norm], [long.loss, long.grad_norm], rtol=1e-13)
    for name, array in model.state_dict().items():
        assert_parity(windowed[name], array, name)


OPTIMIZERS = {
    "sgd": ("sgd", {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-3}),
    "nesterov": ("sgd", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "adadelta": ("adadelta", {"lr": 0.3}),  # at lr 1 the full carry is chaotic: one ulp in one weight of the NumPy
    # model alone moves its own loss by 1e-2 within 300 steps, so there no bound could tell rounding from a bug
}


@pytest.mark.parametrize("carry", ["detach", "reset", "full"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_hundred_steps_of_training(name: str, carry: str) -> None:
    """Loss at every step, and every weight at the end, within 1e-12 of PyTorch's."""
    optimizer, settings = OPTIMIZERS[name]
    t = np.arange(61.0)
    series = np.stack([np.sin(t / 3), np.cos(t / 5)], axis=1)[:, None]
    x, y = series[:-1], series[1:]
    model = numpy_rnn.SequenceModel("rnn", 2, 8, 2, dtype="float64", rng=1)
    torch_model = twin(model)
    epochs = 300 if carry == "full" else 75
    options: dict[str, Any] = {"window": 17, "carry": carry, "epochs": epochs, "clip": 1.0}
    ours = train(model, NUMPY.optimizers[optimizer](model.parameters(), **settings), x, y, NUMPY, **options)
    theirs = train(
        torch_model, TORCH.optimizers[optimizer](torch_model.parameters(), **settings), x, y, TORCH, **options
    )
    records = list(zip(ours, theirs, strict=True))
    assert len(records) == 300
    assert [(a.epoch, a.step, a.length) for a, _ in records] == [(b.epoch, b.step, b.length) for _, b in records]
    np.testing.assert_allclose([a.loss for a, _ in records], [b.loss for _, b in records], rtol=1e-12)
    np.testing.assert_allclose([a.grad_norm for a, _ in records], [b.grad_norm for _, b in records], rtol=1e-10)
    assert records[-1][0].loss < 0.5 * records[0][0].loss
    for (parameter_name, a), b in zip(model.named_parameters(), torch_model.parameters(), strict=True):
        assert_parity(a, b, parameter_name)


@pytest.mark.parametrize("carry", ["detach", "reset", "full"])
def test_the_training_loop_against_one_written_out_in_torch(carry: str) -> None:
    """Both backends share the loop, so its rules need a judge that does not: the same, spelled out for two epochs."""
    model, torch_model, x, y = make()
    x, y = x.reshape(WINDOWS * T, B, I), y.reshape(WINDOWS * T, B, 2)
    records = list(
        train(model, numpy_rnn.SGD(model.parameters(), lr=0.1), x, y, window=5, carry=carry, epochs=2, clip=0.05)
    )
    optimizer = torch.optim.SGD(torch_model.parameters(), lr=0.1)
    expected = []
    for _epoch in range(2):
        state, parts = None, []
        for start in (0, 5, 10):  # the last window has two steps
            output, state = torch_model(torch.from_numpy(x[start : start + 5]), state)
            loss = ((output - torch.from_numpy(y[start : start + 5])) ** 2).mean()
            parts.append((len(output), loss))
            if carry != "full":
                optimizer.zero_grad()
                loss.backward()
                expected.append((len(output), loss.item(), clip(torch_model)))
                optimizer.step()
                state = state.detach() if carry == "detach" else None
        if carry == "full":
            optimizer.zero_grad()
            total = sum(n * part for n, part in parts) / len(x)
            total.backward()
            expected.append((len(x), total.item(), clip(torch_model)))
            optimizer.step()
    assert [r.length for r in records] == [n for n, _, _ in expected]
    np.testing.assert_allclose([(r.loss, r.grad_norm) for r in records], [e[1:] for e in expected], rtol=1e-11)
    assert min(r.grad_norm for r in records) > 0.05  # reported before clipping, which always acts here


def clip(module: Any) -> float:
    norm = torch.sqrt(sum((p.grad**2).sum() for p in module.parameters()))
    for p in module.parameters():
        p.grad.mul_(0.05 / (norm + 1e-6))
    return float(norm)


def test_predict_leaves_every_mode_as_it_was() -> None:
    model, torch_model, x, _ = make()
    for network, backend in ((model, NUMPY), (torch_model, TORCH)):
        network.rnn.eval()
        predict(network, x[0], backend)
        assert (network.training, network.rnn.training, network.linear.training) == (True, False, True)


def test_predict_is_the_output_from_the_zero_state_of_each_window() -> None:
    model, torch_model, x, _ = make()
    x = x.reshape(WINDOWS * T, B, I)
    for network, backend in ((model, NUMPY), (torch_model, TORCH)):
        windows = [backend.array(network(backend.tensor(part))[0]) for part in (x[:5], x[5:10], x[10:])]
        np.testing.assert_array_equal(predict(network, x, backend, window=5), np.concatenate(windows))
        np.testing.assert_array_equal(predict(network, x[:5], backend), windows[0])


def test_a_schedule_is_stepped_after_each_epoch_and_a_plateau_told_its_mean_loss() -> None:
    model, _, x, y = make()
    x, y = x.reshape(WINDOWS * T, B, I), y.reshape(WINDOWS * T, B, 2)
    optimizer = numpy_rnn.SGD(model.parameters(), lr=0.1)
    told: list[Any] = []
    plateau, steps = NUMPY.schedules["reducelronplateau"](optimizer), NUMPY.schedules["steplr"](optimizer, 1)
    plateau.step = steps.step = lambda *measure: told.append(measure)
    for scheduler in (plateau, steps):
        records = list(train(model, optimizer, x, y, window=5, epochs=2, scheduler=scheduler))  # of 5, 5 and 2 steps
        means = [np.average([r.loss for r in part], weights=[5, 5, 2]) for part in (records[:3], records[3:])]
        np.testing.assert_allclose([epoch_loss(records[:3]), epoch_loss(records[3:])], means, rtol=1e-14)
        if scheduler is plateau:
            np.testing.assert_allclose(np.ravel(told), means, rtol=1e-14)
    assert told[2:] == [(), ()]


def test_the_cross_entropy_of_the_answer_is_torchs() -> None:
    rng = np.random.default_rng(0)
    model = numpy_rnn.SequenceModel("rnn", I, H, 4, dtype="float64", rng=0)
    torch_model, x, y = twin(model), rng.normal(size=(2 * T, B, I)), rng.integers(4, size=(2 * T, B))
    runs = []
    for network, backend in ((model, NUMPY), (torch_model, TORCH)):
        optimizer = backend.optimizers["sgd"](network.parameters(), lr=0.1)
        runs.append([*train(network, optimizer, x, y, backend, window=T, loss="cross_entropy", answer=2)])
    with torch.no_grad():
        start = twin(numpy_rnn.SequenceModel("rnn", I, H, 4, dtype="float64", rng=0))
        logits = start(torch.from_numpy(x[:T]))[0][1:]  # K before B, as torch wants it
        expected = torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.from_numpy(y[1:T])).item()
    np.testing.assert_allclose([run[0].loss for run in runs], expected, rtol=1e-13)
    assert_gradients(model, torch_model, "cross entropy")
    assert [r.length for r in runs[0]] == [2, 2]


def test_a_window_of_one_step() -> None:
    model, _, x, y = make()
    records = train(model, numpy_rnn.SGD(model.parameters()), x[0], y[0], window=1)
    assert [r.length for r in records] == [1] * T


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"carry": "keep"}, "carry must be one of detach, reset, full, got 'keep'"),
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"window": 2.5}, "window must be a whole number of at least 1, got 2.5"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"clip": float("nan")}, "clip must be above 0 or None, got nan"),
    ],
)
def test_bad_options_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    model, _, x, y = make()
    with pytest.raises(ValueError, match=message):
        train(model, None, x[0], y[0], **{"window": 3, **options})
    with pytest.raises(ValueError, match="the same number of time steps, at least 1, got 3 and 2"):
        train(model, None, x[0], y[0][:2], window=3)
