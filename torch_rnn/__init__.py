"""PyTorch beside ``numpy_rnn``: twins of its modules, and everything that lays the two side by side."""

from torch_rnn.parity import ParityReport, check_parity
from torch_rnn.twin import to_numpy, twin

__all__ = ["ParityReport", "check_parity", "to_numpy", "twin"]
