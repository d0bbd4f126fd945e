"""Layers with parameters: what PyTorch keeps in ``torch.nn``."""

from numpy_rnn.modules.linear import Linear
from numpy_rnn.modules.module import Module
from numpy_rnn.modules.recurrent import RNN
from numpy_rnn.modules.sequence_model import SequenceModel

__all__ = ["RNN", "Linear", "Module", "SequenceModel"]
