"""The affine map at the end of most networks."""

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.modules.module import Module, Seed, check_dtype, check_input, check_size, uniform
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Parameter, Tensor, as_tensor, record
from numpy_rnn.typing import Array


class Linear(Module):
    """``input @ weight.T + bias`` over the last axis.

    >>> head = Linear(3, 2, rng=0)
    >>> head(np.ones((5, 4, 3), np.float32)).shape
    (5, 4, 2)

    Arguments: ``in_features``, ``out_features``, ``bias`` as in ``torch.nn.Linear``; ``dtype`` float32 or float64;
    ``rng`` a seed or a ``numpy.random.Generator``. Parameters: ``weight`` (out_features, in_features), ``bias``
    (out_features,) or None, drawn from U(-1/√in_features, 1/√in_features).

    Raises ``ValueError`` for an input of the wrong size, ``TypeError`` for one of another dtype.
    """

    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: DTypeLike = np.float32, rng: Seed = None
    ) -> None:
        self.in_features = check_size("in_features", in_features)
        self.out_features = check_size("out_features", out_features)
        self.dtype = check_dtype(dtype)
        rng = np.random.default_rng(rng)
        bound = 1 / math.sqrt(self.in_features)
        self.weight = uniform(rng, bound, (self.out_features, self.in_features), self.dtype)
        self.bias = uniform(rng, bound, (self.out_features,), self.dtype) if bias else None

    def forward(self, input: Tensor | ArrayLike) -> Tensor:
        """Return (..., out_features) for ``input`` (..., in_features)."""
        input = as_tensor("input", input)
        check_input("input", input, self.dtype)
        if input.ndim == 0 or input.shape[-1] != self.in_features:
            raise ValueError(f"input must be (..., in_features) = (..., {self.in_features}), got {input.shape}")
        x = input.data.reshape(math.prod(input.shape[:-1]), self.in_features)  # (N, I)
        y = x @ self.weight.data.T  # (N, O) (1.9)
        if self.bias is not None:
            y += self.bias.data  # (N, O) (1.9)

        inputs = [input, self.weight, self.bias]
        needs_input, needs_weight, needs_bias = (t is not None and t.requires_grad for t in inputs)
        saved_x = Saved(x, input if np.may_share_memory(x, input.data) else None, "input", repr(self))
        saved_weight = Saved(self.weight.data, self.weight, "weight", repr(self))

        def backward(d_output: Array) -> list[Array | None]:
            dy = d_output.reshape(y.shape)  # (N, O)
            d_weight = dy.T @ saved_x.read() if needs_weight else None  # (O, I) (2.29)
            d_input = (dy @ saved_weight.read()).reshape(input.shape) if needs_input else None  # (N, I) (2.28)
            return [d_input, d_weight, dy.sum(axis=0) if needs_bias else None]  # (O,) (2.30)

        output = y.reshape(*input.shape[:-1], self.out_features)
        return record("Linear", [output], inputs, backward, [saved_x, saved_weight])[0]

    def _describe(self) -> str:
        return f"{self.in_features}, {self.out_features}{'' if self.bias is not None else ', bias=False'}"
