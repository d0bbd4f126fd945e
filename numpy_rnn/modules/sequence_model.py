"""The network that the loss curves are drawn for: a recurrent module and a head."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

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
    """``rnn``, then ``linear`` on the output of every time step.

    >>> model = SequenceModel("rnn", input_size=1, hidden_size=16, output_size=1, rng=0)
    >>> output, state = model(np.zeros((20, 4, 1), np.float32))
    >>> output.shape, state.shape
    ((20, 4, 1), (1, 4, 16))

    Arguments: ``cell`` "rnn", "rnn-relu", "lstm" or "gru"; sizes, ``num_layers``, ``bidirectional``,
    ``dtype`` and ``rng`` as in the modules inside.
    """

    def __init__(
        self,
        cell: str,
        input_size: int,
        hidden_size: int,
        output_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        *,
        dtype: DTypeLike = np.float32,
        rng: Seed = None,
    ) -> None:
        if cell not in CELLS:
            raise ValueError(f"cell must be one of {', '.join(CELLS)}, got {cell!r}")
        rng = np.random.default_rng(rng)
        self.rnn: Module = CELLS[cell](
            input_size, hidden_size, num_layers, bidirectional=bidirectional, dtype=dtype, rng=rng
        )
        self.linear = Linear(hidden_size * (2 if bidirectional else 1), output_size, dtype=dtype, rng=rng)

    def forward(self, input: Tensor | ArrayLike, hx: Any = None) -> tuple[Tensor, Any]:
        """Return ``(output, state)``: (T, B, output_size), and the state to carry to the next window."""
        output, state = self.rnn(input, hx)
        return self.linear(output), state
