"""What of torch.nn's recurrent family numpy_rnn has: the table of README.md.

``python -m torch_rnn.family`` prints it; a test holds README.md to it.
"""

from __future__ import annotations

import torch
from torch.nn.modules import rnn
from torch.nn.utils import rnn as rnn_utils

import numpy_rnn

LAYERS = [*rnn.__all__, "Embedding", "Linear", "Dropout"]
LOSSES = [
    "mse_loss",
    "l1_loss",
    "huber_loss",
    "smooth_l1_loss",
    "cross_entropy",
    "nll_loss",
    "binary_cross_entropy_with_logits",
]
OPTIMIZERS = ["SGD", "Adadelta", "Adagrad", "RMSprop", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD"]
SCHEDULES = ["StepLR", "ExponentialLR", "CosineAnnealingLR", "LambdaLR", "ReduceLROnPlateau"]
CLIPPING = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm"]
GROUPS: list[tuple[str, object, object, list[str]]] = [
    ("torch.nn", torch.nn, numpy_rnn, LAYERS),
    ("torch.nn.utils.rnn", rnn_utils, numpy_rnn, list(rnn_utils.__all__)),
    ("torch.nn.functional", torch.nn.functional, numpy_rnn, LOSSES),
    ("torch.optim", torch.optim, numpy_rnn, OPTIMIZERS),
    ("torch.optim.lr_scheduler", torch.optim.lr_scheduler, numpy_rnn.lr_scheduler, SCHEDULES),
    ("torch.nn.utils", torch.nn.utils, numpy_rnn, CLIPPING),
]
ELSEWHERE = {
    "RNNBase": "the shared base is `numpy_rnn.modules.recurrent.Recurrent`; PyTorch's takes the cell as a string",
    "RNNCellBase": "the shared base is private; PyTorch's has no forward of its own",
    "invert_permutation": "not done: it is `numpy.argsort`",
}


def table() -> str:
    """Return the table as Markdown: a row for each public name, and whether it is here under the same name.

    >>> table().splitlines()[0]
    '| PyTorch | name | numpy_rnn |'
    """
    lines = ["| PyTorch | name | numpy_rnn |", "|---|---|---|"]
    for home, theirs, ours, names in GROUPS:
        done = [name for name in names if hasattr(ours, name)]
        for name in names:
            if not hasattr(theirs, name):
                raise AttributeError(f"{home} has no {name}")
            if name not in done:
                lines.append(f"| `{home}` | `{name}` | {ELSEWHERE[name]} |")
        lines.append(f"| `{home}` | {', '.join(f'`{name}`' for name in done)} | the same names |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
