"""The cells against oracles that know nothing of PyTorch, nor of the hand-written backward.

A bug that NumPy and PyTorch shared would pass every parity test. It cannot pass these, for each oracle differentiates a
forward by other means than a chain rule written down for these cells:

- the complex step: Im f(x + ih) / h is f'(x) to rounding for an analytic f, so the forward itself says what its
  gradient is, each entry alone;
- HIPS autograd: the equations of the forward, written out anew below from PyTorch's documentation, one gate at a time,
  and differentiated by that package's own rules: a shared mistake of the forward shows here too;
- longdouble: the same passes with 11 more bits, whose difference from float64 must be rounding and nothing else.

ONNX Runtime, which has forwards of its own, is in test_conventions.py; mpmath, as a truth, in test_accuracy.py.
"""

from typing import Any

import numpy as np
import pytest

from numpy_rnn.cells import gru, lstm, rnn
from numpy_rnn.cells.sigmoid import open_gates
from numpy_rnn.gradcheck import check_backward
from parity_tests.helpers import assert_parity
from torch_rnn.measure import truth
from torch_rnn.tolerances import AUTOGRAD, COMPLEX_STEP

CELLS: dict[str, tuple[Any, int, tuple[str, ...]]] = {  # module, (H, ...) blocks of the weights, states
    "rnn": (rnn, 1, ("h_0",)),
    "lstm": (lstm, 4, ("h_0", "c_0")),
    "lstm with projection": (lstm, 4, ("h_0", "c_0")),
    "gru": (gru, 3, ("h_0",)),
}
B, I, H, P = 2, 3, 4, 2  # noqa: E741
LENGTHS = (1, 7, 20)
longdouble_is_wider = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant
needs_longdouble = pytest.mark.skipif(not longdouble_is_wider, reason="longdouble is float64 on this machine")


