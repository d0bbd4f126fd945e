"""What PyTorch refuses is refused here, by message; and some things that PyTorch lets pass, silently wrong."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils import rnn as torch_rnn_utils

import numpy_rnn

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
