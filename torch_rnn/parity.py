"""Run one module in both libraries and compare every number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import numpy_rnn
from numpy_rnn.diagnosis import Case, Diagnosis, diagnose
from numpy_rnn.gradcheck import Comparison, Report, compare, generator, guarded, real_array
from numpy_rnn.tape import enable_grad
from numpy_rnn.typing import Array, MaybeArray
from torch_rnn.dropout import next_dropout_masks, next_mask
from torch_rnn.tolerances import PARITY
from torch_rnn.twins import SequenceModel, to_array, to_numpy, twin

State = ArrayLike | numpy_rnn.Tensor | Sequence[ArrayLike | numpy_rnn.Tensor] | None
Port: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, ArrayLike]]
OUTPUTS = ("output", "h_n", "c_n")
STATES = ("h_0", "c_0")


class ParityReport(Report):
    """What ``check_parity`` found: ``.ok``, ``.worst``, ``.table()``, and ``.rows`` with one Comparison a tensor.

    ``.diagnosis`` is None where all agrees, else the bugs that it looks like: see ``numpy_rnn.diagnosis``.
    """


def check_parity(
    module: numpy_rnn.Module | torch.nn.Module | Port,
    x: ArrayLike | numpy_rnn.Tensor | torch.Tensor,
    state: State = None,
    *,
    lengths: ArrayLike | None = None,
    torch_module: torch.nn.Module | None = None,
    seed: int = 0,
) -> ParityReport:
    """Run forward and backward in both libraries, from random upstream gradients, and compare everything.

    >>> rnn = numpy_rnn.RNN(3, 5, dtype="float64", rng=0)
    >>> x, state = np.random.default_rng(0).normal(size=(7, 4, 3)), np.ones((1, 4, 5))
    >>> report = check_parity(rnn, x, state)
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
    modules hold already are left as they were. A frozen parameter has no row. Where something differs, the report names
    the bug that it looks like; for a recurrent layer every known bug is recomputed.

    A port of your own needs no base class: ``module`` may be any function of a dict of arrays, with ``torch_module``
    beside it. It is given, read-only, ``x``, the initial states ``h_0`` (and ``c_0``; zeros where ``state`` is None),
    the parameters and the upstream gradients ``doutput``, ``dh_n`` (and ``dc_n``), and returns what it computes, in a
    dict: ``output``, ``h_n``, ``c_n``, ``dx``, ``dh_0``, ``dc_0``, ``d`` before the name of a parameter, or some of
    these. (So does a port that ``rnn-parity vectors check`` judges.) What has another shape differs infinitely. Here
    W_hh stands where its transpose belongs:

    >>> def port(given):
    ...     h, w_hh, dh = [*given["h_0"]], given["weight_hh_l0"], given["dh_n"][0]
    ...     for x_t in given["x"]:
    ...         z = x_t @ given["weight_ih_l0"].T + h[-1] @ w_hh.T
    ...         h.append(np.tanh(z + given["bias_ih_l0"] + given["bias_hh_l0"]))
    ...     dw_hh = np.zeros_like(w_hh)
    ...     for t in reversed(range(len(given["x"]))):
    ...         dz = (dh + given["doutput"][t]) * (1 - h[t + 1] ** 2)
    ...         dw_hh += dz.T @ h[t]
    ...         dh = dz @ w_hh.T  # the bug
    ...     return {"output": np.array(h[1:]), "dweight_hh_l0": dw_hh}
    >>> report = check_parity(port, x, state, torch_module=twin(rnn))
    >>> print("\\n".join(report.diagnosis.lines()))
    likely bug: w-hh-transposed-in-backward: the backward multiplies by W_hh's transpose where the forward asks
                for W_hh (dweight_hh_l0)

    Raises ``ValueError`` if the two modules have not the same parameters, and for a port that returns names that are
    none or writes into what it is given; ``TypeError`` for a module that has no twin and came without one, and for a
    port that returns no dict or no arrays of real numbers; and whatever the module raises for its input.
    """
    if isinstance(module, torch.nn.Module):
        if torch_module is not None:
            raise TypeError("module must be a numpy_rnn module where torch_module is given, got two torch modules")
        ours, theirs = to_numpy(module), module
    elif isinstance(module, numpy_rnn.Module):
        ours, theirs = module, twin(module) if torch_module is None else torch_module
    else:
        return _check_port(module, _arrays(x, state), lengths, torch_module, seed)
    _check_same_parameters(ours, theirs)

    arrays = _arrays(x, state)
    states = arrays[1:]
    with _borrowed(ours), _borrowed(theirs), enable_grad(), torch.enable_grad():
        leaves = [numpy_rnn.Tensor(array.copy(), requires_grad=array.dtype.kind == "f") for array in arrays]
        options: dict[str, Any] = {} if lengths is None else {"lengths": lengths}
        if masks := dropout_masks(theirs, arrays[0].shape, lengths):
            options["dropout_masks"] = masks
        if isinstance(theirs, torch.nn.Dropout) and theirs.training:
            options["mask"] = next_mask(theirs.p, arrays[0])
        outputs = _flatten(ours(*_arguments(leaves), **options))
        rng = generator(seed)
        upstream = [rng.normal(size=output.shape).astype(output.dtype) for output in outputs]
        numpy_rnn.backward(outputs, upstream)

        torch_leaves, torch_outputs = _torch_forward(theirs, arrays, lengths)
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
    report = ParityReport(rows, PARITY[upstream[0].dtype], ("numpy", "torch"))
    if report.ok:
        return report
    numbers = {name: (a, b) for name, a, b in pairs if a is not None and b is not None}
    return replace(report, diagnosis=_diagnosis(theirs, arrays, upstream, lengths, numbers, report.tolerance))


def _check_port(
    port: Port, arrays: list[Array], lengths: ArrayLike | None, module: torch.nn.Module | None, seed: int
) -> ParityReport:
    """``check_parity`` of a function of arrays."""
    if not callable(port):
        raise TypeError(f"module must be a module or a function of arrays, got {type(port).__name__}")
    if module is None:
        raise TypeError("torch_module must be given where module is a function of arrays")
    if isinstance(module, torch.nn.RNNBase | torch.nn.RNNCellBase) and len(arrays) == 1:
        arrays = [*arrays, *_zero_states(module, arrays[0])]
    with _borrowed(module), torch.enable_grad():
        leaves, outputs = _torch_forward(module, arrays, lengths)
        rng = generator(seed)
        upstream = [rng.normal(size=tuple(y.shape)).astype(to_array(y).dtype) for y in outputs]
        torch.autograd.backward(outputs, [torch.from_numpy(d) for d in upstream])
        expected: dict[str, Any] = dict(zip(OUTPUTS, map(to_array, outputs), strict=False))
        expected |= {f"d{name}": _gradient(leaf) for name, leaf in zip(("x", *STATES), leaves, strict=False)}
        expected |= {f"d{name}": _gradient(parameter) for name, parameter in module.named_parameters()}
    given = dict(zip(("x", *STATES), arrays, strict=False)) | dict(
        zip((f"d{n}" for n in OUTPUTS), upstream, strict=False)
    )
    given |= {name: to_array(parameter) for name, parameter in module.named_parameters()}
    for array in given.values():
        array.flags.writeable = False
    results = guarded("module", port, given)
    expected = {name: array for name, array in expected.items() if array is not None}
    if not isinstance(results, Mapping):
        raise TypeError(f"module must return a dict of some of {', '.join(expected)}, got {type(results).__name__}")
    if not results or not set(results) <= set(expected):
        raise ValueError(
            f"module must return some of {', '.join(expected)}, got {', '.join(map(str, results)) or 'none'}"
        )
    numbers = {name: (real_array(f"{name} of module", a), expected[name]) for name, a in results.items()}
    rows = tuple(
        compare(name, a, b)
        if a.shape == b.shape
        else Comparison(name, a.shape, np.inf, np.inf, np.inf, (), np.nan, np.nan, b.shape)
        for name, (a, b) in numbers.items()
    )
    report = ParityReport(rows, PARITY[upstream[0].dtype], ("port", "torch"))
    if report.ok:
        return report
    return replace(report, diagnosis=_diagnosis(module, arrays, upstream, lengths, numbers, report.tolerance))


def _arrays(x: Any, state: State) -> list[Array]:
    """Copies of the input and of the initial states that are given."""
    states = () if state is None else tuple(state) if isinstance(state, tuple | list) else (state,)
    return [
        to_array(value) if isinstance(value, torch.Tensor) else real_array(name, value).copy()
        for name, value in zip(("x", *["state"] * len(states)), (x, *states), strict=True)
    ]


def _torch_forward(module: torch.nn.Module, arrays: list[Array], lengths: ArrayLike | None) -> tuple[Any, list[Any]]:
    """Return the leaves made from the arrays, and the outputs."""
    leaves = [torch.from_numpy(array).clone().requires_grad_(array.dtype.kind == "f") for array in arrays]
    return leaves, _flatten(call(module, _arguments(leaves), lengths))


def _zero_states(module: torch.nn.RNNBase | torch.nn.RNNCellBase, x: Array) -> list[Array]:
    """The initial states that PyTorch takes where none are given."""
    if isinstance(module, torch.nn.RNNCellBase):
        zeros = np.zeros((*x.shape[:-1], module.hidden_size), x.dtype)
        return [zeros, zeros.copy()][: 2 if isinstance(module, torch.nn.LSTMCell) else 1]
    parts = module.num_layers * (1 + module.bidirectional)
    batch = x.shape[:-1][0 if module.batch_first else 1 :][:1] if x.ndim == 3 else ()
    sizes = [module.proj_size or module.hidden_size, module.hidden_size][: 2 if module.mode == "LSTM" else 1]
    return [np.zeros((parts, *batch, size), x.dtype) for size in sizes]


def _diagnosis(
    module: torch.nn.Module,
    arrays: Sequence[Array],
    upstream: Sequence[Array],
    lengths: ArrayLike | None,
    numbers: Mapping[str, tuple[Array, Any]],
    tolerance: float,
) -> Diagnosis:
    """Look for the bug; those of a recurrent layer without dropout, on a batch, are recomputed."""
    got, expected = {name: a for name, (a, _) in numbers.items()}, {name: b for name, (_, b) in numbers.items()}
    if not isinstance(module, torch.nn.RNNBase) or arrays[0].ndim != 3 or (module.training and module.dropout):
        return diagnose(got, expected, tolerance=tolerance)
    case_arrays = {name: to_array(parameter) for name, parameter in module.named_parameters()}
    case_arrays |= dict(zip(STATES, _zero_states(module, arrays[0]), strict=False))
    case_arrays |= dict(zip(("x", *STATES), arrays, strict=False))
    case_arrays |= {f"d{name}": d for name, d in zip(OUTPUTS, upstream, strict=False)}
    if module.batch_first:
        misshapen = {name for name in got if got[name].shape != expected[name].shape}
        for results in (case_arrays, got, expected):
            turned = {"x", "dx", "output", "doutput"} & set(results) - misshapen
            results |= {name: results[name].swapaxes(0, 1) for name in turned}
    case = Case(
        module.mode.lower().partition("_")[0],
        {name: array.astype(np.float64) for name, array in case_arrays.items()},
        getattr(module, "nonlinearity", "tanh"),
        None if lengths is None else np.asarray(lengths).tolist(),
    )
    return diagnose(got, expected, case, tolerance=tolerance)


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
