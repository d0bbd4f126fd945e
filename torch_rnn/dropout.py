"""The dropout masks that PyTorch will draw, so that the NumPy side can use the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from numpy_rnn.typing import Array
from torch_rnn.twins import to_array


def next_dropout_masks(module: torch.nn.Module, shape: Sequence[int]) -> list[Array]:
    """Return the masks that the next call of ``module`` will draw, one for each boundary between layers.

    >>> lstm = torch.nn.LSTM(3, 5, num_layers=2, dropout=0.5)
    >>> masks = next_dropout_masks(lstm, (7, 4, 3))
    >>> len(masks), masks[0].shape
    (1, (7, 4, 5))

    Arguments: ``module`` a ``torch.nn`` RNN, LSTM or GRU; ``shape`` of its input: (T, B, I), with ``batch_first``
    (B, T, I), unbatched (T, I), or of the data of a packed one (ΣT, I), which is drawn in the same way. PyTorch's
    random state is left as it was, so the call itself draws just these.

    Returns arrays like the output, scaled by 1/(1-p): what ``dropout_masks`` of the twin's ``forward`` takes; nothing
    in evaluation mode, for p = 0 or one layer.

    The recipe, found by experiment on PyTorch 2.13: at each boundary ``empty(T, B, D*P).bernoulli_(1 - p).div_(1 - p)``
    from the default generator, in this order; p = 1 draws nothing.
    """
    m: Any = module
    if not (m.training and m.dropout > 0):
        return []
    features = (2 if m.bidirectional else 1) * (m.proj_size or m.hidden_size)
    drawn = (*shape[:-1], features)
    turned = m.batch_first and len(shape) == 3
    if turned:
        drawn = (shape[1], shape[0], features)
    weight = next(m.parameters())
    with torch.random.fork_rng(devices=[]):
        masks = []
        for _ in range(m.num_layers - 1):
            mask = torch.zeros(drawn, dtype=weight.dtype)
            if m.dropout < 1:
                mask.bernoulli_(1 - m.dropout).div_(1 - m.dropout)
            masks.append(to_array(mask.transpose(0, 1) if turned else mask))
    return masks


def next_mask(p: float, x: Array) -> Array:
    """Return the mask that the next call of a ``torch.nn.Dropout(p)`` on an array like ``x`` will draw."""
    with torch.random.fork_rng(devices=[]):
        mask = torch.zeros_like(torch.from_numpy(x))
        return to_array(mask if p == 1 else mask.bernoulli_(1 - p).div_(1 - p))


@contextmanager
def seeded(*seeds: int) -> Iterator[None]:
    """Inside the block PyTorch draws what these numbers say; afterwards its random state is what it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.SeedSequence(seeds).generate_state(1)[0]))
        yield
