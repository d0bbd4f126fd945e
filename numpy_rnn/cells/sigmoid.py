"""The logistic function."""

import numpy as np

from numpy_rnn.typing import Array


def sigmoid(z: Array) -> Array:
    """Return 1 / (1 + exp(-z)), accurate to the last digits at both ends (6.3).

    >>> sigmoid(np.array([-800.0, -20.0, 0.0, 20.0]))
    array([0.00000000e+00, 2.06115362e-09, 5.00000000e-01, 9.99999998e-01])

    The exponential is taken of -|z| only: it cannot overflow, and a nearly closed gate keeps its relative accuracy. For
    complex z the real part decides.
    """
    negative = z.real < 0
    e = np.exp(np.where(negative, z, -z))  # (6.3)
    return np.asarray(np.where(negative, e, e.dtype.type(1)) / (1 + e))  # (6.3)
