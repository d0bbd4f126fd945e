"""The vanilla RNN."""

from types import ModuleType
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.cells import rnn
from numpy_rnn.modules.module import Seed
from numpy_rnn.modules.recurrent import Recurrent


class RNN(Recurrent):
    """A vanilla (Elman) RNN of ``num_layers`` layers in one or two directions, as ``torch.nn.RNN``.

    >>> rnn = RNN(input_size=3, hidden_size=5, num_layers=2, rng=0)
    >>> output, h_n = rnn(np.zeros((7, 4, 3), np.float32))
    >>> output.shape, h_n.shape
    ((7, 4, 5), (2, 4, 5))

    Arguments: PyTorch's, in its order: ``input_size`` I, ``hidden_size`` H, ``num_layers`` L, ``nonlinearity``
    "tanh" or "relu", ``bias``, ``batch_first``, ``dropout`` (between layers, in training mode), ``bidirectional``
    (D = 2). ``dtype`` float32 or float64. ``rng`` a seed or a ``numpy.random.Generator`` for the initial weights,
    U(-1/√H, 1/√H), and for the dropout masks. ``forward`` says what a call takes and returns.

    Parameters, for layer k and with ``_reverse`` appended for the reverse direction: ``weight_ih_lk`` (H, I), above the
    first layer (H, D*H); ``weight_hh_lk`` (H, H); ``bias_ih_lk`` and ``bias_hh_lk`` (H,).

    Raises ``ValueError`` for a size or an option out of range, ``TypeError`` for one of the wrong type.
    """

    _cell: ClassVar[ModuleType] = rnn
    _gates: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: DTypeLike = np.float32,
        rng: Seed = None,
    ) -> None:
        self.nonlinearity = check_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype, rng)

    def _options(self) -> dict[str, str]:
        return {"nonlinearity": self.nonlinearity}


def check_nonlinearity(nonlinearity: str) -> str:
    """Return ``nonlinearity`` if there is one of that name."""
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
    return nonlinearity
