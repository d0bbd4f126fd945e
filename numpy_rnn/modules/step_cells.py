"""Single steps: the recurrent modules without layers, directions and time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.cells import gru, lstm, rnn
from numpy_rnn.cells.steps import Steps
from numpy_rnn.modules.module import Module, Seed, check_dtype, check_input, check_size, check_states, uniform
from numpy_rnn.modules.rnn import check_nonlinearity
from numpy_rnn.modules.window import Call, Names, Part
from numpy_rnn.tensor import Tensor, as_tensor, is_recording, record
from numpy_rnn.typing import Array

NAMES = Names(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), "the states")


class _StepCell(Module):
    """Base of ``RNNCell``, ``LSTMCell`` and ``GRUCell``, which have the docstrings for users."""

    _cell: ClassVar[ModuleType]
    _gates: ClassVar[int]
    _state_names: ClassVar[tuple[str, ...]] = ("h_0",)

    def __init__(self, input_size: int, hidden_size: int, bias: bool, dtype: DTypeLike, rng: Seed) -> None:
        self.input_size = check_size("input_size", input_size)
        self.hidden_size = check_size("hidden_size", hidden_size)
        self.bias, self.dtype, self._calls = bool(bias), check_dtype(dtype), 0
        rng = np.random.default_rng(rng)
        H, rows = self.hidden_size, self._gates * self.hidden_size
        shapes: list[tuple[int, ...]] = [(rows, self.input_size), (rows, H), (rows,), (rows,)]
        for name, shape in list(zip(NAMES.parameters, shapes, strict=True))[: 4 if self.bias else 2]:
            setattr(self, name, uniform(rng, 1 / math.sqrt(H), shape, self.dtype))

    def _options(self) -> dict[str, Any]:
        return {}

    def forward(self, input: Tensor | ArrayLike, hx: Any = None) -> Any:
        """Run one step.

        Arguments: ``input`` (B, I), unbatched (I,); ``hx`` the state, (B, H), unbatched (H,), for an ``LSTMCell`` the
        pair ``(h, c)``, None for zeros; both of the module's dtype. Returns the new state, laid out like ``hx``.

        Raises ``ValueError`` for a wrong shape, ``TypeError`` for a wrong dtype.
        """
        input = as_tensor("input", input)
        check_input("input", input, self.dtype)
        letters = "(B, I)" if input.ndim == 2 else "(I,)"
        if input.ndim not in (1, 2):
            raise ValueError(f"input must be (B, I) or unbatched (I,), got {input.shape}")
        if input.shape[-1] != self.input_size:
            raise ValueError(f"input must be {letters} with I = {self.input_size}, got {input.shape}")
        expected = ("(B, H)" if input.ndim == 2 else "(H,)", (*input.shape[:-1], self.hidden_size))
        names = ("h", "c")[: len(self._state_names)]
        states: list[Tensor | None] = [None for _ in names]
        if hx is not None:
            states = [*check_states(hx, names, [expected] * 2, self.dtype)]
        x = input.data.reshape(-1, self.input_size) if input.ndim == 1 else input.data  # (B, I)
        B, H = len(x), self.hidden_size
        arrays = [np.zeros((B, H), self.dtype) if s is None else s.data.reshape(B, H) for s in states]

        part = Part(self, NAMES, input.requires_grad, [s is not None and s.requires_grad for s in states])
        inputs = [input, *states, *part.parameters]
        self._calls += 1
        _, new = part.forward(Steps([B]), x, input, arrays, states, Call(self) if is_recording(inputs) else None)
        shapes = [None if s is None else s.shape for s in states]

        def backward(*d_new: Array | None) -> Sequence[Array | None]:
            dx, *rest = part.backward(None, [None if d is None else d.reshape(B, H) for d in d_new])
            d_states = [None if d is None else d.reshape(s or d.shape) for d, s in zip(rest, shapes, strict=False)]
            return [None if dx is None else dx.reshape(input.shape), *d_states, *rest[len(shapes) :][:4]]

        outputs = [state.reshape(*input.shape[:-1], H).copy() for state in new]
        tensors = record(type(self).__name__, outputs, inputs, backward, part.saved)
        return tensors[0] if len(tensors) == 1 else tensors

    def _describe(self) -> str:
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return (
            f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"
            f"{'' if nonlinearity == 'tanh' else f', nonlinearity={nonlinearity!r}'}"
        )


class RNNCell(_StepCell):
    """One step of a vanilla RNN, as ``torch.nn.RNNCell``.

    >>> cell = RNNCell(3, 5, rng=0)
    >>> h = cell(np.zeros((4, 3), np.float32))
    >>> cell(np.zeros((4, 3), np.float32), h).shape
    (4, 5)

    Arguments: PyTorch's, in its order: ``input_size`` I, ``hidden_size`` H, ``bias``, ``nonlinearity`` "tanh" or
    "relu"; ``dtype`` float32 or float64; ``rng`` a seed or a Generator for the weights, U(-1/√H, 1/√H). Parameters:
    ``weight_ih`` (H, I), ``weight_hh`` (H, H), ``bias_ih`` and ``bias_hh`` (H,).

    Raises ``ValueError`` for a size or an option out of range, ``TypeError`` for one of the wrong type.
    """

    _cell: ClassVar[ModuleType] = rnn
    _gates: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        dtype: DTypeLike = np.float32,
        rng: Seed = None,
    ) -> None:
        self.nonlinearity = check_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype, rng)

    def _options(self) -> dict[str, Any]:
        return {"nonlinearity": self.nonlinearity}


class LSTMCell(_StepCell):
    """One step of an LSTM, as ``torch.nn.LSTMCell``.

    >>> cell = LSTMCell(3, 5, rng=0)
    >>> h, c = cell(np.zeros((4, 3), np.float32))
    >>> h, c = cell(np.zeros((4, 3), np.float32), (h, c))

    Arguments: PyTorch's, in its order: ``input_size`` I, ``hidden_size`` H, ``bias``; ``dtype`` float32 or float64;
    ``rng`` a seed or a Generator for the weights, U(-1/√H, 1/√H). Parameters, gates in the order i, f, g, o:
    ``weight_ih`` (4H, I), ``weight_hh`` (4H, H), ``bias_ih`` and ``bias_hh`` (4H,).

    Raises ``ValueError`` for a size or a state out of shape (PyTorch 2.13 ends the process for a malformed state),
    ``TypeError`` for one of the wrong type.
    """

    _cell: ClassVar[ModuleType] = lstm
    _gates: ClassVar[int] = 4
    _state_names: ClassVar[tuple[str, ...]] = ("h_0", "c_0")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: DTypeLike = np.float32, rng: Seed = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype, rng)


class GRUCell(_StepCell):
    """One step of a GRU, as ``torch.nn.GRUCell``.

    >>> GRUCell(3, 5, rng=0)(np.zeros(3, np.float32)).shape
    (5,)

    Arguments: PyTorch's, in its order: ``input_size`` I, ``hidden_size`` H, ``bias``; ``dtype`` float32 or float64;
    ``rng`` a seed or a Generator for the weights, U(-1/√H, 1/√H). Parameters, gates in the order r, z, n:
    ``weight_ih`` (3H, I), ``weight_hh`` (3H, H), ``bias_ih`` and ``bias_hh`` (3H,).

    Raises ``ValueError`` for a size out of range, ``TypeError`` for one of the wrong type.
    """

    _cell: ClassVar[ModuleType] = gru
    _gates: ClassVar[int] = 3

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: DTypeLike = np.float32, rng: Seed = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype, rng)
