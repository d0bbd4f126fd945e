"""Optimizers, and clipping of gradients: what PyTorch keeps in ``torch.optim`` and ``torch.nn.utils``."""

from numpy_rnn.optim.adadelta import Adadelta
from numpy_rnn.optim.clip import clip_grad_norm_, get_total_norm
from numpy_rnn.optim.optimizer import Optimizer
from numpy_rnn.optim.sgd import SGD

__all__ = ["SGD", "Adadelta", "Optimizer", "clip_grad_norm_", "get_total_norm"]
