"""Optimizers, schedules and clipping: what PyTorch keeps in ``torch.optim`` and ``torch.nn.utils``."""

from numpy_rnn.optim import lr_scheduler
from numpy_rnn.optim.adadelta import Adadelta
from numpy_rnn.optim.adagrad import Adagrad
from numpy_rnn.optim.adam import Adam, AdamW
from numpy_rnn.optim.adamax import Adamax
from numpy_rnn.optim.asgd import ASGD
from numpy_rnn.optim.clip import clip_grad_norm_, clip_grad_value_, get_total_norm
from numpy_rnn.optim.nadam import NAdam
from numpy_rnn.optim.optimizer import Optimizer
from numpy_rnn.optim.radam import RAdam
from numpy_rnn.optim.rmsprop import RMSprop
from numpy_rnn.optim.sgd import SGD

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "lr_scheduler",
]
