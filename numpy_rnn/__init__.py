"""Recurrent networks by hand: forward and backward passes in NumPy, with PyTorch's names, rules and errors.

The equations are in ``numpy_rnn.cells``, one file a cell, and are derived in ``derivations/``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpy_rnn.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from numpy_rnn.modules import (
    GRU,
    LSTM,
    RNN,
    Dropout,
    Embedding,
    GRUCell,
    Linear,
    LSTMCell,
    Module,
    RNNCell,
    SequenceModel,
)
from numpy_rnn.optim import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
    clip_grad_norm_,
    clip_grad_value_,
    get_total_norm,
    lr_scheduler,
)
from numpy_rnn.packing import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)
from numpy_rnn.tape import GraphFreedError, InPlaceModificationError, no_grad
from numpy_rnn.tensor import Parameter, Tensor, backward

if TYPE_CHECKING:
    from numpy_rnn import gradcheck
    from numpy_rnn.conventions import convert_weights
    from numpy_rnn.weights import DtypeChangeWarning, NonFiniteWeightsWarning, load_weights, save_weights

__all__ = [
    "ASGD",
    "GRU",
    "LSTM",
    "RNN",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Dropout",
    "DtypeChangeWarning",
    "Embedding",
    "GRUCell",
    "GraphFreedError",
    "InPlaceModificationError",
    "LSTMCell",
    "Linear",
    "Module",
    "NAdam",
    "NonFiniteWeightsWarning",
    "PackedSequence",
    "Parameter",
    "RAdam",
    "RMSprop",
    "RNNCell",
    "SequenceModel",
    "Tensor",
    "backward",
    "binary_cross_entropy_with_logits",
    "clip_grad_norm_",
    "clip_grad_value_",
    "convert_weights",
    "cross_entropy",
    "get_total_norm",
    "gradcheck",
    "huber_loss",
    "l1_loss",
    "load_weights",
    "lr_scheduler",
    "mse_loss",
    "nll_loss",
    "no_grad",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "save_weights",
    "smooth_l1_loss",
    "unpack_sequence",
    "unpad_sequence",
]

# Not every program saves, converts or checks, and together these take a sixth of the time: load at first use.
_HOMES = {
    "DtypeChangeWarning": "weights",
    "NonFiniteWeightsWarning": "weights",
    "convert_weights": "conventions",
    "load_weights": "weights",
    "save_weights": "weights",
}
_PARTS = ("conventions", "gradcheck", "weights")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
