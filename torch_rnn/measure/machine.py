"""Where and with what a measurement was taken."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from torch_rnn.measure import jax_peer
from torch_rnn.measure.threads import cores
from torch_rnn.version import project_version


def machine() -> dict[str, Any]:
    """Return the processor, its cores, the system and NumPy's BLAS."""
    blas = [
        " ".join(str(pool[key]) for key in ("internal_api", "version", "architecture") if pool.get(key))
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    return {
        "processor": _processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": blas[0] if blas else "unknown",
        "onednn": torch.backends.mkldnn.is_available(),  # type: ignore[no-untyped-call]
    }


def versions() -> dict[str, str | None]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "jax": version("jax") if jax_peer.installed() else None,
        "rnn-parity": project_version(),
    }


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def _processor() -> str:
    """Return the processor's name; Python itself knows it on some systems only."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
