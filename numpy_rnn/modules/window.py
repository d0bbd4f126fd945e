"""One call of a recurrent module: its forward over all layers and directions, what it saves, and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpy_rnn.cells.steps import Steps
from numpy_rnn.modules.module import check_size
from numpy_rnn.modules.recompute import Recomputed
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array, MaybeArray

if TYPE_CHECKING:
    from numpy_rnn.modules.layout import Layout
    from numpy_rnn.modules.module import Module
    from numpy_rnn.modules.recurrent import Recurrent


class Names(NamedTuple):
    """Which layer and direction a part of a window is, and what its arrays are called."""

    parameters: tuple[str, ...]  # w_ih, w_hh, b_ih, b_hh, and with a projection w_hr: the order of the cells' arguments
    inner: str  # what the cell makes itself and its backward needs
    x: str = "input"
    k: int = 0  # which of the L*D states it has
    d: int = 0  # direction: 1 for the reverse one


@lru_cache(maxsize=64)
def layers_of(num_layers: int, D: int, projection: bool) -> list[list[Names]]:
    """Return the names of each layer and direction; they are the same for every call, and worked out once."""
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", *(["weight_hr"] if projection else []))
    return [
        [
            Names(
                tuple(f"{kind}_l{layer}{suffix}" for kind in kinds),
                f"the states of l{layer}{suffix}",
                f"the output of layer {layer - 1}" if layer else "input",
                layer * D + d,  # (5.10)
                d,
            )
            for d, suffix in enumerate(("", "_reverse")[:D])
        ]
        for layer in range(num_layers)
    ]


@lru_cache(maxsize=256)
def wanted_fields(fields: tuple[str, ...], needs: tuple[bool, ...]) -> frozenset[str]:
    """Return the fields of a cell's ``Gradients`` that are needed; that of w_hr comes last, and may have no need."""
    return frozenset(field for field, need in zip(fields, needs, strict=False) if need)


class Call:
    """Which call of which module, put into words only where an error needs them.

    The words are those of the moment of the call, whatever becomes of the module.
    """

    __slots__ = ("attributes", "kind")

    def __init__(self, module: Module) -> None:
        self.kind, self.attributes = type(module), vars(module).copy()

    def __str__(self) -> str:
        module = object.__new__(self.kind)
        vars(module).update(self.attributes)
        return f"call {self.attributes['_calls']} of {module!r}"


