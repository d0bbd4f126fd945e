"""What PyTorch refuses is refused here, by message; and some things that PyTorch lets pass, silently wrong."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils import rnn as torch_rnn_utils

import numpy_rnn
from numpy_rnn.optim.lr_scheduler import LRScheduler
from numpy_rnn.optim.optimizer import Optimizer
from torch_rnn import check_parity

REFUSALS = (ValueError, TypeError, RuntimeError, IndexError, AssertionError)


class Library:
    """One library, so that a bad call can be written once."""

    def __init__(self, name: str) -> None:
        self.ours = name == "numpy"
        self.nn: Any = numpy_rnn if self.ours else torch.nn
        self.pack: Any = numpy_rnn if self.ours else torch_rnn_utils
        self.functional: Any = numpy_rnn if self.ours else torch.nn.functional

    def zeros(self, *shape: int, dtype: str = "float32") -> Any:
        return np.zeros(shape, dtype) if self.ours else torch.zeros(shape, dtype=getattr(torch, dtype))

    def whole(self, values: list[int]) -> Any:
        return np.array(values) if self.ours else torch.tensor(values)

    def leaf(self, *shape: int) -> Any:
        return numpy_rnn.Tensor(self.zeros(*shape), True) if self.ours else self.zeros(*shape).requires_grad_()


BAD: dict[str, Any] = {}
for KIND in ("RNN", "LSTM", "GRU"):
    BAD |= {
        f"{KIND} of no input": lambda m, k=KIND: getattr(m.nn, k)(0, 5),
        f"{KIND} of negative hidden size": lambda m, k=KIND: getattr(m.nn, k)(3, -5),
        f"{KIND} of fractional hidden size": lambda m, k=KIND: getattr(m.nn, k)(3, 5.0),
        f"{KIND} of no layers": lambda m, k=KIND: getattr(m.nn, k)(3, 5, 0),
        f"{KIND} with dropout 1.5": lambda m, k=KIND: getattr(m.nn, k)(3, 5, 2, dropout=1.5),
        f"{KIND} with dropout True": lambda m, k=KIND: getattr(m.nn, k)(3, 5, 2, dropout=True),
        f"{KIND}: wrong input size": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(6, 4, 2)),
        f"{KIND}: one axis": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(3)),
        f"{KIND}: four axes": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(6, 4, 3, 1)),
        f"{KIND}: no time steps": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(0, 4, 3)),
        f"{KIND}: another dtype": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(6, 4, 3, dtype="float64")),
        f"{KIND}: whole numbers": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(6, 4, 3, dtype="int64")),
    }
for KIND in ("RNN", "GRU"):
    BAD |= {
        f"{KIND}: state of another batch": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(6, 4, 3), m.zeros(1, 3, 5)),
        f"{KIND}: unbatched state": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(6, 4, 3), m.zeros(1, 5)),
        f"{KIND}: batched state": lambda m, k=KIND: getattr(m.nn, k)(3, 5)(m.zeros(6, 3), m.zeros(1, 1, 5)),
        f"{KIND}: state of too few layers": lambda m, k=KIND: getattr(m.nn, k)(3, 5, 2)(
            m.zeros(6, 4, 3), m.zeros(1, 4, 5)
        ),
        f"{KIND} with a projection": lambda m, k=KIND: getattr(m.nn, k)(3, 5, proj_size=2),
    }
BAD |= {
    "RNN: unknown nonlinearity": lambda m: m.nn.RNN(3, 5, nonlinearity="sigmoid"),
    "LSTM: projection as wide as the state": lambda m: m.nn.LSTM(3, 5, proj_size=5),
    "LSTM: negative projection": lambda m: m.nn.LSTM(3, 5, proj_size=-1),
    "LSTM: one state": lambda m: m.nn.LSTM(3, 5)(m.zeros(6, 4, 3), m.zeros(1, 4, 5)),
    "LSTM: wrong c": lambda m: m.nn.LSTM(3, 5)(m.zeros(6, 4, 3), (m.zeros(1, 4, 5), m.zeros(1, 4, 6))),
    "LSTM: wrong h": lambda m: m.nn.LSTM(3, 5)(m.zeros(6, 4, 3), (m.zeros(1, 4, 6), m.zeros(1, 4, 5))),
    "RNNCell: three axes": lambda m: m.nn.RNNCell(3, 5)(m.zeros(6, 4, 3)),
    "RNNCell: wrong input size": lambda m: m.nn.RNNCell(3, 5)(m.zeros(4, 2)),
    "RNNCell: state of another batch": lambda m: m.nn.RNNCell(3, 5)(m.zeros(4, 3), m.zeros(3, 5)),
    "RNNCell: unbatched state": lambda m: m.nn.RNNCell(3, 5)(m.zeros(4, 3), m.zeros(5)),
    "GRUCell: wrong input size": lambda m: m.nn.GRUCell(3, 5)(m.zeros(4, 2)),
    "GRUCell: wrong state": lambda m: m.nn.GRUCell(3, 5)(m.zeros(4, 3), m.zeros(4, 6)),
    "LSTMCell: wrong input size": lambda m: m.nn.LSTMCell(3, 5)(m.zeros(4, 2)),
    "Linear: wrong input size": lambda m: m.nn.Linear(3, 5)(m.zeros(4, 2)),
    "Embedding: index too large": lambda m: m.nn.Embedding(5, 3)(m.whole([5])),
    "Embedding: negative index": lambda m: m.nn.Embedding(5, 3)(m.whole([-1])),
    "Embedding: fractions": lambda m: m.nn.Embedding(5, 3)(m.zeros(2)),
    "Embedding: padding_idx too large": lambda m: m.nn.Embedding(5, 3, 5),
    "Dropout: 1.5": lambda m: m.nn.Dropout(1.5),
    "pack: unsorted": lambda m: m.pack.pack_padded_sequence(m.zeros(6, 2, 3), m.whole([2, 6])),
    "pack: length 0": lambda m: m.pack.pack_padded_sequence(m.zeros(6, 2, 3), m.whole([6, 0])),
    "pack: too few lengths": lambda m: m.pack.pack_padded_sequence(m.zeros(6, 2, 3), m.whole([6])),
    "pack_sequence: unsorted": lambda m: m.pack.pack_sequence([m.zeros(1, 3), m.zeros(2, 3)]),
    "pad: too short": lambda m: m.pack.pad_packed_sequence(
        m.pack.pack_padded_sequence(m.zeros(6, 2, 3), m.whole([6, 2])), total_length=5
    ),
    "pad_sequence: other widths": lambda m: m.pack.pad_sequence([m.zeros(2, 3), m.zeros(2, 4)]),
    "pad_sequence: nothing": lambda m: m.pack.pad_sequence([]),
    "backward: no graph": lambda m: (m.leaf(3)[0].clone().detach() + 0.0).backward(),
    "backward: several elements": lambda m: (m.leaf(3) + m.leaf(3)).backward(),
    "backward: upstream of another shape": lambda m: (m.leaf(3) + m.leaf(3)).backward(m.zeros(2)),
    "write into a leaf": lambda m: m.leaf(3).zero_(),
    "item of several elements": lambda m: m.leaf(3).item(),
}
ONLY_HERE: dict[str, Any] = {
    "pack: a length above T": lambda m: m.pack.pack_padded_sequence(m.zeros(6, 2, 3), m.whole([7, 2])),
    "mse_loss: shapes that broadcast": lambda m: m.functional.mse_loss(m.zeros(4, 1), m.zeros(4)),
}


@pytest.mark.parametrize("name", BAD)
def test_both_refuse(name: str) -> None:
    messages = []
    for library in ("torch", "numpy"):
        with pytest.raises(REFUSALS) as caught:
            BAD[name](Library(library))
        messages.append(str(caught.value))
    assert messages[1]
    assert "Traceback" not in messages[1]
    assert len(messages[1]) > 15


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", ONLY_HERE)
def test_only_ours_refuses_what_is_silently_wrong(name: str) -> None:
    ONLY_HERE[name](Library("torch"))
    with pytest.raises(ValueError, match="must"):
        ONLY_HERE[name](Library("numpy"))


def load_words() -> None:
    optimizer = numpy_rnn.SGD([numpy_rnn.Parameter(np.zeros(3))], 0.1, momentum=0.9)
    optimizer.param_groups[0]["params"][0].grad = numpy_rnn.Tensor(np.ones(3))
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0]["momentum_buffer"] = "fast"
    optimizer.load_state_dict(saved)


def read_only_gradient() -> None:
    leaf = numpy_rnn.Tensor(np.zeros(3), requires_grad=True)
    leaf.grad = numpy_rnn.Tensor(np.broadcast_to(0.0, (3,)))
    (leaf + leaf).backward(np.ones(3))


class Pair(torch.nn.RNN):
    """Returns its output alone."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        return super().forward(input, hx)[0]


