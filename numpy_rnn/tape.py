"""The tape: what a recorded call saved for its backward, the two errors, and the walk from outputs to leaves."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from numpy_rnn.typing import Array

if TYPE_CHECKING:
    from numpy_rnn.tensor import Tensor

PAGE = "derivations/04-inplace-error.md"

CARRIED = (
    "Usual cause: the state carried from one window to the next still leads back into windows that ran before the "
    "update.\n"
    "Usual cures: carry `state.detach()`, of an LSTM both h and c (the gradient then stops at the window's start), or "
    "run one backward over all windows before the one update."
)
ADDED_UP = (
    "Usual cause: an output or a loss from before the update is used in a backward after it, as where losses are "
    "added up over windows; detaching the state does not help then.\n"
    "Usual cures: one backward for each window's own loss, with `loss.item()` for the printed sum, or one backward of "
    "the whole sum before the one update. If the state was carried without `detach()`: carry `state.detach()`."
)
WRITTEN = (
    "Usual cause: an array was written to after a forward had used it, as in `h[:, done] = 0`.\n"
    "Usual cures: write into a copy before the next forward, `h = h.detach().clone()` (the gradient stops there), or "
    "run the backward first."
)


class InPlaceModificationError(RuntimeError):
    """An array that this backward needs was written to after it was saved.

    Attributes: ``name`` of the array, its ``shape``, the ``version`` found and the one ``expected``, ``saved_by`` (the
    call that saved it) and ``written_by`` (the last write that was counted).
    """

    def __init__(self, saved: Saved, version: int, written_by: str) -> None:
        self.name, self.saved_by, self.written_by = saved.name, str(saved.saved_by), written_by
        self.shape, self.version, self.expected = saved.shape, version, saved.version
        super().__init__(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"{self.name} {list(self.shape)} is at version {version}; expected version {self.expected} instead.\n"
            f"{self.saved_by} saved it at version {self.expected}; {written_by} has written into it since, so this "
            "backward cannot know the values that the forward used.\n"
            f"{saved.advice}\nWhy, and what each cure does to the gradient: {PAGE}"
        )


class GraphFreedError(RuntimeError):
    """A backward needs arrays that an earlier backward over the same graph has freed."""

    def __init__(self, saved: Saved) -> None:
        self.name, self.saved_by = saved.name, str(saved.saved_by)
        super().__init__(
            "Trying to backward through the graph a second time: this backward needs "
            f"{self.name} as {self.saved_by} saved it, and an earlier backward has freed it.\n"
            "Usual cause: the state carried from one window to the next leads back into a window whose backward has "
            "run.\n"
            "Usual cure: carry `state.detach()`, of an LSTM both h and c. `retain_graph=True` on the first backward "
            "keeps the arrays, but a parameter update in between then fails as an in-place modification.\n"
            f"Why: {PAGE}"
        )


class VersionCounter:
    """How often one piece of memory was written to; shared by all Tensors over it."""

    value = 0
    written_by = "nothing"


class Saved:
    """Something that a backward may need, and for memory that others can write to, the version at which it was saved.

    ``saved_by`` is the call that saved it, as a text or as something that ``str`` turns into one if an error needs it.
    ``read()`` returns it, and raises ``GraphFreedError`` if it was freed or ``InPlaceModificationError`` if its owner
    was written to since. The check happens at the moment of reading, so what is never read is never checked.
    """

    __slots__ = ("_array", "_counter", "name", "saved_by", "version")

    def __init__(self, array: Any, owner: Tensor | None, name: str, saved_by: object) -> None:
        self._array, self.name, self.saved_by = array, name, saved_by
        self._counter = owner._counter if owner is not None else None
        self.version = self._counter.value if self._counter is not None else 0  # (4.2)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array, until it is freed."""
        return self._array.shape if isinstance(self._array, np.ndarray) else ()

    @property
    def advice(self) -> str:
        """The usual cause of a write into this kind of array, and the usual cures."""
        if not self.name.startswith(("weight", "bias")):
            return WRITTEN
        return CARRIED if self.name.startswith(("weight_hh", "weight_ih", "weight_hr")) else ADDED_UP

    def read(self) -> Any:
        if mode.reads is not None:
            mode.reads.append(self)
        if self._array is None:
            raise GraphFreedError(self)
        if self._counter is not None and self._counter.value != self.version:  # (4.3)
            raise InPlaceModificationError(self, self._counter.value, self._counter.written_by)
        return self._array

    def free(self) -> None:
        self._array = None


