"""PyTorch's words for ``numpy_rnn.training``."""

import torch

from numpy_rnn.training import Backend
from torch_rnn.twins import to_array

TORCH = Backend(
    name="torch",
    tensor=lambda array: torch.from_numpy(array.copy()),
    array=to_array,
    mse_loss=torch.nn.functional.mse_loss,
    backward=torch.autograd.backward,
    total_norm=lambda parameters: float(
        torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    ),
    clip_grad_norm_=lambda parameters, max_norm: float(torch.nn.utils.clip_grad_norm_(parameters, max_norm)),
    no_grad=torch.no_grad,
    optimizers={"adadelta": torch.optim.Adadelta, "sgd": torch.optim.SGD},
)
