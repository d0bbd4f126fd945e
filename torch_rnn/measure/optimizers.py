"""One step of each optimizer over the parameters of a two-layer LSTM, beside PyTorch's three implementations of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import numpy_rnn
from torch_rnn.measure.goals import OPTIMIZER, TEMPORARIES, judge
from torch_rnn.measure.memory import allocated_at_once
from torch_rnn.measure.timing import Effort, interleave, quartiles, ratio, timed
from torch_rnn.twins import twin

NAMES = ("SGD", "Adadelta", "Adagrad", "RMSprop", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD")
QUICK_NAMES = ("SGD", "Adam")
SIZES, QUICK_SIZES = (256, 512, 2), (16, 32, 2)  # I, H, L
IMPLEMENTATIONS = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
LR = 1e-3


def compare(name: str, dtype: str, effort: Effort, quick: bool) -> dict[str, Any]:
    """Return the times of a step on NumPy and of each of PyTorch's that there are, and NumPy's temporaries."""
    I, H, L = sizes = QUICK_SIZES if quick else SIZES  # noqa: E741
    module = numpy_rnn.LSTM(I, H, L, dtype=dtype, rng=0)
    rng = np.random.default_rng(1)
    gradients = {key: rng.standard_normal(p.shape).astype(dtype) for key, p in module.named_parameters()}
    for key, parameter in module.named_parameters():
        parameter.grad = numpy_rnn.Tensor(gradients[key])
    ours = getattr(numpy_rnn, name)(module.parameters(), lr=LR)
    works = {"numpy": timed(ours.step)}
    for implementation, chosen in IMPLEMENTATIONS.items():
        copy = twin(module)
        for key, tensor in copy.named_parameters():
            tensor.grad = torch.from_numpy(gradients[key].copy())
        try:
            theirs = getattr(torch.optim, name)(copy.parameters(), lr=LR, **chosen)
        except TypeError:  # PyTorch has no fused kernel of most
            continue
        works[implementation] = timed(theirs.step)
    rounds = {work: phases["call"] for work, phases in interleave(works, effort).items()}
    ratios = {work: ratio(values, rounds["numpy"]) for work, values in rounds.items() if work != "numpy"}
    temporaries = allocated_at_once(ours.step)
    largest = max(parameter.data.nbytes for parameter in module.parameters())
    goals = [judge("ratio", ratios["for-loop"]["median"], OPTIMIZER)]
    if not quick:  # there each parameter is smaller than the block that a step takes for intermediate results
        goals.append(judge("temporaries", temporaries / largest, TEMPORARIES, at_most=True))
    return {
        "name": name,
        "dtype": dtype,
        "sizes": list(sizes),
        "seconds": {work: quartiles(values) for work, values in rounds.items()},
        "ratio": ratios,
        "temporaries": temporaries,
        "largest_parameter": largest,
        "goals": goals,
    }