X = np.zeros((6, 4, 3), np.float32)
PACKED = numpy_rnn.pack_padded_sequence(X, [6, 5, 2, 2])
NAMED: dict[str, tuple[Any, str]] = {
    "padding_idx must be an int or None, got float": (lambda: numpy_rnn.Embedding(5, 3, 1.0), "TypeError"),
    "state_dict must be a mapping from names to arrays, got list": (
        lambda: numpy_rnn.Linear(3, 5).load_state_dict([]),
        "TypeError",
    ),
    "weight is over a read-only array here": (
        lambda: read_only(numpy_rnn.Linear(3, 5)).load_state_dict(numpy_rnn.Linear(3, 5).state_dict()),
        "ValueError",
    ),
    "input.data must be (ΣT, I), got (15, 3, 1)": (
        lambda: numpy_rnn.RNN(3, 5)(PACKED._replace(data=numpy_rnn.Tensor(np.zeros((15, 3, 1), np.float32)))),
        "ValueError",
    ),
    "dropout_masks must be None in evaluation mode": (
        lambda: numpy_rnn.RNN(3, 5, 2).eval()(X, dropout_masks=[np.ones((6, 4, 5))]),
        "ValueError",
    ),
    "params must be an iterable of Tensors or dicts, got int": (lambda: numpy_rnn.SGD(3, 0.1), "TypeError"),
    "a parameter group must be a dict with params, got {'lr': 0.1}": (
        lambda: numpy_rnn.SGD([{"lr": 0.1}], 0.1),
        "TypeError",
    ),
    "must be real numbers, got str": (load_words, "ValueError"),
    "lengths must be whole numbers (B,), got [[1], [1, 2]]": (
        lambda: numpy_rnn.pack_padded_sequence(X, [[1], [1, 2]]),
        "TypeError",
    ),
    "total_length must be an int or None, got float": (
        lambda: numpy_rnn.pad_packed_sequence(PACKED, total_length=6.0),
        "TypeError",
    ),
    "batch_sizes must be whole numbers, got float64": (
        lambda: numpy_rnn.pad_packed_sequence(PACKED._replace(batch_sizes=np.ones(6))),
        "TypeError",
    ),
    "padded must be (T, B, ...), got (6,)": (lambda: numpy_rnn.unpad_sequence(np.zeros(6), [6]), "ValueError"),
    "grad must be writable, got a read-only array": (read_only_gradient, "ValueError"),
    "torch_module must return 2 tensors as module does, got 1": (
        lambda: check_parity(numpy_rnn.RNN(3, 5, rng=0), X, torch_module=same_weights(Pair(3, 5))),
        "ValueError",
    ),
    "weight_ih_l0 of torch_module must be (5, 3) float32 as in module, got (5, 3) float64": (
        lambda: check_parity(numpy_rnn.RNN(3, 5), X, torch_module=torch.nn.RNN(3, 5, dtype=torch.float64)),
        "ValueError",
    ),
}