def inputs(cell: str, T: int, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    """Return every argument of the cell's forward, of moderate size: no gate is saturated."""
    rng = np.random.default_rng([T, len(cell)])
    _, gates, states = CELLS[cell]
    out = P if "projection" in cell else H
    shapes: dict[str, tuple[int, ...]] = {"x": (T, B, I), **{s: (B, out if s == "h_0" else H) for s in states}}
    shapes |= {"w_ih": (gates * H, I), "w_hh": (gates * H, out), "b_ih": (gates * H,), "b_hh": (gates * H,)}
    if "projection" in cell:
        shapes["w_hr"] = (P, H)
    return {name: (0.5 * rng.normal(size=shape)).astype(dtype) for name, shape in shapes.items()}


def forward(cell: str) -> Any:
    """Return the forward as a function of arrays alone: all states, and the last ones."""
    return lambda *arguments: CELLS[cell][0].forward(*arguments)[:-1]


def backward(cell: str) -> Any:
    """Return the backward with a gradient for each argument of the forward, in order."""
    module, _, states = CELLS[cell]

    def run(upstream: Any, *arguments: Any) -> Any:
        w_ih, w_hh, _, _, *w_hr = arguments[1 + len(states) :]
        saved = module.forward(*arguments)[-1]
        return tuple(d for d in module.backward(*upstream, saved, w_ih, w_hh, *w_hr) if d is not None)

    return run


@pytest.mark.parametrize("T", LENGTHS)
@pytest.mark.parametrize("cell", CELLS)
def test_every_gradient_by_the_complex_step(cell: str, T: int) -> None:
    arguments = inputs(cell, T)
    report = check_backward(forward(cell), backward(cell), arguments, tolerance=COMPLEX_STEP)
    assert [row.name for row in report.rows] == list(arguments)
    assert report.ok, report.table()


@needs_longdouble
@pytest.mark.parametrize("cell", CELLS)
def test_every_gradient_by_the_complex_step_in_longdouble(cell: str) -> None:
    """With 11 more bits the two agree 1000 times better: what is left in float64 is rounding."""
    report = check_backward(
        forward(cell), backward(cell), inputs(cell, 7, np.longdouble), tolerance=COMPLEX_STEP / 1000
    )
    assert report.ok, report.table()


@needs_longdouble
@pytest.mark.parametrize("T", [1, 20, 200])
@pytest.mark.parametrize("cell", [*CELLS, "rnn-relu"])
def test_float64_and_longdouble_differ_by_rounding(cell: str, T: int) -> None:
    arrays = inputs(cell.removesuffix("-relu"), T)
    if "w_hh" in arrays and cell == "rnn-relu":
        arrays["w_hh"] /= 2  # or the states of 200 steps outgrow the numbers
    rng = np.random.default_rng(T)
    states = {"dh": (T, *arrays["h_0"].shape), "dh_n": arrays["h_0"].shape}
    if "c_0" in arrays:
        states["dc_n"] = arrays["c_0"].shape
    upstream = {name: rng.normal(size=shape) for name, shape in states.items()}
    kind = cell.split(" ")[0]
    narrow = truth.passes(kind, arrays, upstream)
    wide = truth.passes(kind, truth.widened(arrays, "longdouble"), truth.widened(upstream, "longdouble"))
    assert narrow.keys() == wide.keys()
    for name, expected in wide.items():
        assert (narrow[name].dtype, expected.dtype) == (np.float64, np.longdouble)
        assert_parity(narrow[name], expected.astype(np.float64), f"{name} of {cell}, T={T}")
        assert not np.array_equal(narrow[name], expected), "as wide as float64: nothing was compared"


def plain_forward(np: Any, cell: str, x: Any, h: Any, *rest: Any) -> list[Any]:
    """Run a cell as PyTorch's documentation writes it, with any library's ``np``: all outputs, and the last states."""
    c, weights = (rest[0], rest[1:]) if cell.startswith("lstm") else (None, rest)
    w_ih, w_hh, b_ih, b_hh, *w_hr = weights

    def sigmoid(z: Any) -> Any:
        return (1 + np.tanh(z / 2)) / 2

    def gate(k: int, w: Any, v: Any, b: Any) -> Any:
        return np.dot(v, w[k * H : (k + 1) * H].T) + b[k * H : (k + 1) * H]

    outputs = []
    for x_t in x:
        a = [gate(k, w_ih, x_t, b_ih) for k in range(len(b_ih) // H)]
        b = [gate(k, w_hh, h, b_hh) for k in range(len(b_hh) // H)]
        if cell == "rnn":
            h = np.tanh(a[0] + b[0])
        elif cell == "gru":
            r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
            h = (1 - z) * np.tanh(a[2] + r * b[2]) + z * h
        else:
            i, f, g, o = (
                function(p + q) for function, p, q in zip((sigmoid, sigmoid, np.tanh, sigmoid), a, b, strict=True)
            )
            c = f * c + i * g
            h = o * np.tanh(c)
            h = np.dot(h, w_hr[0].T) if w_hr else h
        outputs.append(h)
    return [np.stack(outputs), h] if c is None else [np.stack(outputs), h, c]


def autograd_gradients(cell: str, arguments: dict[str, np.ndarray], upstream: list[np.ndarray]) -> list[np.ndarray]:
    autograd = pytest.importorskip(
        "autograd", reason="HIPS autograd is not installed: pip install 'rnn-parity[oracles]'"
    )
    import autograd.numpy as autograd_numpy

    def loss(*arrays: Any) -> Any:
        outputs = plain_forward(autograd_numpy, cell, *arrays)
        return sum(autograd_numpy.sum(d * y) for d, y in zip(upstream, outputs, strict=True))

    return list(autograd.grad(loss, argnum=tuple(range(len(arguments))))(*arguments.values()))


@pytest.mark.parametrize("T", LENGTHS)
@pytest.mark.parametrize("cell", CELLS)
def test_outputs_of_the_equations_as_pytorch_documents_them(cell: str, T: int) -> None:
    arguments = inputs(cell, T)
    expected = plain_forward(np, cell, *arguments.values())
    for got, wanted in zip(forward(cell)(*arguments.values()), expected, strict=True):
        assert_parity(got, wanted, f"{cell}, T={T}", AUTOGRAD)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_forward_that_is_wrong_in_both_passes_is_seen(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gates of another slope: no comparison with itself would tell, both the oracles do."""
    module = CELLS[cell][0]
    monkeypatch.setattr(module, "open_gates", lambda z: open_gates(np.multiply(z, 1 + 1e-9, out=z)))
    arguments = inputs(cell, 7)
    report = check_backward(forward(cell), backward(cell), arguments, tolerance=COMPLEX_STEP)
    assert not report.ok
    with pytest.raises(AssertionError, match=cell):
        test_outputs_of_the_equations_as_pytorch_documents_them(cell, 7)


@pytest.mark.parametrize("cell", CELLS)
def test_a_gradient_wrong_in_the_twelfth_digit_is_seen(cell: str) -> None:
    def slightly_wrong(*arguments: Any) -> Any:
        first, *rest = backward(cell)(*arguments)
        return [first * (1 + 1e-12), *rest]

    report = check_backward(forward(cell), slightly_wrong, inputs(cell, 7), tolerance=COMPLEX_STEP)
    assert [row.name for row in report.rows if row.relative > COMPLEX_STEP] == ["x"]


@pytest.mark.parametrize("T", LENGTHS)
@pytest.mark.parametrize("cell", CELLS)
def test_every_gradient_by_hips_autograd(cell: str, T: int) -> None:
    arguments = inputs(cell, T)
    rng = np.random.default_rng(T)
    upstream = [rng.normal(size=y.shape) for y in forward(cell)(*arguments.values())]
    expected = autograd_gradients(cell, arguments, upstream)
    for name, got, wanted in zip(arguments, backward(cell)(upstream, *arguments.values()), expected, strict=True):
        assert_parity(got, wanted, f"d{name} of {cell}, T={T}", AUTOGRAD)
