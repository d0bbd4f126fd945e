"""A Tensor: an array that can take part in a graph of recorded calls.

This is no general automatic differentiation. A node of the graph is one call of a module or of a loss, or one of the
helpers ``+``, indexing and ``clone``; each brings its own hand-written backward. The tape exists so that ``detach()``,
``retain_graph``, "backward a second time" and "modified by an inplace operation" are real here, with PyTorch's rules.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from numpy_rnn.tape import Backward, Edge, Node, Saved, VersionCounter, Walk, mode
from numpy_rnn.typing import Array

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def record(
    name: str,
    arrays: Sequence[Array],
    inputs: Sequence[Tensor | None],
    backward: Backward,
    saved: Sequence[Saved] = (),
) -> tuple[Tensor, ...]:
    """Wrap the ``arrays`` that a call computed from ``inputs``; enter the call in the graph if a gradient is needed."""
    outputs = tuple([_wrapped(array) for array in arrays])
    if is_recording(inputs):
        node = Node(name, inputs, len(arrays), backward, saved)
        for i, output in enumerate(outputs):
            output._edge, output._requires_grad = (node, i), True
    return outputs


def is_recording(inputs: Sequence[Tensor | None]) -> bool:
    """Whether a call on these inputs enters the graph."""
    if mode.recording:
        for t in inputs:
            if t is not None and t._requires_grad:
                return True
    return False


class Tensor:
    """An array that can take part in a graph.

    >>> x = Tensor(np.array([1.0, 2.0]), requires_grad=True)
    >>> y = x + x
    >>> y.backward(np.array([1.0, 10.0]))
    >>> x.grad
    Tensor([ 2., 20.])

    ``data`` is the array itself, not a copy (a list or number becomes a new array). Gradients need float32 or float64.
    A raw write into ``data`` is not counted by the version counter, as with PyTorch's ``.data``: a graph that saved the
    array then gives silently wrong gradients. Writes through the library (``copy_``, ``add_``, ``zero_``, item
    assignment, an optimizer's step, ``load_state_dict``) are counted.

    Only ``+`` and indexing are recorded; for the mathematics there are modules and losses.
    """

    __slots__ = ("_counter", "_edge", "_requires_grad", "data", "grad")
    __array_ufunc__ = None  # array + Tensor goes to Tensor.__radd__; other ufuncs refuse instead of losing the graph

    def __init__(self, data: ArrayLike, requires_grad: bool = False) -> None:
        if isinstance(data, Tensor):
            raise TypeError("data must be an array, got a Tensor: use tensor.detach() or tensor.clone()")
        array = np.asarray(data)
        if array.dtype not in FLOATS and array.dtype.kind not in "biu":
            raise TypeError(f"data must be float32, float64 or integers, got {array.dtype}")
        self._begin(array)
        self.requires_grad_(requires_grad)

    def _begin(self, array: Array) -> None:
        self.data = array
        self.grad: Tensor | None = None
        self._edge: Edge | None = None
        self._requires_grad = False
        self._counter = VersionCounter()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def version(self) -> int:
        """How often the memory was written to through the library since the Tensor was made."""
        return self._counter.value

    @property
    def grad_fn(self) -> Node | None:
        """The recorded call that computed the Tensor; None for a leaf."""
        return None if self._edge is None else self._edge[0]

    @property
    def is_leaf(self) -> bool:
        """True unless the Tensor was computed by a recorded call."""
        return self._edge is None

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Say whether ``backward`` shall leave a gradient in ``.grad``; only a leaf can be told."""
        if not self.is_leaf:
            if requires_grad:
                return self
            raise RuntimeError("requires_grad can only be set on a leaf; use detach() to get one over the same memory")
        if requires_grad and self.dtype not in FLOATS:
            raise TypeError(f"only float32 and float64 Tensors can require gradients, got {self.dtype}")
        self._requires_grad = bool(requires_grad)
        return self

    def detach(self) -> Tensor:
        """Return a leaf over the *same* memory and version counter that no gradient flows through (3.2)."""
        return self._share(self.data)

    def _share(self, view: Array) -> Tensor:
        tensor = _wrapped(view)
        tensor._counter = self._counter
        return tensor

    def clone(self) -> Tensor:
        """Return a copy in memory of its own. The graph goes on through it: the gradient passes unchanged."""
        return record("clone", [self.data.copy()], [self], lambda d_output: [d_output])[0]

    def item(self) -> float:
        """Return the only element as a Python number."""
        if self.data.size != 1:
            raise ValueError(f"item() needs exactly one element, got shape {self.shape}")
        number: float = self.data.item()
        return number

    def __float__(self) -> float:
        return float(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def numpy(self) -> Array:
        """Return a read-only view. (PyTorch refuses where a gradient is required; here reading is always safe.)"""
        view = self.data.view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy or (dtype is not None and np.dtype(dtype) != self.dtype):
            if copy is False:
                raise ValueError(f"cannot give {self.dtype} as {dtype} without a copy")
            return self.data.astype(dtype or self.dtype)
        return self.numpy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Copy a leaf, with its gradient; the copy begins at version 0, as in PyTorch."""
        if not self.is_leaf:
            raise RuntimeError("only a leaf can be copied deeply: use detach() or clone()")
        copied = type(self).__new__(type(self))
        Tensor.__init__(copied, self.data.copy(), self.requires_grad)
        memo[id(self)] = copied
        copied.grad = None if self.grad is None else copy.deepcopy(self.grad, memo)
        return copied

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        text = repr(self.data).removeprefix("array(").removesuffix(")")
        if self.grad_fn is not None:
            return f"{type(self).__name__}({text}, grad_fn={self.grad_fn!r})"
        return f"{type(self).__name__}({text}{', requires_grad=True' if self.requires_grad else ''})"

    def __add__(self, other: Tensor | ArrayLike) -> Tensor:
        other_array = other.data if isinstance(other, Tensor) else np.asarray(other)
        if not isinstance(other, Tensor) and other_array.ndim == 0:
            return record("add", [np.asarray(self.data + other_array.item())], [self], lambda d_output: [d_output])[0]
        if other_array.shape != self.shape or other_array.dtype != self.dtype:
            raise ValueError(
                f"+ needs two of one shape and dtype, got {self.shape} {self.dtype} "
                f"and {other_array.shape} {other_array.dtype}"
            )
        inputs = [self, other if isinstance(other, Tensor) else None]
        both = np.asarray(self.data + other_array)
        return record("add", [both], inputs, lambda d_output: [d_output, d_output.copy()])[0]

    __radd__ = __add__

    def __getitem__(self, index: Any) -> Tensor:
        index = _plain_index(index)
        picked = np.asarray(self.data[index])

        def backward(d_output: Array) -> list[Array]:
            d_input = np.zeros(self.shape, self.dtype)
            np.add.at(d_input, index, d_output)  # an index given twice collects twice
            return [d_input]

        (output,) = record("index", [picked], [self], backward)
        if np.may_share_memory(picked, self.data):
            output._counter = self._counter
        return output

    def __setitem__(self, index: Any, value: Tensor | ArrayLike) -> None:
        self._check_writable("item assignment")
        self.data[_plain_index(index)] = value.data if isinstance(value, Tensor) else value
        self._bump_version("item assignment")

    def copy_(self, source: Tensor | ArrayLike) -> Tensor:
        """Overwrite with ``source``, in place and counted."""
        self._check_writable("copy_")
        self.data[...] = source.data if isinstance(source, Tensor) else source
        return self._bump_version("copy_")

    def add_(self, other: Tensor | ArrayLike, *, alpha: float = 1) -> Tensor:
        """Add ``alpha * other``, in place and counted."""
        self._check_writable("add_")
        self.data += alpha * np.asarray(other)
        return self._bump_version("add_")

    def zero_(self) -> Tensor:
        """Fill with zeros, in place and counted."""
        self._check_writable("zero_")
        self.data.fill(0)
        return self._bump_version("zero_")

    def _check_writable(self, operation: str) -> None:
        if self.requires_grad and mode.recording:
            kind = "a leaf that requires a gradient" if self.is_leaf else "a Tensor of the graph"
            raise RuntimeError(f"{operation} on {kind} would change what it stands for: write inside no_grad()")

    def _bump_version(self, written_by: str) -> Tensor:
        self._counter.value += 1  # (4.1)
        self._counter.written_by = written_by
        return self

    def _check_grad(self) -> None:
        """Raise unless the gradient that is there can be added to."""
        grad: Any = self.grad
        if not isinstance(grad, Tensor):
            raise TypeError(f"grad must be a Tensor or None, got {type(grad).__name__}")
        if grad.shape != self.shape or grad.dtype != self.dtype:
            expected = f"{self.shape} {self.dtype} like its parameter"
            raise ValueError(f"grad must be {expected}, got {grad.shape} {grad.dtype}")
        if not grad.data.flags.writeable:
            raise ValueError("grad must be writable, got a read-only array")

    def _accumulate(self, gradient: Array) -> None:
        """Add to ``.grad``; the first ``gradient``, which nobody else holds, becomes it."""
        if self.grad is None:
            self.grad = _wrapped(gradient)
        else:
            self.grad.data += gradient
            self.grad._bump_version("backward")

    def backward(self, gradient: Tensor | ArrayLike | None = None, retain_graph: bool = False) -> None:
        """Back-propagate from here; see ``numpy_rnn.backward``. ``gradient`` may be left out for one element."""
        backward([self], None if gradient is None else [gradient], retain_graph)


class Parameter(Tensor):
    """A Tensor that a module learns: requires a gradient, and starts at version 1, as PyTorch's do after their init."""

    __slots__ = ()

    def __init__(self, data: ArrayLike, requires_grad: bool = True) -> None:
        super().__init__(data, requires_grad)
        self._counter.value = 1
        self._counter.written_by = "initialisation"


def backward(
    tensors: Sequence[Tensor],
    grad_tensors: Sequence[Tensor | ArrayLike | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Back-propagate from several Tensors at once and add the gradients into ``.grad`` of the leaves.

    >>> x = Tensor(np.ones(2), requires_grad=True)
    >>> backward([x + x, x[0]], [np.ones(2), None])
    >>> x.grad
    Tensor([3., 2.])

    Arguments: ``tensors``; ``grad_tensors``, one upstream gradient each of the same shape and dtype, or None for a
    Tensor of one element (then 1); ``retain_graph`` keeps what was saved, so that the graph can be walked again.

    Nothing is half done: ``.grad`` changes, and what was saved is freed, only when the whole walk has succeeded.
    (PyTorch leaves the gradients of the part that it walked before the error.)

    Raises ``RuntimeError`` if a Tensor requires no gradient or needs one given; ``ValueError`` for a gradient of the
    wrong shape, ``TypeError`` for the wrong dtype; ``InPlaceModificationError``; ``GraphFreedError``.
    """
    if isinstance(tensors, Tensor):
        raise TypeError("tensors must be a sequence of Tensors, got one Tensor: use tensor.backward()")
    if grad_tensors is None:
        grad_tensors = [None] * len(tensors)
    if len(grad_tensors) != len(tensors):
        raise ValueError(f"grad_tensors must be one for each of the {len(tensors)} tensors, got {len(grad_tensors)}")
    walk = Walk()
    for i, (tensor, gradient) in enumerate(zip(tensors, grad_tensors, strict=True)):
        if not tensor.requires_grad:
            raise RuntimeError(f"tensors[{i}] does not require grad and does not have a grad_fn")
        walk.give(tensor._edge or tensor, _upstream(tensor, gradient, i))
    walk.run()
    walk.finish(retain_graph)


def _wrapped(array: Array) -> Tensor:
    """Return ``Tensor(array)`` without its checks, for what the library computed itself."""
    tensor = Tensor.__new__(Tensor)
    tensor._begin(np.asarray(array))
    return tensor


def _upstream(tensor: Tensor, gradient: Tensor | ArrayLike | None, i: int) -> Array:
    if gradient is None:
        if tensor.data.size != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for one element: tensors[{i}] has shape {tensor.shape}, "
                "give its upstream gradient"
            )
        return np.ones(tensor.shape, tensor.dtype)
    array = gradient.data if isinstance(gradient, Tensor) else np.asarray(gradient)
    if array.shape != tensor.shape:
        raise ValueError(f"gradient must have the shape of its tensor, {tensor.shape}, got {array.shape}")
    if array.dtype != tensor.dtype:
        raise TypeError(f"gradient must have the dtype of its tensor, {tensor.dtype}, got {array.dtype}")
    return array.copy()  # the walk adds into what it is given


def _plain_index(index: Any) -> Any:
    """Return ``index`` without Tensors, and without memory that somebody may write to later."""
    if isinstance(index, tuple):
        return tuple(_plain_index(i) for i in index)
    if isinstance(index, list):
        return np.array([i.item() if isinstance(i, Tensor) else i for i in index], dtype=None if index else np.intp)
    if isinstance(index, Tensor):
        index = index.data
    return index.copy() if isinstance(index, np.ndarray) else index


def as_tensor(name: str, value: Tensor | ArrayLike) -> Tensor:
    """Return ``value`` as a Tensor (an array is aliased, not copied); ``name`` is for the error."""
    if isinstance(value, Tensor):
        return value
    try:
        return Tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a Tensor or an array of float32 or float64: {error}") from None
