"""Dropout on its own."""

import numpy as np
from numpy.typing import ArrayLike

from numpy_rnn.modules.module import Module, Seed, check_probability, draw_mask
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import FLOATS, Tensor, as_tensor, record


class Dropout(Module):
    """Zeros with probability ``p``, everything else times 1/(1-p), in training mode only, as ``torch.nn.Dropout``.

    >>> Dropout(0.5, rng=0)(np.ones(4)).numpy().tolist()
    [2.0, 0.0, 0.0, 0.0]

    Arguments: ``p``; ``rng`` a seed or a ``numpy.random.Generator`` that draws the masks. A mask can be handed in:
    ``dropout(input, mask=...)``, already scaled by 1/(1-p).

    Raises ``ValueError`` for a ``p`` outside [0, 1] or a mask of the wrong shape or dtype.
    """

    def __init__(self, p: float = 0.5, *, rng: Seed = None) -> None:
        self.p = check_probability("p", p)
        self._rng = np.random.default_rng(rng)

    def forward(self, input: Tensor | ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        """Return ``input`` times a mask; in evaluation mode ``input`` itself."""
        input = as_tensor("input", input)
        if input.dtype not in FLOATS:
            raise TypeError(f"input must be float32 or float64, got {input.dtype}")
        if not self.training:
            if mask is not None:
                raise ValueError("mask must be None in evaluation mode, in which nothing is dropped")
            return input
        scale = draw_mask(self._rng, self.p, input.shape, input.dtype) if mask is None else np.asarray(mask)
        if scale.shape != input.shape or scale.dtype != input.dtype:
            expected = f"{input.shape} {input.dtype} like the input"
            raise ValueError(f"mask must be {expected}, got {scale.shape} {scale.dtype}")
        kept = Saved(scale, None, "the mask", repr(self))
        output = np.asarray(input.data * scale)
        return record("Dropout", [output], [input], lambda d_output: [np.asarray(d_output * kept.read())], [kept])[0]

    def _describe(self) -> str:
        return f"p={self.p}"
