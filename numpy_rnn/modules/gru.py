"""The GRU."""

from types import ModuleType
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.cells import gru
from numpy_rnn.modules.module import Seed, check_size
from numpy_rnn.modules.recurrent import Recurrent


class GRU(Recurrent):
    """A GRU of ``num_layers`` layers in one or two directions, as ``torch.nn.GRU``.

    >>> gru = GRU(input_size=3, hidden_size=5, bidirectional=True, rng=0)
    >>> output, h_n = gru(np.zeros((7, 4, 3), np.float32), lengths=[7, 5, 2, 6])
    >>> output.shape, h_n.shape
    ((7, 4, 10), (2, 4, 5))

    Arguments: PyTorch's, in its order: ``input_size`` I, ``hidden_size`` H, ``num_layers`` L, ``bias``,
    ``batch_first``, ``dropout`` (between layers, in training mode), ``bidirectional`` (D = 2). ``recompute_every`` k:
    keep for backward only every k-th state, and compute the gates again k steps at a time (6.45), for long windows; k
    near √(T/5) takes the least memory (6.46). ``dtype`` float32 or float64. ``rng`` a seed or a
    ``numpy.random.Generator`` for the initial weights, U(-1/√H, 1/√H), and for the dropout masks. ``forward`` says what
    a call takes and returns.

    Parameters, for layer k and with ``_reverse`` appended for the reverse direction, gates in the order r, z, n:
    ``weight_ih_lk`` (3H, I), above the first layer (3H, D*H); ``weight_hh_lk`` (3H, H); ``bias_ih_lk`` and
    ``bias_hh_lk`` (3H,).

    Raises ``ValueError`` for a size or an option out of range, ``TypeError`` for one of the wrong type.
    """

    _cell: ClassVar[ModuleType] = gru
    _gates: ClassVar[int] = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        recompute_every: int | None = None,
        dtype: DTypeLike = np.float32,
        rng: Seed = None,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, dtype, rng)
        self.recompute_every = None if recompute_every is None else check_size("recompute_every", recompute_every)
