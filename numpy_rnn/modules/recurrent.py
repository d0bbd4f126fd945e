"""Recurrent modules: layers and directions around the pure functions of ``numpy_rnn.cells``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.cells import rnn as rnn_cell
from numpy_rnn.modules.module import Module, Seed, check_dtype, check_input, check_size, uniform
from numpy_rnn.tensor import Parameter, Saved, Tensor, as_tensor, is_recording, record
from numpy_rnn.typing import Array


class RNN(Module):
    """A vanilla (Elman) RNN of ``num_layers`` layers in one or two directions, as ``torch.nn.RNN``.

    >>> rnn = RNN(input_size=3, hidden_size=5, num_layers=2, rng=0)
    >>> output, h_n = rnn(np.zeros((7, 4, 3), np.float32))
    >>> output.shape, h_n.shape
    ((7, 4, 5), (2, 4, 5))

    Arguments: PyTorch's, in its order: ``input_size`` I, ``hidden_size`` H, ``num_layers`` L, ``nonlinearity``
    "tanh" or "relu", ``bias``, ``batch_first``, ``dropout`` (only 0 so far), ``bidirectional`` (D = 2). ``dtype``
    float32 or float64. ``rng`` a seed or a ``numpy.random.Generator`` for the initial weights, U(-1/√H, 1/√H).

    Parameters, for layer k and with ``_reverse`` appended for the reverse direction: ``weight_ih_lk`` (H, I), above the
    first layer (H, D*H); ``weight_hh_lk`` (H, H); ``bias_ih_lk`` and ``bias_hh_lk`` (H,).

    Raises ``ValueError`` for a size or an option out of range, ``TypeError`` for one of the wrong type,
    ``NotImplementedError`` for dropout.
    """

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
        self.input_size = check_size("input_size", input_size)
        self.hidden_size = check_size("hidden_size", hidden_size)
        self.num_layers = check_size("num_layers", num_layers)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        if isinstance(dropout, bool) or not isinstance(dropout, int | float):
            raise TypeError(f"dropout must be a number in [0, 1], got {dropout!r}")
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout must be a number in [0, 1], got {dropout!r}")
        if dropout > 0:
            raise NotImplementedError(f"dropout must be 0: dropout between layers is not written yet, got {dropout!r}")
        self.nonlinearity, self.bias, self.batch_first = nonlinearity, bool(bias), bool(batch_first)
        self.dropout, self.bidirectional = dropout, bool(bidirectional)
        self.dtype = check_dtype(dtype)
        self._calls = 0

        rng = np.random.default_rng(rng)
        bound = 1 / math.sqrt(self.hidden_size)
        H, D = self.hidden_size, self._directions
        for name, layer in self._parts():
            shapes: dict[str, tuple[int, ...]] = {
                "weight_ih": (H, self.input_size if layer == 0 else D * H),
                "weight_hh": (H, H),
            }
            if self.bias:
                shapes |= {"bias_ih": (H,), "bias_hh": (H,)}
            for kind, shape in shapes.items():
                setattr(self, f"{kind}_{name}", uniform(rng, bound, shape, self.dtype))

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _parts(self) -> list[tuple[str, int]]:
        """One (suffix of the parameter names, layer) for each layer and direction, in the order of the states."""
        suffixes = ("", "_reverse")[: self._directions]
        return [(f"l{layer}{suffix}", layer) for layer in range(self.num_layers) for suffix in suffixes]

    def _weights(self, part: str) -> tuple[Parameter, Parameter, Parameter | None, Parameter | None]:
        return (
            getattr(self, f"weight_ih_{part}"),
            getattr(self, f"weight_hh_{part}"),
            getattr(self, f"bias_ih_{part}", None),
            getattr(self, f"bias_hh_{part}", None),
        )

    def forward(self, input: Tensor | ArrayLike, hx: Tensor | ArrayLike | None = None) -> tuple[Tensor, Tensor]:
        """Run over one window.

        >>> rnn = RNN(1, 2, dtype=np.float64, rng=0)
        >>> window = np.array([[[1.0]], [[2.0]]])
        >>> output, h_n = rnn(window)
        >>> output, h_n = rnn(window, h_n.detach())

        Arguments: ``input`` (T, B, I), with ``batch_first`` (B, T, I), unbatched (T, I); ``hx`` (L*D, B, H), unbatched
        (L*D, H), None for zeros; both of the module's dtype. Arrays are aliased, not copied, until the backward has
        run: who writes into one before that gets wrong gradients, or an error if the write is counted.

        Returns ``(output, h_n)``: the top layer's states (T, B, D*H), laid out like ``input``, and every layer's final
        state, laid out like ``hx``.

        Raises ``ValueError`` for a wrong shape, ``TypeError`` for a wrong dtype.
        """
        input = as_tensor("input", input)
        hx = None if hx is None else as_tensor("hx", hx)
        x, h_0 = self._arrays(input, hx)
        window = _Window(self, input, hx, x, h_0)
        output, h_n = window.forward()
        if input.ndim == 2:
            output, h_n = output[:, 0], h_n[:, 0]
        elif self.batch_first:
            output = output.swapaxes(0, 1)
        output_tensor, h_n_tensor = record(
            type(self).__name__, [output, h_n], window.inputs, window.backward, window.saved
        )
        return output_tensor, h_n_tensor

    def _arrays(self, input: Tensor, hx: Tensor | None) -> tuple[Array, Array]:
        """Check the arguments and return them time-major and batched: (T, B, I) and (L*D, B, H)."""
        layout = "(B, T, I)" if self.batch_first else "(T, B, I)"
        if input.ndim not in (2, 3):
            raise ValueError(f"input must be {layout} or unbatched (T, I), got {input.shape}")
        check_input("input", input, self.dtype)
        if input.shape[-1] != self.input_size:
            letters = layout if input.ndim == 3 else "(T, I)"
            raise ValueError(f"input must be {letters} with I = {self.input_size}, got {input.shape}")
        x = input.data
        if input.ndim == 2:
            x = x[:, None]
        elif self.batch_first:
            x = x.swapaxes(0, 1)
        x = np.ascontiguousarray(x)
        if len(x) == 0:
            raise ValueError(f"input must have at least one time step, got {input.shape}")

        states = self.num_layers * self._directions
        if hx is None:
            return x, np.zeros((states, x.shape[1], self.hidden_size), self.dtype)
        check_input("hx", hx, self.dtype)
        expected: tuple[int, ...]
        letters, expected = "(L*D, B, H)", (states, x.shape[1], self.hidden_size)
        if input.ndim == 2:
            letters, expected = "(L*D, H)", (states, self.hidden_size)
        if hx.shape != expected:
            raise ValueError(f"hx must be {letters} = {expected}, got {hx.shape}")
        return x, hx.data if input.ndim == 3 else hx.data[:, None]

    def _describe(self) -> str:
        defaults = {"num_layers": 1, "nonlinearity": "tanh", "bias": True, "batch_first": False, "bidirectional": False}
        given = [f"{name}={getattr(self, name)!r}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *given])


class _Part:
    """One layer in one direction of a window: what its backward is asked for, and what it saved for that."""

    def __init__(self, window: _Window, k: int, x: Array, x_owner: Tensor | None, x_needs: bool) -> None:
        """Run the forward of part ``k`` on the layer's input ``x`` (T, B, I or D*H)."""
        module, hx = window.module, window.hx
        self.name, self.layer = module._parts()[k]
        self.reverse = self.name.endswith("_reverse")
        self.parameters = module._weights(self.name)
        w_ih, w_hh, b_ih, b_hh = self.parameters
        self.wanted = {
            name
            for name, needed in {
                "dx": x_needs,
                "dh_0": window.needs_hx,
                "dw_ih": w_ih.requires_grad,
                "dw_hh": w_hh.requires_grad,
                "db_ih": b_ih is not None and b_ih.requires_grad,
                "db_hh": b_hh is not None and b_hh.requires_grad,
            }.items()
            if needed
        }
        h, self.h_n, saved = rnn_cell.forward(
            x[::-1] if self.reverse else x,
            window.h_0[k],
            w_ih.data,
            w_hh.data,
            None if b_ih is None else b_ih.data,
            None if b_hh is None else b_hh.data,
            module.nonlinearity,
        )
        self.output = h[::-1] if self.reverse else h  # (T, B, H)

        def keep(array: Array | None, owner: Tensor | None, name: str) -> Saved:
            return Saved(array, owner, name, window.label)

        self.steps = len(h)
        self.saved_h = keep(saved.h, None, f"the states of {self.name}")
        self.saved_x = keep(saved.x, x_owner, "input" if self.layer == 0 else f"the input of {self.name}")
        self.saved_h_0 = keep(saved.h_0, hx, "hx")
        self.saved_w_ih = keep(w_ih.data, w_ih, f"weight_ih_{self.name}")
        self.saved_w_hh = keep(w_hh.data, w_hh, f"weight_hh_{self.name}")
        window.saved += [self.saved_h, self.saved_x, self.saved_h_0, self.saved_w_ih, self.saved_w_hh]

    def backward(self, dh: Array | None, dh_n: Array | None, nonlinearity: str) -> rnn_cell.Gradients:
        """Read just the saved arrays that this backward needs, in PyTorch's order, and call the cell's backward.

        A weight is read when the array that it multiplies needs a gradient: W_ih when x does, W_hh when h_0 does or
        when there is a step before the last, whose state then needs one.
        """
        h = self.saved_h.read()
        read_h_0 = self.saved_h_0.read if "dw_hh" in self.wanted else _nothing
        read_w_hh = self.saved_w_hh.read if "dh_0" in self.wanted or self.steps > 1 else _nothing
        if self.steps > 1:
            w_hh, h_0 = read_w_hh(), read_h_0()
        else:
            h_0, w_hh = read_h_0(), read_w_hh()
        x = self.saved_x.read() if "dw_ih" in self.wanted else None
        w_ih = self.saved_w_ih.read() if "dx" in self.wanted else None
        saved = rnn_cell.Saved(x, h_0, h)
        if dh is not None and self.reverse:
            dh = dh[::-1]
        return rnn_cell.backward(dh, dh_n, saved, w_ih, w_hh, nonlinearity, self.wanted)


