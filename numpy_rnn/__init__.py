"""Recurrent networks by hand: forward and backward passes in NumPy, with PyTorch's names, rules and errors.

The equations are in ``numpy_rnn.cells``, one file a cell, and are derived in ``derivations/``.
"""

from numpy_rnn import gradcheck
from numpy_rnn.losses import mse_loss
from numpy_rnn.modules import RNN, Linear, Module, SequenceModel
from numpy_rnn.optim import SGD, Adadelta, clip_grad_norm_, get_total_norm
from numpy_rnn.tape import GraphFreedError, InPlaceModificationError, no_grad
from numpy_rnn.tensor import Parameter, Tensor, backward

__all__ = [
    "RNN",
    "SGD",
    "Adadelta",
    "GraphFreedError",
    "InPlaceModificationError",
    "Linear",
    "Module",
    "Parameter",
    "SequenceModel",
    "Tensor",
    "backward",
    "clip_grad_norm_",
    "get_total_norm",
    "gradcheck",
    "mse_loss",
    "no_grad",
]
