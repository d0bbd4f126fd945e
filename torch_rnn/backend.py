"""PyTorch's words for ``numpy_rnn.training``."""

import torch

from numpy_rnn.training import OPTIMIZERS, SCHEDULES, Backend, named
from numpy_rnn.typing import Array
from torch_rnn.twins import to_array


def _overwrite(tensor: torch.Tensor, array: Array) -> None:
    tensor.data.copy_(torch.from_numpy(array.copy()))


def _cross_entropy(logits: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), classes.flatten())


TORCH = Backend(
    name="torch",
    tensor=lambda array: torch.from_numpy(array.copy()),
    array=to_array,
    overwrite=_overwrite,
    mse_loss=torch.nn.functional.mse_loss,
    cross_entropy=_cross_entropy,
    backward=torch.autograd.backward,
    total_norm=lambda parameters: float(
        torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    ),
    clip_grad_norm_=lambda parameters, max_norm: float(torch.nn.utils.clip_grad_norm_(parameters, max_norm)),
    no_grad=torch.no_grad,
    optimizers=named(torch.optim, OPTIMIZERS),
    schedules=named(torch.optim.lr_scheduler, SCHEDULES),
)
