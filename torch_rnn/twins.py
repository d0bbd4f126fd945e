"""The equivalent PyTorch module of a NumPy one, and back. Weights are copied: the two never share memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
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
    """The twin of ``numpy_rnn.SequenceModel``: ``embedding`` or None, ``rnn``, ``linear`` on every time step."""

    def __init__(self, rnn: torch.nn.Module, linear: torch.nn.Module, embedding: torch.nn.Module | None = None) -> None:
        super().__init__()
        if embedding is not None:
            self.embedding = embedding
        self.rnn, self.linear = rnn, linear

    def forward(self, input: torch.Tensor, hx: Any = None) -> tuple[torch.Tensor, Any]:
        output, state = self.rnn(self.embedding(input) if hasattr(self, "embedding") else input, hx)
        return self.linear(output), state


def twin(module: numpy_rnn.Module) -> torch.nn.Module:
    """Return the equivalent ``torch.nn`` module with copied weights.

    >>> rnn = numpy_rnn.RNN(3, 5, num_layers=2, dtype="float64", rng=0)
    >>> twin(rnn)
    RNN(3, 5, num_layers=2)

    ``module`` is any module of ``numpy_rnn`` (not a class of your own). dtype, mode (train or eval) and what is frozen
    carry over; versions start at 1 on both sides. PyTorch's random state is left as it was.

    Raises ``TypeError`` for any other module.
    """
    builder = _builder(module, TO_TORCH, "numpy_rnn")
    with torch.random.fork_rng(devices=[]):  # a torch.nn constructor draws initial weights
        built: torch.nn.Module = builder(module)
    made: dict[Any, Any] = {}
    for name, parameter in module._entries():
        if parameter in made:
            _put(built, name, made[parameter])
            continue
        copied = made[parameter] = _get(built, name)
        copied.data.copy_(torch.from_numpy(parameter.data.copy()))  # through .data, which counts as no version
        copied.requires_grad_(parameter.requires_grad)
    return built.train(module.training)


def to_numpy(torch_module: torch.nn.Module) -> numpy_rnn.Module:
    """Return the equivalent ``numpy_rnn`` module with copied weights.

    >>> to_numpy(torch.nn.Linear(3, 5))
    Linear(3, 5)

    ``torch_module`` is a ``torch.nn`` RNN, LSTM or GRU, one of their cells, Linear, Embedding or Dropout, or the
    SequenceModel of this file, on any device, in float32 or float64.

    Raises ``TypeError`` for any other module or dtype; what numpy_rnn refuses is refused here too.
    """
    builder = _builder(torch_module, TO_NUMPY, "torch")
    built: numpy_rnn.Module = builder(torch_module)
    made: dict[Any, Any] = {}
    for name, parameter in torch_module.named_parameters(remove_duplicate=False):
        if parameter in made:
            _put(built, name, made[parameter])
            continue
        copied = made[parameter] = _get(built, name)
        copied.data[...] = to_array(parameter)
        copied.requires_grad_(parameter.requires_grad)
    return built.train(torch_module.training)


def _get(module: Any, name: str) -> Any:
    return reduce(getattr, name.split("."), module)


def _put(module: Any, name: str, parameter: Any) -> None:
    """Let ``name`` be another name of ``parameter``: tied weights stay tied."""
    path, _, last = name.rpartition(".")
    setattr(_get(module, path) if path else module, last, parameter)


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


SHARED: dict[str, tuple[str, ...]] = {  # the arguments of the constructors, of the same names in both libraries
    "RNN": (
        "input_size",
        "hidden_size",
        "num_layers",
        "nonlinearity",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
    ),
    "LSTM": ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size"),
    "GRU": ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"),
    "RNNCell": ("input_size", "hidden_size", "bias", "nonlinearity"),
    "LSTMCell": ("input_size", "hidden_size", "bias"),
    "GRUCell": ("input_size", "hidden_size", "bias"),
    "Linear": ("in_features", "out_features", "bias"),
    "Embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
}


def _settings(module: Any) -> dict[str, Any]:
    settings = {name: getattr(module, name) for name in SHARED[type(module).__name__]}
    if "bias" in settings:  # a Linear keeps its bias there, not whether it has one
        settings["bias"] = settings["bias"] is not None and settings["bias"] is not False
    return settings


def _torch(module: Any) -> Any:
    return getattr(torch.nn, type(module).__name__)(**_settings(module), dtype=TORCH_DTYPES[module.dtype])


def _numpy(module: Any) -> Any:
    if isinstance(module, torch.nn.Embedding) and (
        module.max_norm is not None or module.scale_grad_by_freq or module.sparse
    ):
        raise TypeError("module must be an Embedding without max_norm, scale_grad_by_freq and sparse")
    return getattr(numpy_rnn, type(module).__name__)(**_settings(module), dtype=_numpy_dtype(module))


def _numpy_sequence_model(module: SequenceModel) -> numpy_rnn.SequenceModel:
    built = numpy_rnn.SequenceModel.__new__(numpy_rnn.SequenceModel)
    if hasattr(module, "embedding"):
        built.embedding = _numpy(module.embedding)
    built.rnn, built.linear = _numpy(module.rnn), _numpy(module.linear)
    return built


def _torch_sequence_model(module: numpy_rnn.SequenceModel) -> SequenceModel:
    embedding = _torch(module.embedding) if hasattr(module, "embedding") else None
    return SequenceModel(_torch(module.rnn), _torch(module.linear), embedding)


def _numpy_dtype(module: torch.nn.Module) -> np.dtype[Any]:
    dtypes = {parameter.dtype for parameter in module.parameters()}
    if len(dtypes) != 1 or not dtypes <= set(NUMPY_DTYPES):
        raise TypeError(f"module must be all float32 or all float64, got {', '.join(sorted(map(str, dtypes)))}")
    return NUMPY_DTYPES[dtypes.pop()]


TO_TORCH: dict[type, Callable[[Any], Any]] = {
    **{getattr(numpy_rnn, name): _torch for name in SHARED},
    numpy_rnn.Dropout: lambda module: torch.nn.Dropout(module.p),
    numpy_rnn.SequenceModel: _torch_sequence_model,
}
TO_NUMPY: dict[type, Callable[[Any], Any]] = {
    **{getattr(torch.nn, name): _numpy for name in SHARED},
    torch.nn.Dropout: lambda module: numpy_rnn.Dropout(module.p),
    SequenceModel: _numpy_sequence_model,
}
