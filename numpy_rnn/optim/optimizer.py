"""What every optimizer shares: parameter groups, their state, and how both are saved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from numpy_rnn.optim.blocks import blocks
from numpy_rnn.tape import enable_grad
from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array

State = dict[str, Any]
Group = dict[str, Any]

# In which PyTorch keeps the single numbers of a state (NAdam's mu_product, ASGD's eta and mu), whatever the dtype of
# the parameters, unless its default dtype is float64. Their rounding is felt: a relative 6e-8 in a step.
SCALAR: Any = np.float32

# A group has these in PyTorch only; they choose an implementation and change no result beyond rounding.
IMPLEMENTATION = {"foreach", "fused", "capturable", "differentiable", "param_names"}


class Optimizer:
    """Base of all optimizers; a subclass gives its defaults, ``_start`` and ``_update``.

    ``params`` is an iterable of Tensors, or of dicts ``{"params": [...], "lr": ...}`` whose other entries override the
    optimizer's own. A parameter without a gradient is skipped. A step writes into ``parameter.data`` in place and
    raises its version as often as PyTorch's default implementation writes: ``_writes`` times, and once more for a
    decoupled weight decay. Overflow and invalid values give inf and nan, with NumPy's warnings.
    """

    _writes = 1

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params must be an iterable of Tensors or dicts, got one Tensor")
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}
        self._steps = 0  # so that a schedule can tell whether it comes too early
        if not isinstance(params, Iterable):
            raise TypeError(f"params must be an iterable of Tensors or dicts, got {type(params).__name__}")
        given: list[Any] = list(params)
        if not given:
            raise ValueError("params must hold at least one Tensor, got none")
        for group in given if isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, group: Group) -> None:
        """Add parameters with settings of their own; raises ``ValueError`` for an unknown setting or a repeated one."""
        if not isinstance(group, Mapping) or "params" not in group:
            raise TypeError(f"a parameter group must be a dict with params, got {group!r}")
        tensors = group["params"]
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        tensors = [t[1] if isinstance(t, tuple) and len(t) == 2 else t for t in tensors]  # named_parameters() will do
        known = {tensor for other in self.param_groups for tensor in other["params"]}
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"params must hold Tensors, got {type(tensor).__name__}")
            if not tensor.is_leaf:
                raise ValueError("params must hold leaves of the graph, got a computed Tensor")
            if tensor in known:
                raise ValueError("params must hold each parameter once, got one twice")
            known.add(tensor)
        if unknown := set(group) - set(self.defaults) - {"params", "initial_lr"}:
            raise ValueError(f"unknown settings of {type(self).__name__}: {', '.join(sorted(unknown))}")
        settings = {**self.defaults, **group}
        settings = {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}  # would widen float32
        self._check(settings)
        self.param_groups.append({**settings, "params": tensors})

    def _check(self, settings: Group) -> None:
        """Raise ``ValueError`` for a setting out of range."""
        for name in ("lr", "weight_decay"):
            check_at_least_zero(name, settings[name])

    def _start(self, p: Array, group: Group) -> State:
        """Return the state of a parameter before its first step."""
        return {}

    def _update(self, parameter: Array, gradient: Array, state: State, group: Group) -> None:
        """Do one step on one parameter: write into it and into ``state`` in place; the gradient is only read.

        What follows for all entries alike is computed once, then the equations run over the blocks of ``_blocks``.
        """
        raise NotImplementedError

    def _blocks(
        self, group: Group, parameter: Array, gradient: Array, *state: Array | None, scratch: int = 1
    ) -> Iterator[tuple[Any, ...]]:
        """Yield blocks of parameter, gradient, ``state`` and scratch (one array or more), as ``blocks`` does.

        ``maximize`` and the weight decay have been done on them. Where that changes the gradient, the second of a block
        is scratch too: the gradient itself is only read.
        """
        decay, decoupled, maximize = group["weight_decay"], group.get("decoupled_weight_decay"), group["maximize"]
        changed = maximize or (decay != 0 and not decoupled)
        for p, g, *others in blocks(parameter, gradient, *state, scratch=scratch + changed):
            changed_g = others.pop() if changed else g
            if maximize:
                g = np.negative(g, changed_g)
            if decay != 0 and decoupled:
                p *= 1 - group["lr"] * decay  # (9.29)
            elif decay != 0:
                g = np.add(g, np.multiply(decay, p, others[-1]), changed_g)  # (9.28)
            yield p, g, *others

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set every ``.grad`` to None, or fill it with zeros in place."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what ``closure()``, which is called first, returned.

        Raises ``ValueError`` if a gradient has not its parameter's shape and dtype; nothing is updated then.
        """
        if closure is None:
            loss = None
        else:
            with enable_grad():
                loss = closure()
        updates = [(p, p.grad, group) for group in self.param_groups for p in group["params"] if p.grad is not None]
        for parameter, _, group in updates:
            parameter._check_grad()
            if not parameter.data.flags.writeable:
                raise ValueError("params must hold writable Tensors, got one over a read-only array")
            self._check(group)
        for parameter, gradient, group in updates:
            if parameter not in self.state:
                self.state[parameter] = self._start(parameter.data, group)
            self._update(parameter.data, gradient.data, self.state[parameter], group)
            decayed = group["weight_decay"] != 0 and group.get("decoupled_weight_decay", False)
            for _ in range(self._writes + decayed):
                parameter._bump_version(f"{type(self).__name__}.step()")
        self._steps += 1
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the state and the settings, in the layout of PyTorch: parameters are numbered."""
        tensors = [tensor for group in self.param_groups for tensor in group["params"]]
        numbers = {tensor: i for i, tensor in enumerate(tensors)}
        return {
            "state": {numbers[tensor]: copy.deepcopy(state) for tensor, state in self.state.items() if state},
            "param_groups": [{**group, "params": [numbers[t] for t in group["params"]]} for group in self.param_groups],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a ``state_dict()`` of the same kind of optimizer over the same parameters, in order.

        PyTorch's own is taken too: its tensors become arrays, and what chooses an implementation (foreach, fused,
        capturable, differentiable) is left out.

        Raises ``ValueError`` if it does not fit; nothing is loaded then.
        """
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            raise ValueError("state_dict must be a mapping with the keys state and param_groups")
        groups, name = state_dict["param_groups"], type(self).__name__
        sizes = [len(group["params"]) for group in self.param_groups]
        if (got := [len(group["params"]) for group in groups]) != sizes:
            raise ValueError(f"state_dict must have parameter groups of sizes {sizes}, got {got}")
        groups = [{key: group[key] for key in group if key not in IMPLEMENTATION} for group in groups]
        for group in groups:
            if set(group) - {"initial_lr"} != {*self.defaults, "params"}:
                raise ValueError(f"state_dict must have the settings of {name}: {', '.join(self.defaults)}")
            self._check(group)
        owners = [
            (tensor, theirs)
            for mine, theirs in zip(self.param_groups, groups, strict=True)
            for tensor in mine["params"]
        ]
        loaded = {}
        for number, state in state_dict["state"].items():
            if isinstance(number, bool) or number not in range(len(owners)):
                raise ValueError(f"state_dict must number its parameters 0 to {len(owners) - 1}, got {number!r}")
            tensor, group = owners[number]
            start = self._start(tensor.data, group)
            if not isinstance(state, Mapping):
                raise ValueError(f"state of parameter {number} must be a mapping, got {type(state).__name__}")
            if missing := set(start) - set(state):
                raise ValueError(f"state of parameter {number} must have {', '.join(sorted(missing))}")
            loaded[tensor] = {
                key: _like(start.get(key, tensor.data), value, f"{key} of parameter {number}")
                for key, value in state.items()
                if value is not None  # PyTorch writes None for a momentum_buffer that does not exist yet
            }
        self.state = loaded
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            mine.update({key: value for key, value in theirs.items() if key != "params"})


def _like(example: Any, value: Any, name: str) -> Any:
    """Return a copy of ``value`` of the kind of ``example``: an array of its dtype, or a number of its type."""
    if np.asarray(value).dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers, got {type(value).__name__}")
    if np.shape(value) != np.shape(example):
        raise ValueError(f"{name} must be {np.shape(example)}, got {np.shape(value)}")
    if isinstance(example, np.ndarray):
        return np.asarray(value).astype(example.dtype)
    return type(example)(float(value))


def check_at_least_zero(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")
