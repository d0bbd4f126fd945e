"""PyTorch beside ``numpy_rnn``: twins of its modules, and everything that lays the two side by side."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_rnn.curves.compare import Comparison, compare_curves
    from torch_rnn.curves.compare_logs import LogComparison, compare_logs
    from torch_rnn.inplace.explain import Explanation, explain
    from torch_rnn.parity import ParityReport, check_parity
    from torch_rnn.twins import to_numpy, twin

__all__ = [
    "Comparison",
    "Explanation",
    "LogComparison",
    "ParityReport",
    "check_parity",
    "compare_curves",
    "compare_logs",
    "explain",
    "to_numpy",
    "twin",
]

# Importing torch takes a second, and ``rnn-parity --help`` passes through this file: load at first use.
_HOMES = {
    "Comparison": "curves.compare",
    "Explanation": "inplace.explain",
    "LogComparison": "curves.compare_logs",
    "ParityReport": "parity",
    "check_parity": "parity",
    "compare_curves": "curves.compare",
    "compare_logs": "curves.compare_logs",
    "explain": "inplace.explain",
    "to_numpy": "twins",
    "twin": "twins",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
