"""Recurrent modules: layers and directions around the pure functions of ``numpy_rnn.cells``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.cells import rnn as rnn_cell
from numpy_rnn.modules.module import Module, Seed, check_dtype, check_input, check_size, uniform
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Parameter, Tensor, as_tensor, is_recording, record
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
        window = _Window(self, input, hx)
        output, h_n = window.forward(x, h_0)
        arrays = [window._turned(output, back=True), h_n[:, 0] if input.ndim == 2 else h_n]
        output_tensor, h_n_tensor = record("RNN", arrays, window.inputs, window.backward, window.saved)
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

    def __init__(self, module: RNN, name: str, label: str, needs_x: bool, needs_h_0: bool) -> None:
        self.name, self.label, self.nonlinearity = name, label, module.nonlinearity
        self.reverse = name.endswith("_reverse")
        self.parameters = module._weights(name)
        needs = [needs_x, needs_h_0, *(p is not None and p.requires_grad for p in self.parameters)]
        self.wanted = {field for field, need in zip(rnn_cell.Gradients._fields, needs, strict=True) if need}

    def forward(self, x: Array, x_owner: Tensor | None, x_name: str, h_0: Array, hx: Tensor | None) -> list[Array]:
        """Return all states (T, B, H), in the order of time, and the final one, for the input ``x`` (T, B, ...)."""
        w_ih, w_hh, b_ih, b_hh = self.parameters
        h, h_n, saved = rnn_cell.forward(
            x[::-1] if self.reverse else x,
            h_0,
            w_ih.data,
            w_hh.data,
            None if b_ih is None else b_ih.data,
            None if b_hh is None else b_hh.data,
            self.nonlinearity,
        )
        self.steps = len(h)
        self.saved_h = self._keep(saved.h, None, f"the states of {self.name}")
        self.saved_x = self._keep(saved.x, x_owner, x_name)
        self.saved_h_0 = self._keep(saved.h_0, hx, "hx")
        self.saved_w_ih = self._keep(w_ih.data, w_ih, f"weight_ih_{self.name}")
        self.saved_w_hh = self._keep(w_hh.data, w_hh, f"weight_hh_{self.name}")
        return [h[::-1] if self.reverse else h, h_n]

    def _keep(self, array: Array, owner: Tensor | None, name: str) -> Saved:
        return Saved(array, owner, name, self.label)

    @property
    def saved(self) -> list[Saved]:
        return [self.saved_h, self.saved_x, self.saved_h_0, self.saved_w_ih, self.saved_w_hh]

    def backward(self, dh: Array | None, dh_n: Array | None) -> rnn_cell.Gradients:
        """Read just the saved arrays that this backward needs, in PyTorch's order, and call the cell's backward.

        A weight is read when the array that it multiplies needs a gradient: W_ih when x does, W_hh when h_0 does or
        when there is a step before the last, whose state then needs one.
        """
        h = self.saved_h.read()
        read_h_0 = self.saved_h_0.read if "dw_hh" in self.wanted else _nothing
        read_w_hh = self.saved_w_hh.read if "dh_0" in self.wanted or self.steps > 1 else _nothing  # (2.27), (4.5)
        if self.steps > 1:
            w_hh, h_0 = read_w_hh(), read_h_0()
        else:
            h_0, w_hh = read_h_0(), read_w_hh()
        x = self.saved_x.read() if "dw_ih" in self.wanted else None
        w_ih = self.saved_w_ih.read() if "dx" in self.wanted else None  # (2.27), (4.6)
        if dh is not None and self.reverse:
            dh = dh[::-1]
        saved = rnn_cell.Saved(x, h_0, h)
        gradients = rnn_cell.backward(dh, dh_n, saved, w_ih, w_hh, self.nonlinearity, self.wanted)
        return gradients._replace(dx=gradients.dx[::-1]) if self.reverse and gradients.dx is not None else gradients


def _nothing() -> None:
    return None


class _Window:
    """One call of a recurrent module: the forward over all layers and directions, and its backward.

    It lives as long as the graph; arrays are held only as ``Saved``, so that freeing the graph frees them.
    """

    def __init__(self, module: RNN, input: Tensor, hx: Tensor | None) -> None:
        module._calls += 1
        self.module, self.input, self.hx = module, input, hx
        self.needs_input, self.needs_hx = input.requires_grad, hx is not None and hx.requires_grad
        self.label = f"call {module._calls} of {module!r}"
        self.layers: list[list[_Part]] = []
        self.inputs: list[Tensor | None] = [input, hx]
        for name, _ in module._parts():
            self.inputs += module._weights(name)

    def forward(self, x: Array, h_0: Array) -> tuple[Array, Array]:
        """Return ``output`` (T, B, D*H) and ``h_n`` (L*D, B, H), in memory of their own."""
        D = self.module._directions
        owner = self.input if np.may_share_memory(x, self.input.data) else None
        needs, x_name, final = self.needs_input, "input", []
        for layer in range(self.module.num_layers):
            names = [name for name, other in self.module._parts() if other == layer]
            parts = [_Part(self.module, name, self.label, needs, self.needs_hx) for name in names]
            outputs = []
            for d, part in enumerate(parts):
                output, h_n = part.forward(x, owner, x_name, h_0[layer * D + d], self.hx)
                outputs.append(output)
                final.append(h_n)
            self.layers.append(parts)
            x = outputs[0] if D == 1 else np.concatenate(outputs, axis=2)  # (T, B, D*H)
            needs, owner, x_name = any(part.wanted for part in parts), None, f"the output of layer {layer}"
        if D == 1 and is_recording(self.inputs):
            x = x.copy()  # the backward needs its states as they are now, whatever becomes of the output
        return x, np.stack(final)

    @property
    def saved(self) -> list[Saved]:
        return [saved for parts in self.layers for part in parts for saved in part.saved]

    def backward(self, d_output: Array | None, d_h_n: Array | None) -> Sequence[Array | None]:
        """Walk the layers from the last to the first, as the gradient does."""
        H, D = self.module.hidden_size, self.module._directions
        dy = None if d_output is None else self._turned(d_output)  # (T, B, D*H)
        dh_n = d_h_n[:, None] if d_h_n is not None and self.input.ndim == 2 else d_h_n  # (L*D, B, H)
        dh_0 = np.zeros(self.hx.shape, self.module.dtype) if self.hx is not None and self.needs_hx else None
        d_parameters: dict[str, tuple[Array | None, ...]] = {}
        for layer, parts in reversed(list(enumerate(self.layers))):  # (4.7)
            dx = None
            for d, part in reversed(list(enumerate(parts))):  # (4.7)
                k = layer * D + d
                dh = None if dy is None else dy[:, :, d * H : (d + 1) * H]
                if not part.wanted or (dh is None and dh_n is None):
                    continue
                gradients = part.backward(dh, None if dh_n is None else dh_n[k])
                d_parameters[part.name] = gradients[2:]
                if dh_0 is not None and gradients.dh_0 is not None:
                    dh_0[k] = gradients.dh_0.reshape(dh_0[k].shape)
                if gradients.dx is not None:
                    dx = gradients.dx if dx is None else dx + gradients.dx
            dy = dx
        dx = self._turned(dy, back=True) if dy is not None and self.needs_input else None
        of_parameters = [d for name, _ in self.module._parts() for d in d_parameters.get(name, (None,) * 4)]
        return [dx, dh_0, *of_parameters]

    def _turned(self, array: Array, back: bool = False) -> Array:
        """From the layout of the input to (T, B, ...), or ``back``."""
        if self.input.ndim == 2:
            return array[:, 0] if back else array[:, None]
        return array.swapaxes(0, 1) if self.module.batch_first else array
