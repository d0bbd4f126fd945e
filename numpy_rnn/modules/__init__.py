"""Layers with parameters: what PyTorch keeps in ``torch.nn``."""

from numpy_rnn.modules.dropout import Dropout
from numpy_rnn.modules.embedding import Embedding
from numpy_rnn.modules.gru import GRU
from numpy_rnn.modules.linear import Linear
from numpy_rnn.modules.lstm import LSTM
from numpy_rnn.modules.module import Module
from numpy_rnn.modules.rnn import RNN
from numpy_rnn.modules.sequence_model import SequenceModel
from numpy_rnn.modules.step_cells import GRUCell, LSTMCell, RNNCell

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Dropout",
    "Embedding",
    "GRUCell",
    "LSTMCell",
    "Linear",
    "Module",
    "RNNCell",
    "SequenceModel",
]
