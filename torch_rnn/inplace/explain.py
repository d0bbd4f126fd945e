"""What PyTorch's two errors about a graph mean for a given module: which array was modified, why, and the cures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from numpy_rnn.tape import PAGE
from torch_rnn.inplace.sides import IN_PLACE, SECOND_TIME

OTHER = "other"
COLUMNS = 100
LISTED = 8  # at most so many candidates are printed
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"
AGAIN = "Trying to backward through the graph a second time"
DETAILS = re.compile(
    r"modified by an inplace operation: \[(?P<kind>[\w.]+) \[(?P<shape>[\d, ]*)\]\]"
    r"(?:, which is output \d+ of (?P<op>[\w:]+),)? is at version (?P<version>\d+); expected version (?P<expected>\d+)"
)
DTYPE = re.compile(
    r"(BFloat16|Half|Float|Double|ComplexHalf|ComplexFloat|ComplexDouble|Byte|Char|Short|Int|Long|Bool)(?:Tensor|Type)$"
)
VIEWS = set(
    "AsStrided T NumpyT Transpose Permute View UnsafeView Reshape ReshapeAlias Unsqueeze Squeeze Expand Select Slice "
    "Split SplitWithSizes Unbind Narrow Alias Detach".split()
)


@dataclass(frozen=True)
class Candidate:
    """An array that fits the message: its name, own shape and present version.

    ``transposed``: the message shows its transpose. ``reason`` says why it fits, ``doubts`` what speaks against it.
    """

    name: str
    shape: tuple[int, ...]
    version: int
    transposed: bool
    reason: str
    doubts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {list(self.shape)}: {self.reason}" + "".join(f"; but {doubt}" for doubt in self.doubts)


@dataclass(frozen=True)
class Explanation:
    """What an error means; ``str()`` gives the text.

    ``kind`` is "modified in place", "backward a second time" or "other". For the first, as far as the message says
    them: the ``version`` found, the one ``expected``, the ``shape``; the ``candidates``, best first; and ``certain``,
    whether exactly one of them fits without a doubt.
    """

    kind: str
    text: str
    version: int | None = None
    expected: int | None = None
    shape: tuple[int, ...] | None = None
    candidates: tuple[Candidate, ...] = ()
    certain: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Message:
    kind: str
    shape: tuple[int, ...]
    op: str  # what made the array, "" for a leaf or an array outside the graph
    version: int
    expected: int

    @property
    def dtype(self) -> str:
        found = DTYPE.search(self.kind)
        return found[1] if found else self.kind

    @property
    def device(self) -> str:
        """From torch.cuda.FloatTensor, torch.FloatTensor or CPUBFloat16Type."""
        return DTYPE.sub("", self.kind).removeprefix("torch").strip(".").lower() or "cpu"


@dataclass(frozen=True)
class _Array:
    name: str
    tensor: torch.Tensor
    owner: nn.Module | None  # None for a state

    @property
    def is_torchs(self) -> bool:
        """Whether it was made by a layer of torch.nn, whose uses of it are known."""
        home = type(self.owner).__module__
        return home.startswith("torch.nn.modules.") and not home.endswith(".container")

    @property
    def sort(self) -> str:
        if self.owner is None:
            return "state"
        return "parameter" if isinstance(self.tensor, nn.Parameter) else "buffer"


_Fit = tuple[Candidate, _Array]


def explain(error: Exception | str, module: nn.Module, state: Any = None) -> Explanation:
    """Say what PyTorch's "modified by an inplace operation" or "backward a second time" is about.

    >>> import torch
    >>> rnn, x, h = torch.nn.RNN(1, 2), torch.ones(3, 1, 1), None
    >>> optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
    >>> try:
    ...     for i in range(5):
    ...         output, h = rnn(x, h)
    ...         output.sum().backward(retain_graph=True)
    ...         optimizer.step()
    ... except RuntimeError as error:
    ...     explanation = explain(error, rnn, h)
    >>> explanation.certain, explanation.candidates[0].name, explanation.expected, explanation.version
    (True, 'weight_hh_l0', 1, 2)

    ``print(explanation)`` says the cause and the cures. Call it before anything else writes to the parameters: what
    fits is told by shape, dtype and present version.

    Args:
        error: what ``backward()`` raised, or its message.
        module: what was trained; ``nn.ModuleList([rnn, head])`` for several modules.
        state: what is carried from window to window, if anything: a tensor, or a tuple or list of them.

    Raises:
        TypeError: if an argument is something else.
    """
    if not isinstance(error, Exception | str):
        raise TypeError(f"error must be an exception or its message (str), got {type(error).__name__}")
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    states = list(_states("state", state))
    message = " ".join(str(error).split())
    recurrent = bool(states) or any(isinstance(m, nn.RNNBase | nn.RNNCellBase) for m in module.modules())
    if found := DETAILS.search(message):
        shape = tuple(int(n) for n in found["shape"].split(",") if n.strip())
        op = re.sub(r"Backward\d*$", "", (found["op"] or "").rpartition(":")[2])
        known = _Message(found["kind"], shape, op, int(found["version"]), int(found["expected"]))
        return _modified(known, [*_held(module), *states], recurrent)
    if "modified by an inplace operation" in message:
        return Explanation(IN_PLACE, _text(f"{MODIFIED}.", NO_DETAILS, *_cause_elsewhere(None, states), SEE))
    if AGAIN in message:
        return Explanation(SECOND_TIME, _text(f"{AGAIN}.", *_second_time(recurrent, states), SEE))
    return Explanation(OTHER, _text(NEITHER, *([VIEW_WRITTEN] if "is a view and" in message else [])))


def _states(name: str, state: Any) -> Iterator[_Array]:
    if isinstance(state, torch.Tensor):
        yield _Array(name, state, None)
    elif isinstance(state, tuple | list):
        for i, part in enumerate(state):
            yield from _states(f"{name}[{i}]", part)
    elif state is not None:
        raise TypeError(f"{name} must be a tensor, or a tuple or list of tensors, got {type(state).__name__}")


def _held(module: nn.Module) -> Iterator[_Array]:
    for prefix, owner in module.named_modules():
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and not nn.parameter.is_lazy(tensor):
                yield _Array(f"{prefix}.{name}".lstrip("."), tensor, owner)


# What fits ------------------------------------------------------------------------------------------------------------


def _fits(message: _Message, arrays: Iterable[_Array]) -> list[_Fit]:
    """Every array that fits, the least doubtful first; a tied parameter once, under all its names."""
    by_tensor: dict[int, _Fit] = {}
    for array in arrays:
        if array.tensor.is_inference():  # has no version
            continue
        for candidate in _ways(message, array):
            before = by_tensor.get(id(array.tensor))
            if before is None:
                by_tensor[id(array.tensor)] = (candidate, array)
            elif len(candidate.doubts) < len(before[0].doubts):
                by_tensor[id(array.tensor)] = (candidate, array)
    return sorted(by_tensor.values(), key=lambda fit: len(fit[0].doubts))
