"""The same number of threads for both libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let NumPy's BLAS and PyTorch use ``threads`` threads inside the block."""
    before = torch.get_num_threads()
    with threadpool_limits(limits=threads, user_api="blas"):
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
