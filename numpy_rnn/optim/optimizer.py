"""What every optimizer shares: parameter groups, their state, and how both are saved."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from numpy_rnn.tensor import Tensor
from numpy_rnn.typing import Array

State = dict[str, Any]
Group = dict[str, Any]


class Optimizer:
    """Base of all optimizers; a subclass gives its defaults and ``_delta``, what one step adds to one parameter.

    ``params`` is an iterable of Tensors, or of dicts ``{"params": [...], "lr": ...}`` whose other entries override the
    optimizer's own. A parameter without a gradient is skipped. A step writes into ``parameter.data`` in place and
    raises its version by one.
    """

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params must be an iterable of Tensors or dicts, got one Tensor")
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}
        given: list[Any] = list(params)
        if not given:
            raise ValueError("params must hold at least one Tensor, got none")
        for group in given if isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, group: Group) -> None:
        """Add parameters with settings of their own; raises ``ValueError`` for an unknown setting or a repeated one."""
        tensors = group["params"]
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        known = {tensor for other in self.param_groups for tensor in other["params"]}
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"params must hold Tensors, got {type(tensor).__name__}")
            if not tensor.is_leaf:
                raise ValueError("params must hold leaves of the graph, got a computed Tensor")
            if tensor in known:
                raise ValueError("params must hold each parameter once, got one twice")
            known.add(tensor)
        if unknown := set(group) - set(self.defaults) - {"params"}:
            raise ValueError(f"unknown settings of {type(self).__name__}: {', '.join(sorted(unknown))}")
        settings = {**self.defaults, **group}
        self._check(settings)
        self.param_groups.append({**settings, "params": tensors})

    def _check(self, settings: Group) -> None:
        """Raise ``ValueError`` for a setting out of range."""
        for name in ("lr", "weight_decay"):
            check_at_least_zero(name, settings[name])

    def _delta(self, gradient: Array, state: State, group: Group) -> Array:
        """Return what to add to the parameter, and update ``state``."""
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Set every ``.grad`` to None."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient.

        Raises ``ValueError`` if a gradient has not its parameter's shape and dtype; nothing is updated then.
        """
        updates = [(p, p.grad, group) for group in self.param_groups for p in group["params"] if p.grad is not None]
        for parameter, gradient, _ in updates:
            if gradient.shape != parameter.shape or gradient.dtype != parameter.dtype:
                raise ValueError(
                    f"grad must be {parameter.shape} {parameter.dtype} like its parameter, "
                    f"got {gradient.shape} {gradient.dtype}"
                )
        for parameter, gradient, group in updates:
            g = -gradient.data if group["maximize"] else gradient.data
            if group["weight_decay"] != 0:
                g = g + group["weight_decay"] * parameter.data
            parameter.data += self._delta(g, self.state.setdefault(parameter, {}), group)
            parameter._bump_version(f"{type(self).__name__}.step()")

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the state and the settings, in the layout of PyTorch: parameters are numbered."""
        tensors = [tensor for group in self.param_groups for tensor in group["params"]]
        numbers = {tensor: i for i, tensor in enumerate(tensors)}
        return {
            "state": {numbers[tensor]: copy.deepcopy(state) for tensor, state in self.state.items()},
            "param_groups": [{**group, "params": [numbers[t] for t in group["params"]]} for group in self.param_groups],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a ``state_dict()`` of the same kind of optimizer over the same parameters, in order.

        Raises ``ValueError`` if it does not fit; nothing is loaded then.
        """
        groups, name = state_dict["param_groups"], type(self).__name__
        sizes = [len(group["params"]) for group in self.param_groups]
        if (got := [len(group["params"]) for group in groups]) != sizes:
            raise ValueError(f"state_dict must have parameter groups of sizes {sizes}, got {got}")
        tensors = [tensor for group in self.param_groups for tensor in group["params"]]
        for group in groups:
            if set(group) != {*self.defaults, "params"}:
                raise ValueError(f"state_dict must have the settings of {name}: {', '.join(self.defaults)}")
            self._check(group)
        for number, state in state_dict["state"].items():
            if number not in range(len(tensors)):
                raise ValueError(f"state_dict must number its parameters 0 to {len(tensors) - 1}, got {number!r}")
            for key, value in state.items():
                if np.ndim(value) and np.shape(value) != tensors[number].shape:
                    expected = tensors[number].shape
                    raise ValueError(f"{key} of parameter {number} must be {expected}, got {np.shape(value)}")
        self.state = {tensors[number]: copy.deepcopy(state) for number, state in state_dict["state"].items()}
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            mine.update({key: value for key, value in theirs.items() if key != "params"})


def check_at_least_zero(name: str, value: float) -> None:
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")
