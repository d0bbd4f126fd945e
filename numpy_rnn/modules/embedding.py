"""The table that turns symbols into vectors."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.modules.module import Module, Seed, check_dtype, check_size
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Parameter, Tensor, record
from numpy_rnn.typing import Array


class Embedding(Module):
    """Row ``input`` of ``weight``, for whole numbers of any shape, as ``torch.nn.Embedding``.

    >>> embedding = Embedding(10, 3, padding_idx=0, rng=0)
    >>> embedding(np.array([[1, 2, 0]])).shape
    (1, 3, 3)

    Arguments: ``num_embeddings`` K, ``embedding_dim`` E, ``padding_idx`` (negative counts from the end): a row that
    starts at zero and gets no gradient; ``dtype`` float32 or float64; ``rng`` a seed or a ``numpy.random.Generator``
    for the weights, N(0, 1). Parameter: ``weight`` (K, E). An index that comes several times adds its gradients up.

    Raises ``ValueError`` for an index out of range (negative ones too), ``TypeError`` for one that is no whole number.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        dtype: DTypeLike = np.float32,
        rng: Seed = None,
    ) -> None:
        self.num_embeddings = check_size("num_embeddings", num_embeddings)
        self.embedding_dim = check_size("embedding_dim", embedding_dim)
        if padding_idx is not None and (isinstance(padding_idx, bool) or not isinstance(padding_idx, int | np.integer)):
            raise TypeError(f"padding_idx must be an int or None, got {type(padding_idx).__name__}")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx must be from {-num_embeddings} to {num_embeddings - 1}, got {padding_idx}")
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.dtype = check_dtype(dtype)
        weight = np.random.default_rng(rng).normal(size=(num_embeddings, embedding_dim)).astype(self.dtype)
        self.weight = Parameter(weight)
        if self.padding_idx is not None:
            weight[self.padding_idx] = 0
            self.weight._bump_version("initialisation")  # PyTorch writes the row after the rest

    def forward(self, input: Tensor | ArrayLike) -> Tensor:
        """Return (..., E) for whole numbers ``input`` (...)."""
        index = np.array(input.data if isinstance(input, Tensor) else input)
        index = index.astype(np.intp) if index.size == 0 else index  # an empty list has no dtype of its own
        if index.dtype.kind not in "iu":
            raise TypeError(f"input must be whole numbers, got {index.dtype}")
        wrong = index[(index < 0) | (index >= self.num_embeddings)]
        if wrong.size:
            raise ValueError(f"input must be from 0 to K-1 = {self.num_embeddings - 1}, got {wrong[0]}")
        kept = Saved(index, None, "input", repr(self))

        def backward(d_output: Array) -> list[Array]:
            rows = kept.read()
            d_weight = np.zeros(self.weight.shape, self.dtype)  # (K, E)
            np.add.at(d_weight, rows, d_output)  # an index that comes twice collects twice
            if self.padding_idx is not None:
                d_weight[self.padding_idx] = 0
            return [d_weight]

        return record("Embedding", [self.weight.data[index]], [self.weight], backward, [kept])[0]

    def _describe(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