def read_only(module: Any) -> Any:
    for parameter in module.parameters():
        parameter.data.flags.writeable = False
    return module


def same_weights(theirs: Any) -> Any:
    ours = numpy_rnn.RNN(3, 5, rng=0)
    theirs.load_state_dict({name: torch.from_numpy(a) for name, a in ours.state_dict().items()})
    return theirs


def test_the_message_names_what_is_wrong() -> None:
    for message, (call, kind) in NAMED.items():
        with pytest.raises(REFUSALS) as caught:
            call()
        assert type(caught.value).__name__ == kind, message
        assert message in str(caught.value)


def test_a_schedule_or_optimizer_without_a_rule_of_its_own_is_none() -> None:
    parameter = numpy_rnn.Parameter(np.zeros(3))
    with pytest.raises(NotImplementedError):
        LRScheduler(numpy_rnn.SGD([parameter], 0.1))
    with pytest.raises(NotImplementedError):
        Optimizer([parameter], {"lr": 0.1, "weight_decay": 0, "maximize": False})._update(
            parameter.data, np.ones(3), {}, {}
        )


def test_what_is_no_leaf_may_be_asked_for_the_gradient_that_it_has() -> None:
    for library in ("torch", "numpy"):
        leaf = Library(library).leaf(3)
        no_leaf = leaf + leaf
        assert no_leaf.requires_grad_() is no_leaf
        with pytest.raises(RuntimeError):
            no_leaf.requires_grad_(False)
