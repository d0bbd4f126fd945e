"""The few words in which the two libraries differ in the article's loop."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import numpy_rnn
from numpy_rnn.tape import watch_reads
from numpy_rnn.training import NUMPY, Backend
from numpy_rnn.typing import Array
from torch_rnn.backend import TORCH
from torch_rnn.twins import twin

IN_PLACE, SECOND_TIME = "modified in place", "backward a second time"
DETAILS = re.compile(
    r"modified by an inplace operation: \[(?P<kind>[\w.]+) \[(?P<shape>[\d, ]*)\]\]"
    r"(?:, which is output \d+ of (?P<op>[\w:]+),)? is at version (?P<version>\d+); expected version (?P<expected>\d+)"
)


@dataclass(frozen=True)
class Failure:
    """An error of a backward: which of the two, and for IN_PLACE the two versions and the shape of the array."""

    kind: str
    message: str
    version: int | None = None
    expected: int | None = None
    shape: tuple[int, ...] | None = None
    name: str | None = None  # numpy_rnn says which array; PyTorch does not


class Side(ABC):
    """One library, as the experiment speaks to it."""

    backend: Backend

    @abstractmethod
    def model(self, model: numpy_rnn.SequenceModel) -> Any:
        """The library's own model, with the weights of ``model``."""

    @abstractmethod
    def tensor(self, array: Array, requires_grad: bool) -> Any: ...

    @abstractmethod
    def version(self, parameter: Any) -> int: ...

    @abstractmethod
    def live(self, parameter: Any) -> Array:
        """The parameter's own memory, writable, past the version counter."""

    @abstractmethod
    def failure(self, error: RuntimeError) -> Failure:
        """What ``error`` says; raises it again if it is neither of the two."""

    def recording(self) -> AbstractContextManager[Any]:
        """What the whole run happens in."""
        return nullcontext()

    def watch(self, parameters: Mapping[str, Any], reads: list[str]) -> AbstractContextManager[None]:
        """Append to ``reads`` the names of the parameters that a backward inside the block reads, in order."""
        return nullcontext()

    def optimizer(self, update: str, name: str, parameters: list[Any], lr: float) -> Any:
        """The optimizer that ``update`` needs, or None."""
        if not parameters or update not in ("optimizer", "lr 0"):
            return None
        return self.backend.optimizers[name](parameters, lr=0.0 if update == "lr 0" else lr)

    def update(self, update: str, optimizer: Any, parameters: list[Any], lr: float) -> None:
        """Write the parameters in one of the ways of UPDATES."""
        if optimizer is not None:
            optimizer.step()
        elif update == "no_grad":
            with self.backend.no_grad():
                for p in parameters:
                    p.add_(p.grad, alpha=-lr)
        elif update in ("data", "view", "fused"):  # for numpy_rnn these are one thing: a write that is not counted
            for p in parameters:
                self.live(p)[...] -= lr * self.live(p.grad)

    def versions(self, parameters: Mapping[str, Any]) -> dict[str, int]:
        return {name: self.version(p) for name, p in parameters.items()}

    def backward(self, loss: Any, retain_graph: bool) -> Failure | None:
        try:
            loss.backward(retain_graph=retain_graph)
        except RuntimeError as error:
            return self.failure(error)
        return None

    def gradient(self, parameter: Any) -> Array | None:
        return None if parameter.grad is None else self.live(parameter.grad).copy()

    def shares_memory(self, a: Any, b: Any) -> bool:
        return np.shares_memory(self.live(a), self.live(b))


class NumpySide(Side):
    backend = NUMPY

    def model(self, model: numpy_rnn.SequenceModel) -> Any:
        return model

    def tensor(self, array: Array, requires_grad: bool) -> Any:
        return numpy_rnn.Tensor(array, requires_grad)

    def version(self, parameter: Any) -> int:
        version: int = parameter.version
        return version

    def live(self, parameter: Any) -> Array:
        array: Array = parameter.data if isinstance(parameter, numpy_rnn.Tensor) else parameter
        return array

    def failure(self, error: RuntimeError) -> Failure:
        if isinstance(error, numpy_rnn.InPlaceModificationError):
            return Failure(IN_PLACE, str(error), error.version, error.expected, error.shape, error.name)
        if isinstance(error, numpy_rnn.GraphFreedError):
            return Failure(SECOND_TIME, str(error))
        raise error

    @contextmanager
    def watch(self, parameters: Mapping[str, Any], reads: list[str]) -> Iterator[None]:
        names = {id(p._counter): name for name, p in parameters.items()}
        with watch_reads() as saved:
            try:
                yield
            finally:
                reads += [names[id(s._counter)] for s in saved if id(s._counter) in names]


class TorchSide(Side):
    """PyTorch by its native rules: the float32 LSTM not by oneDNN's fused kernel."""

    backend = TORCH
    onednn = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # flags() itself warns, of settings that it restores
            with torch.backends.mkldnn.flags(enabled=self.onednn):
                yield

    def model(self, model: numpy_rnn.SequenceModel) -> Any:
        return twin(model)

    def tensor(self, array: Array, requires_grad: bool) -> Any:
        return torch.from_numpy(array.copy()).requires_grad_(requires_grad)

    def version(self, parameter: Any) -> int:
        return int(parameter._version)

    def live(self, parameter: Any) -> Array:
        array: Array = parameter.detach().numpy()
        return array

    def optimizer(self, update: str, name: str, parameters: list[Any], lr: float) -> Any:
        if update == "fused":  # PyTorch has no fused Adadelta for the CPU
            return torch.optim.SGD(parameters, lr=lr, fused=True) if parameters else None
        return super().optimizer(update, name, parameters, lr)

    def update(self, update: str, optimizer: Any, parameters: list[Any], lr: float) -> None:
        if update == "data":
            for p in parameters:
                p.data -= lr * p.grad
        else:
            super().update(update, optimizer, parameters, lr)

    def failure(self, error: RuntimeError) -> Failure:
        message = str(error)
        if found := DETAILS.search(message):
            shape = tuple(int(n) for n in found["shape"].split(",") if n.strip())
            return Failure(IN_PLACE, message, int(found["version"]), int(found["expected"]), shape)
        if "Trying to backward through the graph a second time" in message:
            return Failure(SECOND_TIME, message)
        raise error


class FusedTorchSide(TorchSide):
    """PyTorch as it comes: a float32 LSTM on the CPU runs in oneDNN, which saves every weight and bias."""

    onednn = True


class TracedTorchSide(TorchSide):
    """PyTorch, with hooks that see every tensor it saves and reads.

    PyTorch checks no versions where hooks are set, so the hooks do it: an independent statement of its rule, and the
    order in which it reads.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._reads: list[str] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        with super().recording(), torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
            yield

    @contextmanager
    def watch(self, parameters: Mapping[str, Any], reads: list[str]) -> Iterator[None]:
        self._names = {p.data_ptr(): name for name, p in parameters.items()}
        self._reads = reads
        yield

    def _pack(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
        return tensor.detach(), tensor._version  # the detached tensor shares memory and version counter

    def _unpack(self, packed: tuple[torch.Tensor, int]) -> torch.Tensor:
        tensor, expected = packed
        name = self._names.get(tensor.data_ptr())
        if name is not None:
            self._reads.append(name)
        if tensor._version != expected:
            raise RuntimeError(
                f"modified by an inplace operation: [hooks {list(tensor.shape)}] is at version {tensor._version}; "
                f"expected version {expected}"
            )
        return tensor


SIDES: dict[str, Side] = {"numpy": NumpySide(), "torch": TorchSide()}
