"""What a result was made with; torch is imported only by whoever asks for its version."""

import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np


def project_version() -> str:
    """Return this project's version, "unknown" where it runs without having been installed."""
    try:
        return version("rnn-parity")
    except PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of Python and of all that computes, by name."""
    import torch

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "rnn-parity": project_version(),
    }
