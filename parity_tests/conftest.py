"""Settings for all tests."""

import pytest
import torch
from threadpoolctl import threadpool_limits

from torch_rnn.cli.main import main

# The tensors are tiny: a second thread only waits, and takes the core from the other worker.
torch.set_num_threads(1)
threadpool_limits(limits=1, user_api="blas")


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run ``rnn-parity`` in an empty directory and return its exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        try:
            status = main([*map(str, argv)])
        except SystemExit as exit:
            status = exit.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def untraced(monkeypatch):
    """Leave coverage out of the processes that a test starts: their lines are walked in this one by other tests."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