Backward = Callable[..., Sequence[Array | None]]


class Node:
    """One recorded call: where its gradients go, what it saved, and its hand-written backward.

    ``inputs`` has for each input that needs a gradient the leaf itself, or for a computed Tensor its edge, so that the
    graph keeps no array alive.
    ``backward`` takes the upstream gradient of each output (None where none arrived) and returns the gradient of each
    input (None where none is needed). Every array it returns must be fresh or one it was given: the tape adds into it.
    """

    __slots__ = ("backward", "inputs", "name", "order", "outputs", "saved")
    _orders = itertools.count()

    def __init__(
        self,
        name: str,
        inputs: Sequence[Tensor | None],
        outputs: int,
        backward: Backward,
        saved: Sequence[Saved],
    ) -> None:
        self.name, self.outputs, self.backward, self.saved = name, outputs, backward, saved
        self.inputs = [None if t is None or not t._requires_grad else t._edge or t for t in inputs]
        self.order = next(Node._orders)  # a node is always younger than those that feed it

    def __repr__(self) -> str:
        return f"<{self.name}>"


Edge = tuple[Node, int]  # a node and which of its outputs; it stands for a Tensor that a call computed


class Mode(threading.local):
    recording = True
    reads: list[Saved] | None = None


mode = Mode()


@contextmanager
def watch_reads() -> Iterator[list[Saved]]:
    """Collect what the backward passes inside the block read, in order: just these arrays are checked.

    >>> from numpy_rnn import RNN
    >>> output, _ = RNN(1, 1, rng=0)(np.ones((2, 1, 1), np.float32))
    >>> with watch_reads() as reads:
    ...     output.backward(np.ones((2, 1, 1), np.float32))
    >>> [saved.name for saved in reads]
    ['the states of l0', 'weight_hh_l0', 'hx', 'input']
    """
    before, reads = mode.reads, list[Saved]()
    mode.reads = reads
    try:
        yield reads
    finally:
        mode.reads = before


@contextmanager
def no_grad() -> Iterator[None]:
    """Record nothing inside the block; usable as a decorator too.

    >>> from numpy_rnn import Tensor
    >>> x = Tensor(np.ones(2), requires_grad=True)
    >>> with no_grad():
    ...     y = x + x
    >>> y.requires_grad
    False
    """
    with _recording(False):
        yield


@contextmanager
def enable_grad() -> Iterator[None]:
    """Record inside the block, also where it stands inside ``no_grad``."""
    with _recording(True):
        yield


@contextmanager
def _recording(value: bool) -> Iterator[None]:
    before, mode.recording = mode.recording, value
    try:
        yield
    finally:
        mode.recording = before


class Walk:
    """One backward over the graph. Gradients are gathered here and reach ``.grad`` only in ``finish``."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Node]] = []  # a heap, youngest node first
        self.upstream: dict[Node, list[Array | None]] = {}
        self.leaves: dict[Tensor, Array] = {}

    def give(self, to: Tensor | Edge, gradient: Array) -> None:
        """Add ``gradient``, which nobody else holds, to what came there before."""
        if isinstance(to, tuple):
            node, output = to
            slots = self.upstream.get(node)
            if slots is None:
                slots = self.upstream[node] = [None] * node.outputs
                heapq.heappush(self.waiting, (-node.order, node))
            before = slots[output]
            slots[output] = gradient if before is None else np.add(before, gradient, out=before)
        else:
            before = self.leaves.get(to)
            self.leaves[to] = gradient if before is None else np.add(before, gradient, out=before)

    def run(self) -> None:
        """Call every node that a gradient reaches. A node is younger than its inputs: its gradient is then complete."""
        while self.waiting:
            _, node = heapq.heappop(self.waiting)
            d_inputs = node.backward(*self.upstream[node])
            self.upstream[node] = []
            for to, gradient in zip(node.inputs, d_inputs, strict=True):
                if to is not None and gradient is not None:
                    self.give(to, gradient)

    def finish(self, retain_graph: bool) -> None:
        for leaf in self.leaves:
            if leaf._requires_grad and leaf.grad is not None:
                leaf._check_grad()
        for leaf, gradient in self.leaves.items():
            if leaf._requires_grad:  # frozen since: none is left
                leaf._accumulate(gradient)
        if not retain_graph:
            for node in self.upstream:
                for saved in node.saved:
                    saved.free()
