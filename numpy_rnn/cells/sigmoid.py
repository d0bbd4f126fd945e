"""The logistic function."""

import numpy as np

from numpy_rnn.typing import Array

ONE = np.ones((), np.float32)  # an array, since NumPy takes longer over a number of Python; every dtype here holds it


@np.errstate(over="ignore")
def sigmoid(z: Array) -> Array:
    """Return 1 / (1 + exp(-z)), accurate to the last digits at both ends (6.3).

    >>> sigmoid(np.array([-800.0, -20.0, 0.0, 20.0]))
    array([0.00000000e+00, 2.06115362e-09, 5.00000000e-01, 9.99999998e-01])
    """
    return open_gates(np.negative(z, out=np.empty_like(z)))


def open_gates(minus_z: Array) -> Array:
    """Write the logistic function of z over ``minus_z``, which holds -z, and return it.

    Far below zero the exponential overflows, and 1 / infinity is the 0 wanted there: the caller ignores that warning.
    """
    np.exp(minus_z, out=minus_z)  # (6.3)
    np.add(minus_z, ONE, out=minus_z)  # (6.3)
    return np.reciprocal(minus_z, out=minus_z)  # (6.3)
