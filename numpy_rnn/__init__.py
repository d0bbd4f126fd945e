"""Recurrent networks by hand: forward and backward passes in NumPy, with PyTorch's names, rules and errors.

The equations are in ``numpy_rnn.cells``, one file a cell, and are derived in ``derivations/``.
"""

from numpy_rnn import gradcheck
from numpy_rnn.layouts import convert_weights
from numpy_rnn.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from numpy_rnn.modules import GRU, LSTM, RNN, Linear, Module, SequenceModel
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
from numpy_rnn.tape import GraphFreedError, InPlaceModificationError, no_grad
from numpy_rnn.tensor import Parameter, Tensor, backward
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
    "DtypeChangeWarning",
    "GraphFreedError",
    "InPlaceModificationError",
    "Linear",
    "Module",
    "NAdam",
    "NonFiniteWeightsWarning",
    "Parameter",
    "RAdam",
    "RMSprop",
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
    "save_weights",
    "smooth_l1_loss",
]
