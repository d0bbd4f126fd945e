"""Settings for all tests."""

import torch
from threadpoolctl import threadpool_limits

# The tensors are tiny: a second thread only waits, and takes the core from the other worker.
torch.set_num_threads(1)
threadpool_limits(limits=1, user_api="blas")