def _nothing() -> None:
    return None


class _Window:
    """One call of a recurrent module: the forward over all layers and directions, and its backward."""

    def __init__(self, module: RNN, input: Tensor, hx: Tensor | None, x: Array, h_0: Array) -> None:
        module._calls += 1
        self.module, self.input, self.hx, self.x, self.h_0 = module, input, hx, x, h_0
        self.needs_input, self.needs_hx = input.requires_grad, hx is not None and hx.requires_grad
        self.label = f"call {module._calls} of {module!r}"
        self.inputs: list[Tensor | None] = [input, hx]
        for name, _ in module._parts():
            self.inputs += module._weights(name)
        self.saved: list[Saved] = []
        self.layers: list[list[_Part]] = []

    def forward(self) -> tuple[Array, Array]:
        """Return ``output`` (T, B, D*H) and ``h_n`` (L*D, B, H), in memory of their own."""
        D = self.module._directions
        x, needs = self.x, self.needs_input
        owner = self.input if np.may_share_memory(x, self.input.data) else None
        for layer in range(self.module.num_layers):
            parts = [_Part(self, layer * D + d, x, owner, needs) for d in range(D)]
            self.layers.append(parts)
            x = parts[0].output if D == 1 else np.concatenate([part.output for part in parts], axis=2)  # (T, B, D*H)
            needs, owner = any(part.wanted for part in parts), None
        if D == 1 and is_recording(self.inputs):
            x = x.copy()  # the backward needs its states as they are now, whatever becomes of the output
        return x, np.stack([part.h_n for parts in self.layers for part in parts])

    def backward(self, d_output: Array | None, d_h_n: Array | None) -> Sequence[Array | None]:
        """Walk the layers from the last to the first, as the gradient does."""
        module, H, D = self.module, self.module.hidden_size, self.module._directions
        dy = None if d_output is None else self._time_major(d_output)  # (T, B, D*H)
        dh_n = d_h_n[:, None] if d_h_n is not None and self.input.ndim == 2 else d_h_n  # (L*D, B, H)
        dh_0 = np.zeros_like(self.h_0) if self.needs_hx else None
        d_parameters: dict[str, tuple[Array | None, ...]] = {}
        for layer, parts in reversed(list(enumerate(self.layers))):
            dx = None
            for d, part in reversed(list(enumerate(parts))):
                k = layer * D + d
                upstream = None if dy is None else dy[:, :, d * H : (d + 1) * H]
                if not part.wanted or (upstream is None and dh_n is None):
                    continue
                gradients = part.backward(upstream, None if dh_n is None else dh_n[k], module.nonlinearity)
                d_parameters[part.name] = gradients[2:]
                if dh_0 is not None:
                    dh_0[k] = gradients.dh_0
                if gradients.dx is not None:
                    dx_part = gradients.dx[::-1] if part.reverse else gradients.dx
                    dx = dx_part if dx is None else dx + dx_part
            dy = dx
        d_inputs = [
            None if dy is None or not self.needs_input else self._input_layout(dy),
            None if dh_0 is None else dh_0[:, 0] if self.input.ndim == 2 else dh_0,
        ]
        for name, _ in module._parts():
            d_inputs += d_parameters.get(name, (None,) * 4)
        return d_inputs

    def _time_major(self, array: Array) -> Array:
        if self.input.ndim == 2:
            return array[:, None]
        return array.swapaxes(0, 1) if self.module.batch_first else array

    def _input_layout(self, array: Array) -> Array:
        if self.input.ndim == 2:
            return array[:, 0]
        return array.swapaxes(0, 1) if self.module.batch_first else array
