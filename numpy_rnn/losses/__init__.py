"""Losses: each is one node of the graph, with its hand-written backward.

The equations are derived in derivations/08-losses.md.
"""

from numpy_rnn.losses.classes import cross_entropy, nll_loss
from numpy_rnn.losses.differences import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from numpy_rnn.losses.logistic import binary_cross_entropy_with_logits

__all__ = [
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]
