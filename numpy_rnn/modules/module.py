"""What every module shares: its parameters by name, its state dict, its mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from numpy_rnn.tape import no_grad
from numpy_rnn.tensor import FLOATS, Parameter, Tensor, as_tensor
from numpy_rnn.typing import Array

Seed: TypeAlias = "int | np.random.Generator | None"  # in quotes: numpy.random is not loaded by an import


class Module:
    """Base of all modules. Attributes that are Parameters or Modules are found by their names, in order of assignment.

    >>> class Shift(Module):
    ...     def __init__(self):
    ...         self.offset = Parameter(np.zeros(2))
    ...     def forward(self, input):
    ...         return input + self.offset
    >>> shift = Shift()
    >>> [name for name, _ in shift.named_parameters()], shift(np.ones(2)).shape
    (['offset'], (2,))
    """

    training = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What calling the module does; each module defines its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def children(self) -> Iterator[tuple[str, Module]]:
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def modules(self) -> Iterator[Module]:
        """Yield this module and every one inside."""
        yield self
        for _, child in self.children():
            yield from child.modules()

    def _entries(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Every name of every Parameter; a shared one comes under each of its names."""
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield prefix + name, value
            elif isinstance(value, Module):
                yield from value._entries(f"{prefix}{name}.")

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield ``(name, parameter)``, a shared parameter once."""
        seen = set()
        for name, parameter in self._entries():
            if parameter not in seen:
                seen.add(parameter)
                yield name, parameter

    def parameters(self) -> Iterator[Parameter]:
        """Yield every parameter once."""
        for _, parameter in self.named_parameters():
            yield parameter

    def zero_grad(self) -> None:
        """Set every ``.grad`` to None."""
        for parameter in self.parameters():
            parameter.grad = None

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Freeze (False) or thaw (True) every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def train(self, mode: bool = True) -> Module:
        """Enter training mode, or with False evaluation mode, here and in every module inside."""
        self.training = mode
        for _, child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Module:
        """Enter evaluation mode."""
        return self.train(False)

    def state_dict(self) -> dict[str, Array]:
        """Return a *copy* of every parameter's array, by name. (PyTorch's shares memory with the module.)"""
        return {name: parameter.data.copy() for name, parameter in self._entries()}

    def load_state_dict(self, state_dict: Mapping[str, Array | Tensor]) -> None:
        """Copy arrays of the same names and shapes into the parameters; raises their versions by one.

        As in PyTorch a different float dtype is cast to the parameter's. Raises ``ValueError`` that lists every missing
        and unexpected key and every wrong shape or dtype; nothing is loaded then.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"state_dict must be a mapping from names to arrays, got {type(state_dict).__name__}")
        entries = dict(self._entries())
        arrays = {name: np.asarray(value) for name, value in state_dict.items()}
        problems = [f"missing: {name}" for name in entries if name not in arrays]
        problems += [f"unexpected: {name}" for name in arrays if name not in entries]
        for name, parameter in entries.items():
            if name not in arrays:
                continue
            if arrays[name].shape != parameter.shape:
                problems.append(f"shape of {name}: expected {parameter.shape}, got {arrays[name].shape}")
            elif not parameter.data.flags.writeable:
                problems.append(f"{name} is over a read-only array here")
            elif arrays[name].dtype.kind not in "fiu":
                problems.append(f"dtype of {name}: expected real numbers, got {arrays[name].dtype}")
        if problems:
            raise ValueError(f"state_dict does not fit {self!r}, nothing was loaded:\n  " + "\n  ".join(problems))
        with no_grad():
            for name, parameter in entries.items():
                parameter.copy_(arrays[name])

    def _describe(self) -> str:
        """The arguments that ``repr`` shows."""
        return ", ".join(f"{name}={child!r}" for name, child in self.children())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe()})"


def check_size(name: str, value: int) -> int:
    """Return ``value`` if it is a positive int, else raise an error that names it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def check_probability(name: str, value: float) -> float:
    """Return ``value`` if it is a number from 0 to 1, else raise an error that names it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number in [0, 1], got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number in [0, 1], got {value!r}")
    return float(value)


def check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return ``dtype`` if modules can compute in it."""
    try:
        checked = None if dtype is None else np.dtype(dtype)  # np.dtype(None) would be float64
    except TypeError:
        checked = None
    if checked is None or checked not in FLOATS:
        raise TypeError(f"dtype must be float32 or float64, got {dtype!r}")
    return checked


def check_input(name: str, tensor: Tensor, dtype: np.dtype[Any]) -> None:
    """Raise unless ``tensor`` has the dtype of the module's weights."""
    if tensor.data.dtype != dtype:
        raise TypeError(f"{name} must be {dtype} like the weights, got {tensor.dtype}")


def check_states(
    hx: Any, names: Sequence[str], expected: Sequence[tuple[str, tuple[int, ...]]], dtype: np.dtype[Any]
) -> list[Tensor]:
    """Return the Tensors of a state of one part or of as many as ``names``.

    ``expected`` has the letters and the shape of each part, for the error.
    """
    single = len(names) == 1
    if not single and not (isinstance(hx, tuple | list) and len(hx) == len(names)):
        raise TypeError(f"hx must be a pair ({', '.join(names)}), got {type(hx).__name__}")
    states = []
    for name, value, (letters, shape) in zip(names, [hx] if single else hx, expected, strict=False):
        label = "hx" if single else f"{name} of hx"
        state = as_tensor(label, value)
        check_input(label, state, dtype)
        if state.shape != shape:
            raise ValueError(f"{label} must be {letters} = {shape}, got {state.shape}")
        states.append(state)
    return states


def uniform(rng: np.random.Generator, bound: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Parameter:
    """Return a Parameter drawn from U(-bound, bound); the same numbers for a seed in either dtype, up to rounding."""
    return Parameter(rng.uniform(-bound, bound, shape).astype(dtype))


def draw_mask(rng: np.random.Generator, p: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros with probability ``p`` and 1/(1-p) else; nothing is drawn for p = 1."""
    if p == 1:
        return np.zeros(shape, dtype)
    kept = rng.random(shape) >= p
    return np.asarray(kept / (1 - p), dtype)
