"""Every tolerance of the project, each with the largest error measured and the reason for its margin."""

import numpy as np

# One forward and backward, each tensor's largest error over its largest entry.
PARITY = {
    np.dtype(np.float64): 1e-12,
    np.dtype(np.float32): 1e-5,
}
