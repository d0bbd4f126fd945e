"""What several test files share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.testing import assert_allclose

import numpy_rnn
from torch_rnn import twin
from torch_rnn.tolerances import PARITY


def assert_parity(got: Any, expected: Any, name: str, tolerance: float | None = None) -> None:
    """Assert equality up to the parity tolerance of the dtype, in units of the largest entry of ``expected``."""
    got = np.asarray(got)
    expected = expected.detach().numpy() if isinstance(expected, torch.Tensor) else np.asarray(expected)
    assert got.dtype == expected.dtype, name
    tolerance = PARITY[got.dtype] if tolerance is None else tolerance
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    assert_allclose(got, expected, rtol=0, atol=tolerance * scale, err_msg=name)


def randomise(module: numpy_rnn.Module, rng: np.random.Generator) -> numpy_rnn.Module:
    """Fill every parameter with normal numbers: no weight, bias or gradient is then small by luck."""
    module.load_state_dict({n: 0.5 * rng.normal(size=p.shape) for n, p in module.named_parameters()})
    return module


def run_both(
    module: numpy_rnn.Module,
    arrays: Sequence[np.ndarray],
    requires_grad: Sequence[bool],
    call: Callable[..., list[Any]],
    rng: np.random.Generator,
) -> dict[str, tuple[Any, Any]]:
    """Run ``call(module, *tensors)`` in both libraries and back-propagate random gradients from what it returns.

    Returns the pairs (numpy, torch) of every result, input gradient and parameter gradient, by name. The arrays are
    handed over read-only, and stay bit for bit what they were.
    """
    before = [array.tobytes() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    module.zero_grad()
    inputs = [numpy_rnn.Tensor(a, requires_grad=r) for a, r in zip(arrays, requires_grad, strict=True)]
    results = call(module, *inputs)
    upstream = [rng.normal(size=result.shape).astype(result.dtype) for result in results]
    for d in upstream:
        d.flags.writeable = False
    numpy_rnn.backward(results, upstream)
    assert [array.tobytes() for array in arrays] == before

    torch_module = twin(module)
    torch_inputs = [torch.from_numpy(a.copy()).requires_grad_(r) for a, r in zip(arrays, requires_grad, strict=True)]
    torch_results = call(torch_module, *torch_inputs)
    torch.autograd.backward(torch_results, [torch.from_numpy(d.copy()) for d in upstream])

    pairs = {f"result {i}": pair for i, pair in enumerate(zip(results, torch_results, strict=True))}
    pairs |= {f"d input {i}": (a.grad, b.grad) for i, (a, b) in enumerate(zip(inputs, torch_inputs, strict=True))}
    parameters = zip(module.named_parameters(), torch_module.parameters(), strict=True)
    return pairs | {f"d {name}": (a.grad, b.grad) for (name, a), b in parameters}


def assert_all_parity(pairs: dict[str, tuple[Any, Any]], case: Any) -> None:
    """Assert parity of every pair; where one side is None the other must be."""
    for name, (got, expected) in pairs.items():
        assert (got is None) == (expected is None), f"{name} of {case}"
        if got is not None:
            assert_parity(got, expected, f"{name} of {case}")
