"""Run a network step by step, as somebody's first port would, with one known bug in it or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from numpy_rnn.diagnosis.steps import LETTERS, STEPS
from numpy_rnn.typing import Array, MaybeArray


@dataclass(frozen=True)
class Case:
    """A network, what goes into it, and what comes back from above.

    ``cell`` is "rnn", "lstm" or "gru", ``nonlinearity`` that of the rnn. ``arrays`` has ``x`` (T, B, I), ``h_0``
    (L*D, B, P), for an LSTM ``c_0`` (L*D, B, H), the parameters by PyTorch's names, and the upstream gradients
    ``doutput``, ``dh_n`` and ``dc_n`` of what has one. ``lengths`` (B,) of the sequences. ``windows`` sum to T: the
    state is detached where one ends.
    """

    cell: str
    arrays: Mapping[str, Array]
    nonlinearity: str = "tanh"
    lengths: Sequence[int] | None = None
    windows: Sequence[int] = ()

    @property
    def directions(self) -> int:
        return 2 if "weight_ih_l0_reverse" in self.arrays else 1

    @property
    def layers(self) -> int:
        return sum(name.startswith("weight_hh_l") and not name.endswith("_reverse") for name in self.arrays)

    @property
    def gates(self) -> int:
        """How many blocks the weights have."""
        return len(LETTERS[self.cell])


def replay(case: Case, bug: str = "") -> dict[str, Array]:
    """Return what the network with the ``bug``, a name of ``numpy_rnn.diagnosis.bugs``, computes.

    >>> w = np.full((1, 1), 0.5)
    >>> arrays = {"x": np.ones((2, 1, 1)), "h_0": np.ones((1, 1, 1)), "weight_ih_l0": w, "weight_hh_l0": w}
    >>> case = Case("rnn", arrays | {"doutput": np.ones((2, 1, 1))})
    >>> [replay(case, bug)["dweight_hh_l0"].round(6).item() for bug in ("", "h-for-h-before")]
    [0.906161, 0.753575]

    Returns ``output``, ``h_n``, for an LSTM ``c_n``, and the gradients ``dx``, ``dh_0``, ``dc_0`` and ``d`` before the
    name of each parameter.
    """
    with np.errstate(all="ignore"):  # a bug may overflow
        return _Network(case, bug).run()


@dataclass
class _Network:
    case: Case
    bug: str
    out: dict[str, Array] = field(default_factory=dict)

    def has(self, *bugs: str) -> bool:
        return self.bug in bugs

    def run(self) -> dict[str, Array]:
        case, arrays = self.case, self.case.arrays
        h_0, D = arrays["h_0"], case.directions
        c_0 = arrays.get("c_0")
        order = np.arange(len(h_0))
        if self.has("states-ordered-by-direction"):
            order = order.reshape(D, case.layers).T.ravel()
        x, passes, h_n, c_n = arrays["x"], [], np.zeros_like(h_0), None if c_0 is None else np.zeros_like(c_0)
        for layer in range(case.layers):
            outputs = []
            for direction in range(D):
                k = order[layer * D + direction]
                one = _Pass(self, layer, direction, h_0[k], h_0[k] if c_0 is None else c_0[k])
                outputs.append(one.forward(x))
                h_n[k] = one.h_n
                if c_n is not None:
                    c_n[k] = one.c_n
                passes.append((k, one))
            x = np.concatenate(self._directions(outputs), axis=2)
        self.out |= {"output": x, "h_n": h_n} | ({} if c_n is None else {"c_n": c_n})
        self._backward(passes)
        return self.out

    def _directions(self, parts: list[Any]) -> list[Any]:
        return parts[::-1] if self.has("directions-swapped") else parts

    def _backward(self, passes: list[tuple[int, _Pass]]) -> None:
        case, arrays = self.case, self.case.arrays
        zeros = {name: np.zeros_like(array) for name, array in self.out.items()}
        dx = arrays.get("doutput", zeros["output"])
        finals = {name: arrays.get(f"d{name}", zeros[name]).copy() for name in ("h_n", "c_n") if name in zeros}
        if self.has("dh-n-dropped", "dh-n-and-dc-n-dropped"):
            finals["h_n"][...] = 0
        if self.has("dc-n-dropped", "dh-n-and-dc-n-dropped") and "c_n" in finals:
            finals["c_n"][...] = 0
        if self.has("final-gradients-of-the-top-layer-only"):
            for gradient in finals.values():
                gradient[: -case.directions] = 0
        firsts = {name: np.zeros_like(array) for name, array in finals.items()}
        D = case.directions
        for layer in reversed(range(case.layers)):
            of_layer = passes[layer * D : (layer + 1) * D]
            parts = self._directions(np.split(dx, D, axis=2))
            below = []
            for (k, one), dout in zip(of_layer, parts, strict=True):
                dh, dc = finals["h_n"][k], finals["c_n"][k] if "c_n" in finals else np.zeros_like(one.c_n)
                below.append(one.backward(dout, dh, dc))
                firsts["h_n"][k] = one.dh
                if "c_n" in firsts:
                    firsts["c_n"][k] = one.dc
                self.out |= {f"d{name}": gradient for name, gradient in one.gradients.items()}
            first_only = self.has("dx-of-the-forward-direction-only")
            dx = np.sum(below[:1] if first_only else below, axis=0)
        self.out["dx"] = dx
        self.out |= {f"d{name.replace('_n', '_0')}": gradient for name, gradient in firsts.items()}


class _Pass:
    """One layer and direction."""

    def __init__(self, network: _Network, layer: int, direction: int, h_0: Array, c_0: Array) -> None:
        self.has, self.case, self.layer, self.direction = network.has, network.case, layer, direction
        case, self.suffix = network.case, f"_l{layer}" + "_reverse" * direction
        self.step = STEPS[f"rnn-{case.nonlinearity}" if case.cell == "rnn" else case.cell]
        self.bug = network.bug
        self.order = self._gate_order()
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        self.given = {kind: case.arrays.get(kind + self.suffix) for kind in kinds}
        w: dict[str, MaybeArray] = {
            kind.replace("eight", "").replace("ias", ""): array for kind, array in self.given.items()
        }
        if self.bug.startswith("gates"):
            for name in ("w_ih", "w_hh", "b_ih", "b_hh"):
                w[name] = self._blocks(w[name])
        self.w_hh_back = w["w_hh"]
        if self.has("w-hh-transposed", "w-hh-transposed-gradient-too", "w-hh-transposed-in-forward"):
            w["w_hh"] = self._transposed(w["w_hh"])
        if self.has("w-hh-transposed", "w-hh-transposed-gradient-too", "w-hh-transposed-in-backward"):
            self.w_hh_back = self._transposed(self.w_hh_back)
        if self.has("b-hh-left-out"):
            w["b_hh"] = None
        if self.has("b-ih-taken-twice"):
            w["b_hh"] = w["b_ih"]
        self.w = w
        self.H = len(w["w_hh"]) // case.gates
        self.h_0 = np.zeros_like(h_0) if self.has("h-0-ignored") else h_0
        self.c_0 = c_0 if "c_0" in case.arrays else np.zeros((len(h_0), self.H))
        if self.has("c-0-ignored"):
            self.c_0 = np.zeros_like(self.c_0)

    def _gate_order(self) -> list[int]:
        """Which gate stands at each place, by PyTorch's numbers."""
        kind, _, order = self.bug.partition("-in-the-order-")
        if kind not in ("gates", "deltas"):
            return list(range(self.case.gates))
        return [LETTERS[self.case.cell].index(letter) for letter in order]

    def _blocks(self, array: MaybeArray) -> MaybeArray:
        """The rows of the gates in PyTorch's order, taken from the places where the bug looks for them."""
        if array is None:
            return None
        blocks = np.split(array, self.case.gates)
        return np.concatenate([blocks[self.order.index(gate)] for gate in range(len(blocks))])

    def _transposed(self, w_hh: MaybeArray) -> Array:
        """Each gate's block transposed, where it is square."""
        blocks = np.split(w_hh, self.case.gates)
        return np.concatenate([b.T for b in blocks]) if blocks[0].shape[0] == blocks[0].shape[1] else w_hh

    def forward(self, x: Array) -> Array:
        T, B = x.shape[:2]
        lengths = np.full(B, T) if self.case.lengths is None else np.asarray(self.case.lengths)
        if self.has("lengths-ignored"):
            lengths = np.full(B, T)
        self.real = np.arange(T)[:, None] < lengths  # (T, B) of the input's steps, which are no padding
        through = self.direction == 1 and self.has("padding-run-first")
        self.mask = np.ones((T, B), bool) if through else self.real  # (T, B) of the steps as they are run
        self.flip = self._flip(lengths, T)  # (T, B) which step comes t-th
        self.x = self._turned(x)
        self.steps: list[Any] = []
        h, c, out = self.h_0, self.c_0, np.zeros((T, B, self.h_0.shape[1]))
        for t in range(T):
            if self.has("h-not-carried"):
                h, c = self.h_0, self.c_0
            step = self.step(self.bug, self.w, h, c, self.steps[-1] if self.steps else None)
            a, q = self.x[t] @ self.w["w_ih"].T, h @ self.w["w_hh"].T
            a = a if self.w["b_ih"] is None else a + self.w["b_ih"]
            q = q if self.w["b_hh"] is None else q + self.w["b_hh"]
            h_new, c_new = step.forward(a, q)
            m = self.mask[t][:, None]
            h, c = np.where(m, h_new, h), np.where(m, c_new, c)
            out[t] = np.where(m, h_new, 0)
            self.steps.append(step)
        self.h_n, self.c_n, self.out = h, c, out
        return (
            out if self.has("reverse-output-not-turned-back") else np.where(self.real[..., None], self._turned(out), 0)
        )

    def _flip(self, lengths: Array, T: int) -> Array:
        t = np.arange(T)[:, None]
        if not self.direction or self.has("reverse-runs-forward"):
            return np.broadcast_to(t, self.mask.shape)
        if self.has("padding-run-first"):
            return np.broadcast_to(t[::-1], self.mask.shape)
        return np.where(t < lengths, lengths - 1 - t, t)

    def _turned(self, x: Array) -> Array:
        return x[self.flip, np.arange(x.shape[1])]

    def backward(self, dout: Array, dh: Array, dc: Array) -> Array:
        if self.has("padding-run-first"):
            dout = np.where(self.real[..., None], dout, 0)
        dout = dout if self.has("reverse-upstream-not-turned", "reverse-output-not-turned-back") else self._turned(dout)
        T = len(dout)
        self.starts = set(accumulate((0, *self.case.windows)))
        g = {kind: np.zeros_like(array) for kind, array in self.given.items() if array is not None}
        if self.has("gradient-buffer-starts-from-the-weights"):
            g = {kind: array.copy() for kind, array in self.given.items() if array is not None}
        dx = np.zeros_like(self.x)
        dh_n = dh
        for t in reversed(range(T)):
            if self._starts_at(t, "first-step-skipped", "windows-first-steps-skipped"):
                dh, dc = self._cut(t, dh, dc)
                continue
            m, step = self.mask[t][:, None], self.steps[t]
            local = dout[t] + (dh_n if t == T - 1 else 0)
            total = dh + dout[t]
            if self.has("dh-assigned-not-added"):
                total = dout[t]
            if self.has("only-the-carry") and t < T - 1:
                total = dh
            if self.has("dh-n-added-at-every-step") and t < T - 1:
                total = total + dh_n
            if self.has("padding-passes-gradient"):
                dh = np.where(m, dh, dh + dout[t])
            da, dq, direct, dc_before = step.backward(np.where(m, total, 0), np.where(m, dc, 0))
            da, dq = self._permuted(da), self._permuted(dq)
            self._add(g, t, step, da, dq, np.where(m, total, 0), np.where(m, local, 0))
            dx[t] = da @ self.w["w_ih"]
            carried = dq if self.has("carried-without-w-hh") and dq.shape == dh.shape else dq @ self.w_hh_back
            dh, dc = self._cut(t, np.where(m, direct + carried, dh), np.where(m, dc_before, dc))
        self.dh, self.dc = dh, dc
        self.gradients = {kind + self.suffix: self._as_given(kind, array) for kind, array in g.items()}
        return dx if self.has("reverse-dx-not-turned-back") else self._back(dx)

    def _permuted(self, deltas: Array) -> Array:
        """The gates' columns, in the wrong order where that is the bug."""
        if not self.bug.startswith("deltas-in-the-order-"):
            return deltas
        blocks = np.split(deltas, self.case.gates, axis=1)
        return np.concatenate([blocks[gate] for gate in self.order], axis=1)

    def _starts_at(self, t: int, once: str, in_each_window: str) -> bool:
        """Whether step t is the first for the bug: of all steps, or of a window."""
        return t in self.starts if self.has(in_each_window) else t == 0 and self.has(once)

    def _add(self, g: dict[str, Array], t: int, step: Any, da: Array, dq: Array, dh: Array, local: Array) -> None:
        """Add one step's part to the gradients of the weights."""
        h_before = step.h_before
        if self.has("h-for-h-before"):
            h_before = self.out[t]
        if self._starts_at(t, "h-0-taken-as-zero-in-dw-hh", "windows-first-h-taken-as-zero-in-dw-hh"):
            h_before = np.zeros_like(h_before)
        if t == 0 and self.has("h-wraps-round-at-t-0"):
            h_before = self.h_n
        reset_before = self.has("reset-before-the-product", "reset-before-in-backward") and self.case.cell == "gru"
        db_hh = da if self.has("db-hn-without-r", "b-hn-outside-the-reset") else dq
        parts = {
            "weight_ih": da.T @ self.x[t],
            "weight_hh": step.dw_hh(dq, h_before) if reset_before else dq.T @ h_before,
            "bias_ih": da.sum(axis=0),
            "bias_hh": db_hh.sum(axis=0),
        }
        if "weight_hr" in g:
            parts["weight_hr"] = step.dw_hr(dh, local)
        for kind in g:
            assigned = self.has("assigned-not-added-over-time") or (
                self.has("weights-assigned-not-added-over-time") and kind.startswith("weight")
            )
            g[kind] = parts[kind] if assigned else g[kind] + parts[kind]

    def _cut(self, t: int, dh: Array, dc: Array) -> tuple[Array, Array]:
        """What goes from step t to the step before it."""
        if t == 0:
            return (
                np.zeros_like(dh) if self.has("dh-0-missing") else dh,
                np.zeros_like(dc) if self.has("dc-0-missing") else dc,
            )
        window = t in self.starts
        everywhere = self.has("nothing-carried", "h-not-carried")
        cut_h = (window and not self.has("detach-missing", "c-detached-but-not-h")) or self.has("h-not-carried-back")
        cut_c = (window and not self.has("detach-missing", "h-detached-but-not-c")) or self.has("c-not-carried-back")
        return np.zeros_like(dh) if cut_h or everywhere else dh, np.zeros_like(dc) if cut_c or everywhere else dc

    def _back(self, dx: Array) -> Array:
        turned = np.zeros_like(dx)
        turned[self.flip, np.arange(dx.shape[1])] = dx
        return np.where(self.real[..., None], turned, 0)

    def _as_given(self, kind: str, gradient: Array) -> Array:
        """A parameter's gradient in the layout and the order in which the parameter came."""
        if kind == "weight_hh" and self.has("w-hh-transposed"):
            gradient = self._transposed(gradient)
        if kind.startswith("bias") and self.layer > 0 and self.has("bias-gradients-zero-above-the-first-layer"):
            return np.zeros_like(gradient)
        if kind != "weight_hr" and self.bug.startswith("gates-in-the-order-"):
            blocks = np.split(gradient, self.case.gates)
            return np.concatenate([blocks[gate] for gate in self.order])
        return gradient