class Part:
    """One layer in one direction of a window: what its backward is asked for, and what it saved for that.

    ``module`` has ``_cell``, ``_state_names`` and ``_options()``; arrays come as rows (N, ...).
    """

    def __init__(self, module: Any, names: Names, needs_x: bool, needs_states: Sequence[bool]) -> None:
        every = vars(module).get("recompute_every")
        every = None if every is None else check_size("recompute_every", every)
        self.cell: Any = module._cell if every is None else Recomputed(module._cell, every)
        self.recomputes, self.options, self.names = every is not None, module._options(), names
        self.state_names, self.reverse = module._state_names, names.d == 1
        self.parameters: list[Any] = list(map(vars(module).get, names.parameters))  # as they are now; None if missing
        learnt = [p is not None and p._requires_grad for p in self.parameters]
        self.wanted = wanted_fields(self.cell.Gradients._fields, (needs_x, *needs_states, *learnt))
        self.saved: list[Saved] = []

    def forward(
        self,
        steps: Steps,
        x: Array,
        x_owner: Tensor | None,
        h_0: Sequence[Array],
        hx: Sequence[Tensor | None],
        call: Call | None,
    ) -> tuple[Array, list[Array]]:
        """Return all states (N, P), in the order of time, and the final ones, for the input ``x`` (N, I).

        If there is a ``call`` to record, what others may write to is saved with its version, and what the cell made
        itself only to be freed.
        """
        self.steps = steps
        weights = [None if p is None else p.data for p in self.parameters]
        turned = steps.flipped(x) if self.reverse else x  # (N, I) (5.6)
        h, *final, saved = self.cell.forward(turned, *h_0, *weights, steps=steps, **self.options)
        if call is not None:
            self.saved_inner = Saved(saved[1 + len(h_0) :], None, self.names.inner, call)  # all but x and the states
            self.saved_x = Saved(x, _owner(x, x_owner), self.names.x, call)
            state_names = self.state_names if len(h_0) > 1 else ("hx",)
            self.saved_states = [
                Saved(a, _owner(a, owner), name, call) for a, owner, name in zip(h_0, hx, state_names, strict=True)
            ]
            self.saved_w_ih, self.saved_w_hh = self._save_weight(0, call), self._save_weight(1, call)
            self.saved_w_hr = [self._save_weight(4, call)] if len(weights) > 4 else []
            biases = [None if weights[i] is None else self._save_weight(i, call) for i in (2, 3) if self.recomputes]
            self.saved = [self.saved_inner, self.saved_x, *self.saved_states]
            self.saved += [self.saved_w_ih, self.saved_w_hh, *self.saved_w_hr, *filter(None, biases)]
            self.saved_biases = biases
        return steps.flipped(h) if self.reverse else h, final  # (N, P) (5.6)

    def _save_weight(self, i: int, call: Call) -> Saved:
        return Saved(self.parameters[i].data, self.parameters[i], self.names.parameters[i], call)

    def backward(self, dh: Array | None, d_final: Sequence[Array | None]) -> Any:
        """Read just the saved arrays that this backward needs, in PyTorch's order, and call the cell's backward.

        A weight is read when the array that it multiplies needs a gradient and a gradient arrives at the product: W_ih
        when x does, W_hh when h_0 does or when there is a step before the last, whose state then needs one, W_hr
        unless the only gradient is that of the final cell state and there is no step before the last. Whoever runs the
        forward again reads all of them, and the biases.
        """
        wanted, again, more_steps = self.wanted, self.recomputes, self.steps.T > 1 or self.recomputes
        inner = self.saved_inner.read()
        w_hr = []
        for projection in self.saved_w_hr:
            arrives = self.steps.T > 1 or dh is not None or d_final[0] is not None
            if not arrives:
                wanted = wanted - {"dw_hr"}
            unread = np.zeros(projection.shape, self.parameters[0].dtype)  # what it would multiply is zero
            w_hr = [projection.read() if again or arrives else unread]  # (6.43) (4.7)
        w_hh = self.saved_w_hh.read() if more_steps else None  # (2.27) (4.5) (4.7) (6.43)
        states: list[MaybeArray] = [None for _ in self.saved_states]
        for i in reversed(range(len(states))):
            states[i] = self._read_state(i)
        if not more_steps and "dh_0" in wanted:
            w_hh = self.saved_w_hh.read()  # (2.27) (4.5) (4.7) (6.43)
        x = self.saved_x.read() if again or "dw_ih" in wanted else None
        w_ih = self.saved_w_ih.read() if again or "dx" in wanted else None  # (2.27) (4.6) (4.7) (6.43)
        biases = {"biases": [None if b is None else b.read() for b in self.saved_biases]} if again else {}

        if self.reverse:
            x = None if x is None else self.steps.flipped(x)
            dh = None if dh is None else self.steps.flipped(dh)  # (N, P) (5.9)
        saved = self.cell.Saved(x, *states, *inner)
        gradients = self.cell.backward(
            dh, *d_final, saved, w_ih, w_hh, *w_hr, wanted=wanted, steps=self.steps, **biases, **self.options
        )
        if self.reverse and gradients.dx is not None:
            gradients = gradients._replace(dx=self.steps.flipped(gradients.dx))  # (N, I) (5.9)
        return gradients

    def _read_state(self, i: int) -> MaybeArray:
        """Where only dW_hh needs h_0 it is read for that alone. (PyTorch's GRU saves h_0 - n; here h_0 is needed.)"""
        alone = self.state_names[i] == "h_0" and self.cell.H_0_FOR_DW_HH_ALONE
        return None if alone and "dw_hh" not in self.wanted else self.saved_states[i].read()


def _owner(array: Array, tensor: Tensor | None) -> Tensor | None:
    """Return the Tensor over whose memory ``array`` is, or None for a copy."""
    return tensor if tensor is not None and np.may_share_memory(array, tensor.data) else None


