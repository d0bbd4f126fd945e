"""One call of a recurrent module: its forward over all layers and directions, what it saves, and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_rnn.cells.steps import Steps
from numpy_rnn.tape import Saved
from numpy_rnn.tensor import Tensor, is_recording
from numpy_rnn.typing import Array, MaybeArray

if TYPE_CHECKING:
    from numpy_rnn.modules.layout import Layout
    from numpy_rnn.modules.recurrent import Recurrent


class Part:
    """One layer in one direction of a window: what its backward is asked for, and what it saved for that.

    ``module`` has ``_cell``, ``_state_names``, ``_weights(name)`` and ``_options()``; arrays come as rows (N, ...).
    """

    def __init__(self, module: Any, name: str, label: str, needs_x: bool, needs_states: Sequence[bool]) -> None:
        self.cell, self.options, self.label = module._cell, module._options(), label
        self.state_names = module._state_names
        self.suffix = f"_{name}" if name else ""
        self.reverse = name.endswith("_reverse")
        self.parameters = module._weights(name)
        learnt = [p is not None and p.requires_grad for p in self.parameters]
        fields = self.cell.Gradients._fields
        needs = zip(fields, [needs_x, *needs_states, *learnt], strict=False)  # w_hr is missing without a projection
        self.wanted = {field for field, need in needs if need}

    def forward(
        self, steps: Steps, x: Array, x_owner: Tensor | None, x_name: str, h_0: list[Array], hx: list[Tensor | None]
    ) -> tuple[Array, list[Array]]:
        """Return all states (N, P), in the order of time, and the final ones, for the input ``x`` (N, I)."""
        self.steps = steps
        weights = [None if p is None else p.data for p in self.parameters]
        turned = steps.flipped(x) if self.reverse else x  # (N, I) (5.6)
        h, *final, saved = self.cell.forward(turned, *h_0, *weights, steps=steps, **self.options)
        # What others may write to is saved with its version; what the cell made itself only to be freed.
        inner = saved._replace(x=None, **dict.fromkeys(self.state_names))
        self.saved_inner = self._keep(inner, None, f"the states{' of ' if self.suffix else ''}{self.suffix[1:]}")
        self.saved_x = self._keep(x, x_owner, x_name)
        names = self.state_names if len(self.state_names) > 1 else ("hx",)
        self.saved_states = [self._keep(a, o, n) for a, o, n in zip(h_0, hx, names, strict=True)]
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        self.saved_weights = {
            kind: self._keep(p.data, p, kind + self.suffix)
            for kind, p in zip(kinds, self.parameters, strict=False)
            if p is not None and kind.startswith("weight")
        }
        return steps.flipped(h) if self.reverse else h, final  # (N, P) (5.6)

    def _keep(self, array: Any, owner: Tensor | None, name: str) -> Saved:
        return Saved(array, owner, name, self.label)

    @property
    def saved(self) -> list[Saved]:
        return [self.saved_inner, self.saved_x, *self.saved_states, *self.saved_weights.values()]

    def backward(self, dh: Array | None, d_final: Sequence[Array | None]) -> Any:
        """Read just the saved arrays that this backward needs, in PyTorch's order, and call the cell's backward.

        A weight is read when the array that it multiplies needs a gradient and a gradient arrives at the product: W_ih
        when x does, W_hh when h_0 does or when there is a step before the last, whose state then needs one, W_hr
        unless the only gradient is that of the final cell state and there is no step before the last.
        """
        wanted, more_steps = set(self.wanted), self.steps.T > 1
        inner = self.saved_inner.read()
        w_hr = None
        if projection := self.saved_weights.get("weight_hr"):
            if more_steps or dh is not None or d_final[0] is not None:
                w_hr = projection.read()  # (6.43) (4.7)
            else:  # unread: what it would multiply is zero, and no gradient of its own arrives
                w_hr = np.zeros(projection.shape, inner.h.dtype)
                wanted.discard("dw_hr")
        w_hh = self.saved_weights["weight_hh"].read() if more_steps else None  # (2.27) (4.5) (4.7) (6.43)
        states = [self._read_state(i) for i in reversed(range(len(self.saved_states)))][::-1]
        if not more_steps and "dh_0" in wanted:
            w_hh = self.saved_weights["weight_hh"].read()  # (2.27) (4.5) (4.7) (6.43)
        x = self.saved_x.read() if "dw_ih" in wanted else None
        w_ih = self.saved_weights["weight_ih"].read() if "dx" in wanted else None  # (2.27) (4.6) (4.7) (6.43)

        if self.reverse:
            x = None if x is None else self.steps.flipped(x)
            dh = None if dh is None else self.steps.flipped(dh)  # (N, P) (5.9)
        saved = inner._replace(x=x, **dict(zip(self.state_names, states, strict=True)))
        weights = [w_ih, w_hh] if projection is None else [w_ih, w_hh, w_hr]
        gradients = self.cell.backward(dh, *d_final, saved, *weights, wanted=wanted, steps=self.steps, **self.options)
        if self.reverse and gradients.dx is not None:
            gradients = gradients._replace(dx=self.steps.flipped(gradients.dx))  # (N, I) (5.9)
        return gradients

    def _read_state(self, i: int) -> MaybeArray:
        """Where only dW_hh needs h_0 it is read for that alone. (PyTorch's GRU saves h_0 - n; here h_0 is needed.)"""
        alone = self.state_names[i] == "h_0" and self.cell.H_0_FOR_DW_HH_ALONE
        return None if alone and "dw_hh" not in self.wanted else self.saved_states[i].read()


class Window:
    """One call of a ``Recurrent`` module.

    It lives as long as the graph; arrays are held only as ``Saved``, so that freeing the graph frees them.
    """

    def __init__(self, module: Recurrent, layout: Layout, input: Tensor, states: list[Tensor | None]) -> None:
        module._calls += 1
        self.module, self.layout, self.input, self.states = module, layout, input, states
        self.needs_input = input.requires_grad
        self.needs_states = [state is not None and state.requires_grad for state in states]
        self.label = f"call {module._calls} of {module!r}"
        self.saved_masks: list[Saved] = []
        self.layers: list[list[Part]] = []
        self.inputs: list[Tensor | None] = [input, *states]
        for name, _ in module._parts():
            self.inputs += module._weights(name)

    @property
    def saved(self) -> list[Saved]:
        return [saved for parts in self.layers for part in parts for saved in part.saved] + self.saved_masks

    def forward(self, input: Array, states: list[Array | None], masks: list[Array] | None) -> tuple[Array, list[Array]]:
        """Return the output in the layout of the input, and the final states, in memory of their own."""
        module, D, steps = self.module, self.module._directions, self.layout.steps
        sizes = (module._output_size, module.hidden_size)
        h_0 = [
            np.zeros((module.num_layers * D, steps.B, size), module.dtype) if s is None else self.layout.states(s)
            for s, size in zip(states, sizes, strict=False)
        ]
        x = self.layout.rows(input)  # (N, I)
        owner = self.input if np.may_share_memory(x, input) else None
        owners = [
            s if s is not None and np.may_share_memory(a, s.data) else None
            for a, s in zip(h_0, self.states, strict=True)
        ]
        needs, x_name = self.needs_input, "input"
        finals: list[list[Array]] = [[] for _ in h_0]
        for layer in range(module.num_layers):
            names = [name for name, other in module._parts() if other == layer]
            parts = [Part(module, name, self.label, needs, self.needs_states) for name in names]
            outputs = []
            for d, part in enumerate(parts):
                h, final = part.forward(steps, x, owner, x_name, [a[layer * D + d] for a in h_0], owners)
                outputs.append(h)
                for collected, state in zip(finals, final, strict=True):
                    collected.append(state)
            self.layers.append(parts)
            x = outputs[0] if D == 1 else np.concatenate(outputs, axis=1)  # (N, D*P) (5.2) (5.7)
            if masks is not None and layer < module.num_layers - 1:
                self.saved_masks.append(Saved(masks[layer], None, f"the dropout mask of layer {layer}", self.label))
                x = x * masks[layer]  # (N, D*P) (5.12)
            needs, owner, x_name = any(part.wanted for part in parts), None, f"the output of layer {layer}"
        if D == 1 and is_recording(self.inputs):
            x = x.copy()  # the backward needs its states as they are now, whatever becomes of the output
        return self.layout.back(x), [self.layout.states_back(np.stack(final)) for final in finals]

    def backward(self, d_output: Array | None, *d_finals: Array | None) -> Sequence[Array | None]:
        """Walk the layers from the last to the first, as the gradient does."""
        P, D, layout = self.module._output_size, self.module._directions, self.layout
        dy = None if d_output is None else layout.rows(d_output)  # (N, D*P)
        d_final = [None if d is None else layout.states(d) for d in d_finals]  # (L*D, B, P), (L*D, B, H)
        d_states = [
            np.zeros(layout.states(s.data).shape, self.module.dtype) if s is not None and needed else None
            for s, needed in zip(self.states, self.needs_states, strict=True)
        ]
        d_parameters: dict[str, list[Array | None]] = {}
        for layer, parts in reversed(list(enumerate(self.layers))):
            dx = None
            for d, part in reversed(list(enumerate(parts))):
                k = layer * D + d  # (5.10)
                dh = None if dy is None else dy[:, d * P : (d + 1) * P]  # (N, P) (5.8)
                d_last = [None if d is None else d[k] for d in d_final]  # (B, P), (B, H) (5.4)
                if not part.wanted or (dh is None and all(d is None for d in d_last)):
                    continue
                dx_part, *rest = part.backward(dh, d_last)
                for d_state, got in zip(d_states, rest, strict=False):
                    if d_state is not None:
                        d_state[k] = got
                d_parameters[part.suffix] = rest[len(d_states) :]
                if dx_part is not None:
                    dx = dx_part if dx is None else dx + dx_part  # (N, I) (5.9)
            dy = dx  # (N, D*P) of the layer below (5.3)
            if dy is not None and self.saved_masks and layer > 0:
                dy = dy * self.saved_masks[layer - 1].read()  # (N, D*P) (5.13)
        gradients = [layout.back(dy) if dy is not None and self.needs_input else None]
        gradients += [None if d is None else layout.states_back(d) for d in d_states]
        for name, _ in self.module._parts():
            count = len(self.module._weights(name))
            gradients += d_parameters.get(f"_{name}", [None] * count)[:count]
        return gradients
