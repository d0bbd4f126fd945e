"""The equivalent PyTorch module of a NumPy one, and back. Weights are copied: the two never share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import numpy_rnn
from numpy_rnn.typing import Array

TORCH_DTYPES: dict[np.dtype[Any], torch.dtype] = {
    np.dtype(np.float32): torch.float32,
    np.dtype(np.float64): torch.float64,
}
NUMPY_DTYPES: dict[torch.dtype, np.dtype[Any]] = {torch_dtype: dtype for dtype, torch_dtype in TORCH_DTYPES.items()}


class SequenceModel(torch.nn.Module):
    """The twin of ``numpy_rnn.SequenceModel``: ``rnn``, then ``linear`` on the output of every time step."""

    def __init__(self, rnn: torch.nn.Module, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.rnn, self.linear = rnn, linear

    def forward(self, input: torch.Tensor, hx: Any = None) -> tuple[torch.Tensor, Any]:
        output, state = self.rnn(input, hx)
        return self.linear(output), state


def twin(module: numpy_rnn.Module) -> torch.nn.Module:
    """Return the equivalent ``torch.nn`` module with copied weights.

    >>> rnn = numpy_rnn.RNN(3, 5, num_layers=2, dtype="float64", rng=0)
    >>> twin(rnn)
    RNN(3, 5, num_layers=2)

    ``module`` is a ``numpy_rnn`` RNN, Linear or SequenceModel. dtype, mode (train or eval) and what is frozen carry
    over; versions start at 1 on both sides. PyTorch's random state is left as it was.

    Raises ``TypeError`` for any other module.
    """
    builder = _builder(module, TO_TORCH, "numpy_rnn")
    with torch.random.fork_rng(devices=[]):  # a torch.nn constructor draws initial weights
        built: torch.nn.Module = builder(module)
    parameters = dict(built.named_parameters())
    for name, parameter in module.named_parameters():
        # Through .data, so that the copy does not count as a version.
        parameters[name].data.copy_(torch.from_numpy(parameter.data.copy()))
        parameters[name].requires_grad_(parameter.requires_grad)
    return built.train(module.training)


def to_numpy(torch_module: torch.nn.Module) -> numpy_rnn.Module:
    """Return the equivalent ``numpy_rnn`` module with copied weights.

    >>> to_numpy(torch.nn.Linear(3, 5))
    Linear(3, 5)

    ``torch_module`` is a ``torch.nn`` RNN or Linear, or the SequenceModel of this file, on any device, in float32 or
    float64.

    Raises ``TypeError`` for any other module or dtype; what numpy_rnn refuses is refused here too.
    """
    builder = _builder(torch_module, TO_NUMPY, "torch")
    built: numpy_rnn.Module = builder(torch_module)
    parameters = dict(built.named_parameters())
    for name, parameter in torch_module.named_parameters():
        parameters[name].data[...] = to_array(parameter)
        parameters[name].requires_grad_(parameter.requires_grad)
    return built.train(torch_module.training)


def to_array(tensor: torch.Tensor) -> Array:
    """Return a copy of a tensor's values as an array, whatever its device."""
    array: Array = tensor.detach().cpu().numpy().copy()
    return array


def _builder(module: Any, builders: dict[type, Callable[[Any], Any]], library: str) -> Callable[[Any], Any]:
    if type(module) not in builders:
        known = ", ".join(sorted({kind.__name__ for kind in builders}))
        own = "; check_parity takes your own with its torch_module" if isinstance(module, numpy_rnn.Module) else ""
        raise TypeError(
            f"module must be one of {library}'s {known}, got {type(module).__module__}.{type(module).__name__}{own}"
        )
    return builders[type(module)]


def _torch_linear(module: numpy_rnn.Linear) -> torch.nn.Linear:
    return torch.nn.Linear(
        module.in_features, module.out_features, bias=module.bias is not None, dtype=TORCH_DTYPES[module.dtype]
    )


def _torch_recurrent(kind: Any) -> Callable[[Any], torch.nn.Module]:
    return lambda module: kind(**_settings(module, SETTINGS[kind]), dtype=TORCH_DTYPES[module.dtype])


def _numpy_linear(module: torch.nn.Linear) -> numpy_rnn.Linear:
    return numpy_rnn.Linear(
        module.in_features, module.out_features, bias=module.bias is not None, dtype=_numpy_dtype(module)
    )


def _numpy_recurrent(kind: Any) -> Callable[[Any], numpy_rnn.Module]:
    return lambda module: kind(**_settings(module, SETTINGS[type(module)]), dtype=_numpy_dtype(module))


def _numpy_sequence_model(module: SequenceModel) -> numpy_rnn.SequenceModel:
    built = numpy_rnn.SequenceModel.__new__(numpy_rnn.SequenceModel)
    built.rnn, built.linear = to_numpy(module.rnn), _numpy_linear(module.linear)
    return built


COMMON = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")
SETTINGS: dict[type, tuple[str, ...]] = {  # every argument of the constructor that the two libraries share
    torch.nn.RNN: (*COMMON, "nonlinearity"),
    torch.nn.LSTM: (*COMMON, "proj_size"),
    torch.nn.GRU: COMMON,
}


def _settings(module: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names}


def _numpy_dtype(module: torch.nn.Module) -> np.dtype[Any]:
    dtypes = {parameter.dtype for parameter in module.parameters()}
    if len(dtypes) != 1 or not dtypes <= set(NUMPY_DTYPES):
        raise TypeError(f"module must be all float32 or all float64, got {', '.join(sorted(map(str, dtypes)))}")
    return NUMPY_DTYPES[dtypes.pop()]


TO_TORCH: dict[type, Callable[[Any], Any]] = {
    numpy_rnn.Linear: _torch_linear,
    numpy_rnn.RNN: _torch_recurrent(torch.nn.RNN),
    numpy_rnn.LSTM: _torch_recurrent(torch.nn.LSTM),
    numpy_rnn.GRU: _torch_recurrent(torch.nn.GRU),
    numpy_rnn.SequenceModel: lambda module: SequenceModel(twin(module.rnn), _torch_linear(module.linear)),
}
TO_NUMPY: dict[type, Callable[[Any], Any]] = {
    torch.nn.Linear: _numpy_linear,
    torch.nn.RNN: _numpy_recurrent(numpy_rnn.RNN),
    torch.nn.LSTM: _numpy_recurrent(numpy_rnn.LSTM),
    torch.nn.GRU: _numpy_recurrent(numpy_rnn.GRU),
    SequenceModel: _numpy_sequence_model,
}