class Window:
    """One call of a ``Recurrent`` module.

    It lives as long as the graph; arrays are held only as ``Saved``, so that freeing the graph frees them.
    """

    def __init__(self, module: Recurrent, layout: Layout, needs_input: bool, needs_states: list[bool]) -> None:
        self.layout, self.dtype = layout, module.dtype
        self.needs_input, self.needs_states = needs_input, needs_states
        self.layers: list[list[Part]] = []
        self.parameters: list[Tensor | None] = []
        needs_x = needs_input
        for names in layers_of(module.num_layers, 1 + module.bidirectional, module.proj_size > 0):
            parts = [Part(module, each, needs_x, needs_states) for each in names]
            self.layers.append(parts)
            needs_x = False
            for part in parts:
                self.parameters += part.parameters
                needs_x = needs_x or bool(part.wanted)
        self.saved_masks: list[Saved] = []

    @property
    def saved(self) -> list[Saved]:
        return [saved for parts in self.layers for part in parts for saved in part.saved] + self.saved_masks

    def forward(
        self, input: Tensor, hx: list[Tensor | None], h_0: list[Array], masks: list[Array] | None, call: Call | None
    ) -> tuple[Array, list[Array]]:
        """Return the output in the layout of the input, and the final states, in memory of their own.

        ``h_0`` are the initial states (L*D, B, P), (L*D, B, H), in the order of the rows.
        """
        layout = self.layout
        x = layout.rows(input.data)  # (N, I)
        owner: Tensor | None = input
        self.state_shapes = [a.shape for a in h_0]
        finals = [np.empty(shape, self.dtype) for shape in self.state_shapes]
        for layer, parts in enumerate(self.layers):
            outputs = []
            for part in parts:
                k = part.names.k
                h, last = part.forward(layout.steps, x, owner, [a[k] for a in h_0], hx, call)
                outputs.append(h)
                for final, state in zip(finals, last, strict=True):
                    final[k] = state
            x = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=1)  # (N, D*P) (5.2) (5.7)
            owner = None
            if masks is not None and layer < len(masks):
                if call is not None:
                    self.saved_masks.append(Saved(masks[layer], None, f"the dropout mask of layer {layer}", call))
                x = x * masks[layer]  # (N, D*P) (5.12)
        if len(outputs) == 1 and call is not None:
            x = x.copy()  # the backward needs its states as they are now, whatever becomes of the output
        return layout.back(x), [layout.states_back(final) for final in finals]

    def backward(self, d_output: Array | None, *d_finals: Array | None) -> Sequence[Array | None]:
        """Walk the layers from the last to the first, as the gradient does."""
        layout, P = self.layout, self.state_shapes[0][-1]
        dy = None if d_output is None else layout.rows(d_output)  # (N, D*P)
        d_final = [None if d is None else layout.states(d) for d in d_finals]  # (L*D, B, P), (L*D, B, H)
        shapes = zip(self.state_shapes, self.needs_states, strict=True)
        d_states = [np.zeros(shape, self.dtype) if needed else None for shape, needed in shapes]
        d_parameters: list[Array | None] = []
        for layer in reversed(range(len(self.layers))):
            dx = None
            for part in reversed(self.layers[layer]):
                k, d = part.names.k, part.names.d
                dh = None if dy is None else dy[:, d * P : (d + 1) * P]  # (N, P) (5.8)
                d_last = [None if d is None else d[k] for d in d_final]  # (B, P), (B, H) (5.4)
                if not part.wanted or (dh is None and all(d is None for d in d_last)):
                    d_parameters = [*[None] * len(part.parameters), *d_parameters]
                    continue
                dx_part, *rest = part.backward(dh, d_last)
                for d_state, got in zip(d_states, rest, strict=False):
                    if d_state is not None:
                        d_state[k] = got
                if dx_part is not None:
                    dx = dx_part if dx is None else dx + dx_part  # (N, I) (5.9)
                d_parameters = rest[len(d_states) : len(d_states) + len(part.parameters)] + d_parameters
            dy = dx  # (N, D*P) of the layer below (5.3)
            if dy is not None and self.saved_masks and layer > 0:
                dy = dy * self.saved_masks[layer - 1].read()  # (N, D*P) (5.13)
        d_input = layout.back(dy) if dy is not None and self.needs_input else None
        return [d_input, *[None if d is None else layout.states_back(d) for d in d_states], *d_parameters]
