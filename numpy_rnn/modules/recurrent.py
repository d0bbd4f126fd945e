"""What all recurrent modules share: layers, directions and layouts around the pure functions of ``numpy_rnn.cells``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.cells.steps import Steps
from numpy_rnn.modules.layout import Layout, Padded, Unbatched, dense
from numpy_rnn.modules.module import (
    Module,
    Seed,
    check_dtype,
    check_input,
    check_probability,
    check_size,
    check_states,
    draw_mask,
    uniform,
)
from numpy_rnn.modules.window import Call, Window, layers_of
from numpy_rnn.packing import PackedSequence, check_lengths, packed_lengths, places
from numpy_rnn.tensor import Tensor, as_tensor, is_recording, record
from numpy_rnn.typing import Array


class Recurrent(Module):
    """Base of ``RNN``, ``LSTM`` and ``GRU``, which say which cell they run and have the docstrings for users."""

    _cell: ClassVar[ModuleType]  # its forward and backward
    _gates: ClassVar[int]  # how many (H, ...) blocks its weights have
    _state_names: ClassVar[tuple[str, ...]] = ("h_0",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        dtype: DTypeLike,
        rng: Seed,
    ) -> None:
        self.input_size = check_size("input_size", input_size)
        self.hidden_size = check_size("hidden_size", hidden_size)
        self.num_layers = check_size("num_layers", num_layers)
        self.bias, self.batch_first, self.bidirectional = bool(bias), bool(batch_first), bool(bidirectional)
        self.dropout = check_probability("dropout", dropout)
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"dropout acts between layers only, so dropout={dropout} does nothing with num_layers=1", stacklevel=3
            )
        self.proj_size = proj_size
        self.dtype = check_dtype(dtype)
        self._calls = 0
        self._rng = np.random.default_rng(rng)

        bound = 1 / math.sqrt(self.hidden_size)
        for layer, parts in enumerate(layers_of(self.num_layers, 1 + self.bidirectional, self.proj_size > 0)):
            for names in parts:
                for name, shape in zip(names.parameters, self._shapes(layer), strict=True):
                    if self.bias or not name.startswith("bias"):
                        setattr(self, name, uniform(self._rng, bound, shape, self.dtype))

    def _sizes(self) -> tuple[int, int, int]:
        """D, P (H without a projection) and H."""
        return 1 + self.bidirectional, self.proj_size or self.hidden_size, self.hidden_size

    def _shapes(self, layer: int) -> list[tuple[int, ...]]:
        """The shapes of the parameters of one layer and direction, in PyTorch's order."""
        D, P, H = self._sizes()
        rows, width = self._gates * H, self.input_size if layer == 0 else D * P
        return [(rows, width), (rows, P), (rows,), (rows,), *([(P, H)] if self.proj_size else [])]

    def _options(self) -> dict[str, Any]:
        """What the cell's functions take besides."""
        return {}

    def forward(
        self,
        input: Tensor | ArrayLike | PackedSequence,
        hx: Any = None,
        *,
        lengths: ArrayLike | None = None,
        dropout_masks: Sequence[ArrayLike] | None = None,
    ) -> tuple[Any, Any]:
        """Run over one window.

        Arguments: ``input`` (T, B, I), with ``batch_first`` (B, T, I), unbatched (T, I), or a ``PackedSequence``;
        ``hx`` the initial state, (L*D, B, H), unbatched (L*D, H), for an LSTM the pair ``(h_0, c_0)``, None for zeros;
        both of the module's dtype. ``lengths`` (B,): how many steps of each sequence count; the rest is not read,
        its output and gradient are zeros, and the reverse direction starts at each sequence's own end.
        ``dropout_masks``: L-1 arrays, already scaled by 1/(1-p), to be used instead of drawn ones; laid out like the
        output, for a ``PackedSequence`` like its data. Arrays are aliased, not copied, until the backward has run: who
        writes into one before that gets wrong gradients, or an error if the write is counted.

        Returns ``(output, h_n)``, for an LSTM ``(output, (h_n, c_n))``: the top layer's states (T, B, D*H), laid out
        like ``input``, and every layer's final state, laid out like ``hx``.

        Raises ``ValueError`` for a wrong shape or length, ``TypeError`` for a wrong dtype.
        """
        packed, array = (input, input.data) if isinstance(input, PackedSequence) else (None, input)
        tensor = as_tensor("input", array)
        check_input("input", tensor, self.dtype)
        layout = self._layout(tensor, packed, lengths)
        states, h_0 = self._states(hx, layout)
        masks = self._masks(layout, tensor, dropout_masks)
        needs_states = [state is not None and state.requires_grad for state in states]
        window = Window(self, layout, tensor.requires_grad, needs_states)
        inputs = [tensor, *states, *window.parameters]
        self._calls += 1
        call = Call(self) if is_recording(inputs) else None
        output, finals = window.forward(tensor, states, h_0, masks, call)
        first, *tensors = record(type(self).__name__, [output, *finals], inputs, window.backward, window.saved)
        state = tensors[0] if len(tensors) == 1 else tuple(tensors)
        return (first if packed is None else packed._replace(data=first)), state

    def _layout(self, input: Tensor, packed: PackedSequence | None, lengths: ArrayLike | None) -> Layout:
        """Check the shape of the input, and return how to get at its rows."""
        shape = input.data.shape
        letters = "(B, T, I)" if self.batch_first else "(T, B, I)"
        if packed is not None:
            letters = "(ΣT, I)"
            if lengths is not None:
                raise ValueError("lengths must be None for a PackedSequence, which has its own")
            if len(shape) != 2:
                raise ValueError(f"input.data must be (ΣT, I), got {shape}")
            packed_lengths(packed)
        elif len(shape) == 2:
            letters = "(T, I)"
        elif len(shape) != 3:
            raise ValueError(f"input must be {letters} or unbatched (T, I), got {shape}")
        if shape[-1] != self.input_size:
            raise ValueError(f"input must be {letters} with I = {self.input_size}, got {shape}")
        if packed is not None:
            order = None if packed.sorted_indices is None else np.asarray(packed.sorted_indices)
            return Layout(Steps(np.asarray(packed.batch_sizes).tolist()), order)
        T, B = (shape[0], None) if len(shape) == 2 else shape[1::-1] if self.batch_first else shape[:2]
        if T == 0:
            raise ValueError(f"input must have at least one time step, got {shape}")
        if B is None:
            if lengths is not None:
                raise ValueError("lengths must be None for unbatched input (T, I)")
            return Unbatched(T)
        if lengths is None:
            return dense(T, B, self.batch_first)
        checked = check_lengths(lengths, T, B)
        return Padded(shape, self.batch_first, places(checked)) if B else dense(T, B, self.batch_first)

    def _states(self, hx: Any, layout: Layout) -> tuple[list[Tensor | None], list[Array]]:
        """Check the initial state, and return its Tensors, one, or for an LSTM two, and their arrays for the cells."""
        D, P, H = self._sizes()
        parts, B = self.num_layers * D, layout.steps.B
        if hx is None:
            shapes = [(parts, B, P), (parts, B, H)][: len(self._state_names)]
            return [None] * len(shapes), [np.zeros(shape, self.dtype) for shape in shapes]
        expected: list[tuple[str, tuple[int, ...]]] = []
        for letter, size in (("P" if self.proj_size else "H", P), ("H", H)):
            if isinstance(layout, Unbatched):
                expected.append((f"(L*D, {letter})", (parts, size)))
            else:
                expected.append((f"(L*D, B, {letter})", (parts, B, size)))
        states = check_states(hx, self._state_names, expected, self.dtype)
        return [*states], [layout.states(state.data) for state in states]

    def _masks(self, layout: Layout, input: Tensor, given: Sequence[ArrayLike] | None) -> list[Array] | None:
        """Return the dropout masks as rows, one for each boundary between layers, or None."""
        boundaries = self.num_layers - 1
        if given is None and not (self.training and self.dropout > 0 and boundaries):
            return None
        D, P, _ = self._sizes()
        shape = (*input.shape[:-1], D * P)
        if given is not None:
            if not self.training:
                raise ValueError("dropout_masks must be None in evaluation mode, in which nothing is dropped")
            masks = [np.asarray(mask) for mask in given]
            if len(masks) != boundaries:
                raise ValueError(f"dropout_masks must be L-1 = {boundaries} arrays, got {len(masks)}")
            for i, mask in enumerate(masks):
                if mask.shape != shape or mask.dtype != self.dtype:
                    expected = f"{shape} {self.dtype} like the output"
                    raise ValueError(f"dropout_masks[{i}] must be {expected}, got {mask.shape} {mask.dtype}")
        else:
            masks = [draw_mask(self._rng, self.dropout, shape, self.dtype) for _ in range(boundaries)]
        return [layout.rows(mask) for mask in masks]

    def _describe(self) -> str:
        defaults = {
            "num_layers": 1,
            "nonlinearity": "tanh",
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
            "proj_size": 0,
            "recompute_every": None,
        }
        given = [f"{k}={getattr(self, k)!r}" for k, default in defaults.items() if getattr(self, k, default) != default]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *given])
