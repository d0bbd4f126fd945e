"""The network that the loss curves are drawn for: a recurrent module and a head, and for symbols a table in front."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.modules.embedding import Embedding
from numpy_rnn.modules.gru import GRU
from numpy_rnn.modules.linear import Linear
from numpy_rnn.modules.lstm import LSTM
from numpy_rnn.modules.module import Module, Seed
from numpy_rnn.modules.rnn import RNN
from numpy_rnn.tensor import Tensor

CELLS: dict[str, Any] = {
    "rnn": RNN,
    "rnn-relu": partial(RNN, nonlinearity="relu"),
    "lstm": LSTM,
    "gru": GRU,
}


class SequenceModel(Module):
    """``embedding`` if there is a vocabulary, ``rnn``, then ``linear`` on the output of every time step.

    >>> model = SequenceModel("lstm", input_size=1, hidden_size=16, output_size=1, rng=0)
    >>> output, (h_n, c_n) = model(np.zeros((20, 4, 1), np.float32))
    >>> output.shape, h_n.shape
    ((20, 4, 1), (1, 4, 16))

    Arguments: ``cell`` "rnn", "rnn-relu", "lstm" or "gru"; sizes, ``num_layers``, ``bidirectional``, ``dropout``,
    ``proj_size`` (an LSTM's alone), ``dtype`` and ``rng`` as in the modules inside. With ``vocabulary`` K the input is
    whole numbers (T, B) below K, and ``input_size`` the length of their vectors.

    Raises ``ValueError`` for an unknown cell or a projection in another than the LSTM, and what the modules inside
    raise.
    """

    def __init__(
        self,
        cell: str,
        input_size: int,
        hidden_size: int,
        output_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        vocabulary: int | None = None,
        proj_size: int = 0,
        *,
        dtype: DTypeLike = np.float32,
        rng: Seed = None,
    ) -> None:
        if cell not in CELLS:
            raise ValueError(f"cell must be one of {', '.join(CELLS)}, got {cell!r}")
        if proj_size and cell != "lstm":
            raise ValueError(f"proj_size must be 0 for cell {cell}, which has no projection, got {proj_size}")
        rng = np.random.default_rng(rng)
        if vocabulary is not None:
            self.embedding = Embedding(vocabulary, input_size, dtype=dtype, rng=rng)
        options: dict[str, Any] = {"dropout": dropout, "bidirectional": bidirectional, "dtype": dtype, "rng": rng}
        if cell == "lstm":
            options["proj_size"] = proj_size
        self.rnn: Module = CELLS[cell](input_size, hidden_size, num_layers, **options)
        width = (proj_size or hidden_size) * (2 if bidirectional else 1)  # D*P
        self.linear = Linear(width, output_size, dtype=dtype, rng=rng)

    def forward(
        self,
        input: Tensor | ArrayLike,
        hx: Any = None,
        *,
        lengths: ArrayLike | None = None,
        dropout_masks: Sequence[ArrayLike] | None = None,
    ) -> tuple[Tensor, Any]:
        """Return ``(output, state)``: (T, B, output_size), and the state to carry to the next window.

        ``lengths`` and ``dropout_masks`` as in the recurrent module; beyond a sequence's length the head sees zeros.
        """
        vectors = self.embedding(input) if hasattr(self, "embedding") else input
        output, state = self.rnn(vectors, hx, lengths=lengths, dropout_masks=dropout_masks)
        return self.linear(output), state
