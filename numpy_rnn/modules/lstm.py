"""The LSTM."""

from types import ModuleType
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.cells import lstm
from numpy_rnn.modules.module import Seed, check_size
from numpy_rnn.modules.recurrent import Recurrent


class LSTM(Recurrent):
    """An LSTM of ``num_layers`` layers in one or two directions, as ``torch.nn.LSTM``.

    >>> lstm = LSTM(input_size=3, hidden_size=5, proj_size=2, rng=0)
    >>> output, (h_n, c_n) = lstm(np.zeros((7, 4, 3), np.float32))
    >>> output.shape, h_n.shape, c_n.shape
    ((7, 4, 2), (1, 4, 2), (1, 4, 5))

    Arguments: PyTorch's, in its order: ``input_size`` I, ``hidden_size`` H, ``num_layers`` L, ``bias``,
    ``batch_first``, ``dropout`` (between layers, in training mode), ``bidirectional`` (D = 2), ``proj_size`` P (0 for
    no projection; below, P is then H). ``recompute_every`` k: keep for backward only every k-th state, and compute the
    gates again k steps at a time (6.45), for long windows; k near √(T/3) takes the least memory (6.46). ``dtype``
    float32 or float64. ``rng`` a seed or a ``numpy.random.Generator`` for the initial weights, U(-1/√H, 1/√H), and for
    the dropout masks. ``forward`` says what a call takes and returns.

    Parameters, for layer k and with ``_reverse`` appended for the reverse direction, gates in the order i, f, g, o:
    ``weight_ih_lk`` (4H, I), above the first layer (4H, D*P); ``weight_hh_lk`` (4H, P); ``bias_ih_lk`` and
    ``bias_hh_lk`` (4H,); with a projection ``weight_hr_lk`` (P, H).

    Raises ``ValueError`` for a size or an option out of range, ``TypeError`` for one of the wrong type.
    """

    _cell: ClassVar[ModuleType] = lstm
    _gates: ClassVar[int] = 4
    _state_names: ClassVar[tuple[str, ...]] = ("h_0", "c_0")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        recompute_every: int | None = None,
        dtype: DTypeLike = np.float32,
        rng: Seed = None,
    ) -> None:
        if isinstance(proj_size, bool) or not isinstance(proj_size, int | np.integer):
            raise TypeError(f"proj_size must be an int, got {type(proj_size).__name__}")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"proj_size must be from 0 to hidden_size - 1 = {hidden_size - 1}, got {proj_size}")
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, int(proj_size), dtype, rng
        )
        self.recompute_every = None if recompute_every is None else check_size("recompute_every", recompute_every)
