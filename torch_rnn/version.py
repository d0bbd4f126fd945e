"""Versions: the project's own, without importing torch, and of all that decides a result."""

import platform
from importlib.metadata import PackageNotFoundError, version


def project_version() -> str:
    """Return this project's version, "unknown" where it runs without having been installed."""
    try:
        return version("rnn-parity")
    except PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions that a result depends on: Python's, NumPy's, PyTorch's and the project's."""
    import numpy as np
    import torch

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "rnn-parity": project_version(),
    }
