"""Settings for all tests."""

import torch

torch.set_num_threads(1)  # the tensors are tiny: a second thread only waits
