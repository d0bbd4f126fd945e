"""Run one module in both libraries and compare every number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import numpy_rnn
from numpy_rnn.gradcheck import Report, compare
from numpy_rnn.tape import enable_grad
from numpy_rnn.typing import Array, MaybeArray
from torch_rnn.dropout import next_dropout_masks, next_mask
from torch_rnn.tolerances import PARITY
from torch_rnn.twins import SequenceModel, to_array, to_numpy, twin

State = ArrayLike | numpy_rnn.Tensor | Sequence[ArrayLike | numpy_rnn.Tensor] | None
OUTPUTS = ("output", "h_n", "c_n")
STATES = ("h_0", "c_0")


class ParityReport(Report):
    """What ``check_parity`` found: ``.ok``, ``.worst``, ``.table()``, and ``.rows`` with one Comparison a tensor."""


def check_parity(
    module: numpy_rnn.Module | torch.nn.Module,
    x: ArrayLike | numpy_rnn.Tensor | torch.Tensor,
    state: State = None,
    *,
    lengths: ArrayLike | None = None,
    torch_module: torch.nn.Module | None = None,
    seed: int = 0,
) -> ParityReport:
    """Run forward and backward in both libraries, from random upstream gradients, and compare everything.

    >>> rnn = numpy_rnn.RNN(3, 5, dtype="float64", rng=0)
    >>> report = check_parity(rnn, np.ones((7, 4, 3)), np.ones((1, 4, 5)))
    >>> report.ok, [row.name for row in report.rows][:4]
    (True, ['output', 'h_n', 'dx', 'dh_0'])

    Arguments: ``module`` a ``numpy_rnn`` module, or a ``torch`` one of a kind that ``to_numpy`` knows. For a NumPy
    module of your own give also its ``torch_module``: parameters of the same names, shapes and values, called alike.
    ``x`` the input and ``state`` the initial state (a pair for one that takes two, None for none), of the module's
    dtype; both are copied. ``lengths`` (B,) of the sequences in ``x``, for recurrent modules. ``seed`` draws the
    upstream gradients of the output and of every final state. Where a recurrent module drops out, NumPy gets the masks
    that PyTorch draws, from its present random state.

    Returns a ``ParityReport``: a row for the output, each final state, and the gradients of the input, of each state
    and of each parameter. A gradient that one side has and the other lacks differs infinitely. The gradients that the
    modules hold already are left as they were. A frozen parameter has no row.

    Raises ``ValueError`` if the two modules have not the same parameters, ``TypeError`` for a module that has no twin
    and came without one, and whatever the module raises for its input.
    """
    if isinstance(module, torch.nn.Module):
        if torch_module is not None:
            raise TypeError("module must be a numpy_rnn module where torch_module is given, got two torch modules")
        ours, theirs = to_numpy(module), module
    else:
        ours, theirs = module, twin(module) if torch_module is None else torch_module
    _check_same_parameters(ours, theirs)

    states = () if state is None else tuple(state) if isinstance(state, tuple | list) else (state,)
    arrays = [to_array(value) if isinstance(value, torch.Tensor) else np.array(value) for value in (x, *states)]
    with _borrowed(ours), _borrowed(theirs), enable_grad(), torch.enable_grad():
        leaves = [numpy_rnn.Tensor(array.copy(), requires_grad=array.dtype.kind == "f") for array in arrays]
        options: dict[str, Any] = {} if lengths is None else {"lengths": lengths}
        if masks := dropout_masks(theirs, arrays[0].shape, lengths):
            options["dropout_masks"] = masks
        if isinstance(theirs, torch.nn.Dropout) and theirs.training:
            options["mask"] = next_mask(theirs.p, arrays[0])
        outputs = _flatten(ours(*_arguments(leaves), **options))
        rng = np.random.default_rng(seed)
        upstream = [rng.normal(size=output.shape).astype(output.dtype) for output in outputs]
        numpy_rnn.backward(outputs, upstream)

        torch_leaves = [torch.from_numpy(array).clone().requires_grad_(array.dtype.kind == "f") for array in arrays]
        torch_outputs = _flatten(call(theirs, _arguments(torch_leaves), lengths))
        if len(outputs) != len(torch_outputs):
            raise ValueError(
                f"torch_module must return {len(outputs)} tensors as module does, got {len(torch_outputs)}"
            )
        torch.autograd.backward(torch_outputs, [torch.from_numpy(d) for d in upstream])

        cell = isinstance(ours, numpy_rnn.RNNCell | numpy_rnn.LSTMCell | numpy_rnn.GRUCell)
        names = [*(("h", "c") if cell else OUTPUTS)[: len(outputs)], "dx"]
        names += [f"d{name}" for name in (("h", "c") if cell else STATES)[: len(states)]]
        got = [output.data for output in outputs] + [_gradient(leaf) for leaf in leaves]
        expected = [to_array(output) for output in torch_outputs] + [_gradient(leaf) for leaf in torch_leaves]
        pairs = list(zip(names, got, expected, strict=True))
        torch_parameters = dict(theirs.named_parameters())
        for name, parameter in ours.named_parameters():
            *path, last = name.split(".")
            pairs.append((".".join([*path, f"d{last}"]), _gradient(parameter), _gradient(torch_parameters[name])))
    rows = tuple(compare(name, *_both(a, b)) for name, a, b in pairs if a is not None or b is not None)
    return ParityReport(rows, PARITY[upstream[0].dtype], ("numpy", "torch"))


def call(module: torch.nn.Module, arguments: Sequence[Any], lengths: ArrayLike | None) -> Any:
    """Call a PyTorch module; where there are lengths, its recurrent layer sees a packed sequence, as ours does.

    The output is padded again to all T steps.
    """
    if lengths is None:
        return module(*arguments)
    x, *state = arguments
    if isinstance(module, SequenceModel):
        vectors = module.embedding(x) if hasattr(module, "embedding") else x
        output, final = call(module.rnn, [vectors, *state], lengths)
        return module.linear(output), final
    first: Any = module
    T = x.shape[1 if first.batch_first else 0]
    sizes = torch.as_tensor(np.asarray(lengths))
    packed = pack_padded_sequence(x, sizes, batch_first=first.batch_first, enforce_sorted=False)
    output, final = module(packed, *state)
    return pad_packed_sequence(output, batch_first=first.batch_first, total_length=T)[0], final


def dropout_masks(module: torch.nn.Module, shape: Sequence[int], lengths: ArrayLike | None) -> list[Array]:
    """Return the masks that ``call`` will draw, laid out like the padded output; nothing where nothing is dropped."""
    rnn: Any = module.rnn if isinstance(module, SequenceModel) else module
    if lengths is not None and not isinstance(rnn, torch.nn.RNNBase):
        raise TypeError(f"lengths must be None for a {type(rnn).__name__}, which is not recurrent over time")
    if not isinstance(rnn, torch.nn.RNNBase):
        return []
    if lengths is None:
        return next_dropout_masks(rnn, (*shape, 0) if hasattr(module, "embedding") else shape)
    sizes = torch.as_tensor(np.asarray(lengths))
    packed = pack_padded_sequence(torch.zeros(tuple(shape[:2])), sizes, rnn.batch_first, enforce_sorted=False)
    t, k = np.nonzero(packed.batch_sizes.numpy()[:, None] > np.arange(len(sizes)))
    b = np.asarray(packed.sorted_indices)[k]  # PyTorch's own order: its sort is not stable
    index = (b, t) if rnn.batch_first else (t, b)
    padded = []
    for rows in next_dropout_masks(rnn, (len(t), 0)):
        mask = np.zeros((*shape[:2], rows.shape[1]), rows.dtype)
        mask[index] = rows
        padded.append(mask)
    return padded


def _check_same_parameters(module: numpy_rnn.Module, torch_module: torch.nn.Module) -> None:
    ours = {name: parameter.data for name, parameter in module.named_parameters()}
    theirs = {name: to_array(parameter) for name, parameter in torch_module.named_parameters()}
    if set(ours) != set(theirs):
        raise ValueError(
            "torch_module must have the parameters of module: "
            f"only in module {sorted(set(ours) - set(theirs))}, only in torch_module {sorted(set(theirs) - set(ours))}"
        )
    for name, array in ours.items():
        other = theirs[name]
        if array.shape != other.shape or array.dtype != other.dtype:
            raise ValueError(
                f"{name} of torch_module must be {array.shape} {array.dtype} as in module, "
                f"got {other.shape} {other.dtype}"
            )
        if not np.array_equal(array, other, equal_nan=True):
            raise ValueError(
                f"{name} must have the same values in both modules: "
                "load them first, module.load_state_dict(torch_module.state_dict())"
            )


@contextmanager
def _borrowed(module: numpy_rnn.Module | torch.nn.Module) -> Iterator[None]:
    """Put the gradients that the module's parameters hold aside, and back afterwards."""
    parameters: list[Any] = list(module.parameters())
    held = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in zip(parameters, held, strict=True):
            parameter.grad = gradient


def _arguments(leaves: list[Any]) -> list[Any]:
    """``(x)``, ``(x, state)`` or ``(x, (state, state))``."""
    x, *states = leaves
    return [x] if not states else [x, states[0] if len(states) == 1 else tuple(states)]


def _flatten(outputs: Any) -> list[Any]:
    """The tensors of ``output`` or ``(output, state)`` or ``(output, (state, state))``, in order."""
    return [t for o in outputs for t in _flatten(o)] if isinstance(outputs, tuple) else [outputs]


def _gradient(tensor: Any) -> Array | None:
    if tensor.grad is None:
        return None
    gradient: Array = tensor.grad.data if isinstance(tensor, numpy_rnn.Tensor) else to_array(tensor.grad)
    return gradient


def _both(got: MaybeArray, expected: MaybeArray) -> tuple[Array, Array]:
    """A missing gradient becomes nan, which agrees with no number."""
    got = np.full_like(expected, np.nan) if got is None else got
    return got, np.full_like(got, np.nan) if expected is None else expected
