"""Every tolerance of the project, each with the largest error measured and the reason for its margin."""

import numpy as np

# One forward and backward: a tensor's largest error over its largest entry. Measured over the 6,912 configurations of
# parity_tests/test_rnn.py: median 2.0e-16 and largest 1.1e-14 in float64, 1.1e-7 and 2.5e-5 in float32. The largest
# belong to tensors whose entries are sums that nearly cancel, so that their scale says little of what was added up. The
# margins, a factor 90 and 8, are for other processors, whose libraries add in another order; a wrong term shows as 1e-3
# or more. Not covered by any bound: a float32 relu whose input lies within rounding of 0 may be open on one side and
# closed on the other.
PARITY = {
    np.dtype(np.float64): 1e-12,
    np.dtype(np.float32): 2e-4,
}

# The statistic of torch_rnn/curves/statistic.py (log10), by the number of controls of each side.
CURVES = {1: 2.0, 2: 1.5, 3: 1.3, 4: 1.2}

# log10 of what differs in one stage of a replayed step over what rounding explains.
STAGE = 1.0

# ONNX Runtime's float32 forward of one layer against torch.nn's, largest error over largest entry. It has its own exp
# and tanh, and adds in another order. 1800 layers: median 2.6e-7, largest 6.5e-6; a wrong gate shows as 1e-2.
ONNX_RUNTIME = 1e-5
