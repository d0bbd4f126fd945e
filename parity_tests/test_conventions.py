"""Weights in the conventions of other libraries: run there, or by their documented equations, they give torch's output.

Each ``*_lstm`` and ``*_gru`` below is the documented equation of a library, gate by gate, on one direction.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.testing import assert_array_equal

import numpy_rnn
from numpy_rnn import conventions, convert_weights
from parity_tests.helpers import assert_parity
from torch_rnn.tolerances import ONNX_RUNTIME

T, B, I, H, P = 6, 4, 3, 5, 2  # noqa: E741
CELLS = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
CONVENTIONS = ["pytorch", "keras", "onnx", "cudnn", "onednn"]
Weights = dict[str, np.ndarray]


def torch_run(cell: str, dtype: torch.dtype = torch.float64, **options: Any) -> tuple[Weights, Weights]:
    """Return a layer's random weights, and what it made of a random input from random initial states."""
    torch.manual_seed(7)
    module = CELLS[cell](I, H, dtype=dtype, **options)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    states = 2 if options.get("bidirectional") else 1
    x = torch.randn(T, B, I, dtype=dtype)
    h_0 = torch.randn(states, B, options.get("proj_size", H), dtype=dtype)
    c_0 = torch.randn(states, B, H, dtype=dtype)
    output, final = module(x, (h_0, c_0) if cell == "lstm" else h_0)
    h_n, c_n = final if cell == "lstm" else (final, None)
    arrays = {"x": x, "h_0": h_0, "c_0": c_0, "output": output, "h_n": h_n}
    if c_n is not None:
        arrays["c_n"] = c_n
    weights = {name.removesuffix("_l0"): p.detach().numpy() for name, p in module.named_parameters()}
    return weights, {name: tensor.detach().numpy() for name, tensor in arrays.items()}


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def over_time(step: Callable[..., Any], run: Weights) -> np.ndarray:
    h, c, outputs = run["h_0"][0], run["c_0"][0], []
    for x in run["x"]:
        h, c = step(x, h, c)
        outputs.append(h)
    return np.stack(outputs)


def keras_rnn(w: Weights, x: Any, h: Any, c: Any) -> Any:
    return np.tanh(x @ w["kernel"] + w["bias"] + h @ w["recurrent_kernel"]), c


def keras_lstm(w: Weights, x: Any, h: Any, c: Any) -> Any:
    z = x @ w["kernel"] + h @ w["recurrent_kernel"] + w["bias"]
    z0, z1, z2, z3 = np.split(z, 4, axis=1)
    i, f = sigmoid(z0), sigmoid(z1)
    c = f * c + i * np.tanh(z2)
    o = sigmoid(z3)
    return o * np.tanh(c), c


def keras_gru(w: Weights, x: Any, h: Any, c: Any) -> Any:
    input_bias, recurrent_bias = w["bias"]
    x_z, x_r, x_h = np.split(x @ w["kernel"] + input_bias, 3, axis=1)
    recurrent_z, recurrent_r, recurrent_h = np.split(h @ w["recurrent_kernel"] + recurrent_bias, 3, axis=1)
    z, r = sigmoid(x_z + recurrent_z), sigmoid(x_r + recurrent_r)
    hh = np.tanh(x_h + r * recurrent_h)
    return z * h + (1 - z) * hh, c


def onednn_terms(w: Weights, x: Any, h: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """W·h_{t,l-1}, U·h_{t-1,l} and B by gate; weights are laid out ldigo, the bias ldgo."""
    gates = range(w["weights_layer"].shape[3])
    layer = [np.einsum("bi,io->bo", x, w["weights_layer"][0, 0, :, g]) for g in gates]
    iteration = [np.einsum("bi,io->bo", h, w["weights_iter"][0, 0, :, g]) for g in gates]
    return layer, iteration, list(w["bias"][0, 0])


def onednn_rnn(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W,), (U,), (bias,) = onednn_terms(w, x, h)
    return np.tanh(W + U + bias), c


def onednn_lstm(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W_i, W_f, W_c, W_o), (U_i, U_f, U_c, U_o), (B_i, B_f, B_c, B_o) = onednn_terms(w, x, h)
    i, f = sigmoid(W_i + U_i + B_i), sigmoid(W_f + U_f + B_f)
    c = f * c + i * np.tanh(W_c + U_c + B_c)
    h = np.tanh(c) * sigmoid(W_o + U_o + B_o)
    return (h @ w["weights_projection"][0, 0] if "weights_projection" in w else h), c


def onednn_gru(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W_u, W_r, W_o), (U_u, U_r, U_o), (B_u, B_r, B_o, B_u_prime) = onednn_terms(w, x, h)
    u, r = sigmoid(W_u + U_u + B_u), sigmoid(W_r + U_r + B_r)
    o = np.tanh(W_o + r * (U_o + B_u_prime) + B_o)
    return u * h + (1 - u) * o, c


def cudnn_terms(w: Weights, x: Any, h: Any) -> tuple[list[Any], list[Any]]:
    """W x + b_W and R h + b_R by linLayerID."""
    products = [x @ W.T + b for W, b in zip(w["W"], w["b_W"], strict=True)]
    return products, [h @ R.T + b for R, b in zip(w["R"], w["b_R"], strict=True)]


def cudnn_rnn(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W,), (R,) = cudnn_terms(w, x, h)
    return np.tanh(W + R), c


def cudnn_lstm(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W_i, W_f, W_c, W_o), (R_i, R_f, R_c, R_o) = cudnn_terms(w, x, h)
    c = sigmoid(W_f + R_f) * c + sigmoid(W_i + R_i) * np.tanh(W_c + R_c)
    h = sigmoid(W_o + R_o) * np.tanh(c)
    return (h @ w["projection"].T if "projection" in w else h), c


def cudnn_gru(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W_r, W_i, W_h), (R_r, R_i, R_h) = cudnn_terms(w, x, h)
    i = sigmoid(W_i + R_i)
    return (1 - i) * np.tanh(W_h + sigmoid(W_r + R_r) * R_h) + i * h, c


def onnx_gates(w: Weights, x: Any, h: Any, gates: int) -> tuple[list[Any], list[Any]]:
    Wb, Rb = np.split(w["B"][0], 2)
    return np.split(x @ w["W"][0].T + Wb, gates, axis=1), np.split(h @ w["R"][0].T + Rb, gates, axis=1)


def onnx_rnn(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W,), (R,) = onnx_gates(w, x, h, 1)
    return np.tanh(W + R), c


def onnx_lstm(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W_i, W_o, W_f, W_c), (R_i, R_o, R_f, R_c) = onnx_gates(w, x, h, 4)
    c = sigmoid(W_f + R_f) * c + sigmoid(W_i + R_i) * np.tanh(W_c + R_c)
    return sigmoid(W_o + R_o) * np.tanh(c), c


def onnx_gru(w: Weights, x: Any, h: Any, c: Any) -> Any:
    (W_z, W_r, W_h), (R_z, R_r, R_h) = onnx_gates(w, x, h, 3)
    z = sigmoid(W_z + R_z)
    return (1 - z) * np.tanh(W_h + sigmoid(W_r + R_r) * R_h) + z * h, c


EQUATIONS = {(convention, cell): globals()[f"{convention}_{cell}"] for convention in CONVENTIONS[1:] for cell in CELLS}


def by_the_equations(weights: Weights, cell: str, convention: str, run: Weights) -> np.ndarray:
    return over_time(lambda x, h, c: EQUATIONS[convention, cell](weights, x, h, c), run)


@pytest.mark.parametrize(("convention", "cell"), EQUATIONS)
def test_the_documented_equations_give_torchs_output(convention: str, cell: str) -> None:
    weights, run = torch_run(cell)
    before = {name: array.tobytes() for name, array in weights.items()}
    converted = convert_weights(weights, cell, "pytorch", convention)
    assert_parity(by_the_equations(converted, cell, convention, run), run["output"], cell)
    assert {name: array.tobytes() for name, array in weights.items()} == before
    for array in converted.values():
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert not any(np.may_share_memory(array, other) for other in weights.values())


@pytest.mark.parametrize(("convention", "cell"), EQUATIONS)
def test_torch_gives_the_output_of_the_documented_equations(convention: str, cell: str) -> None:
    """The way back, from weights that were never PyTorch's."""
    rng = np.random.default_rng(3)
    like, run = torch_run(cell)
    weights = {n: rng.normal(size=a.shape) for n, a in convert_weights(like, cell, "pytorch", convention).items()}
    back = convert_weights(weights, cell, convention, "pytorch", suffix="_l0")
    module = CELLS[cell](I, H, dtype=torch.float64)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in back.items()})
    h_0, c_0 = torch.from_numpy(run["h_0"]), torch.from_numpy(run["c_0"])
    with torch.no_grad():
        output, _ = module(torch.from_numpy(run["x"]), (h_0, c_0) if cell == "lstm" else h_0)
    assert_parity(output.numpy(), by_the_equations(weights, cell, convention, run), cell)


@pytest.mark.parametrize("convention", ["cudnn", "onednn"])
def test_a_projection_is_converted_where_the_convention_has_one(convention: str) -> None:
    weights, run = torch_run("lstm", proj_size=P)
    converted = convert_weights(weights, "lstm", "pytorch", convention)
    assert_parity(by_the_equations(converted, "lstm", convention, run), run["output"], convention)
    assert not any(np.may_share_memory(a, b) for a in converted.values() for b in weights.values())
    back = convert_weights(converted, "lstm", convention, "pytorch")
    assert_array_equal(back["weight_hr"], weights["weight_hr"])
    assert_array_equal(back["weight_hh"], weights["weight_hh"])


@pytest.mark.parametrize(
    ("convention", "cell", "wrong"),
    [
        (convention, cell, "".join(wrong))
        for convention, cell in EQUATIONS
        for wrong in itertools.permutations(conventions.GATES[convention][cell])
        if "".join(wrong) != conventions.GATES[convention][cell]
    ],
)
def test_a_wrong_order_of_gates_is_noticed(
    convention: str, cell: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, run = torch_run(cell)
    monkeypatch.setitem(conventions.GATES, convention, conventions.GATES[convention] | {cell: wrong})
    output = by_the_equations(convert_weights(weights, cell, "pytorch", convention), cell, convention, run)
    assert np.abs(output - run["output"]).max() > 1e-2


# ONNX Runtime


def onnx_run(weights: Weights, cell: str, run: Weights, direction: str, **attributes: Any) -> list[np.ndarray]:
    """Y (T, D, B, H) and the final states, from a model of one node."""
    inputs = {"X": run["x"], "W": weights["W"], "R": weights["R"], "initial_h": run["h_0"]}
    if "B" in weights:
        inputs["B"] = weights["B"]
    outputs = ["Y", "Y_h"]
    names = ["X", "W", "R", "B" if "B" in weights else "", "", "initial_h"]
    if cell == "lstm":
        names, outputs = [*names, "initial_c"], [*outputs, "Y_c"]
        inputs["initial_c"] = run["c_0"]
    node = onnx.helper.make_node(cell.upper(), names, outputs, hidden_size=H, direction=direction, **attributes)

    def described(name: str, shape: tuple[int | None, ...]) -> Any:
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

    graph = onnx.helper.make_graph(
        [node],
        "one layer",
        [described(name, array.shape) for name, array in inputs.items()],
        [described(name, (None,) * (4 if name == "Y" else 3)) for name in outputs],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(outputs, inputs))


def attributes_of(cell: str) -> dict[str, int]:
    return {"linear_before_reset": 1} if cell == "gru" else {}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_onnx_runtime_gives_torchs_output(cell: str, bias: bool) -> None:
    weights, run = torch_run(cell, torch.float32, bias=bias)
    converted = convert_weights(weights, cell, "pytorch", "onnx")
    assert set(converted) == ({"W", "R", "B"} if bias else {"W", "R"})
    Y, *final = onnx_run(converted, cell, run, "forward", **attributes_of(cell))
    assert_parity(Y[:, 0], run["output"], cell, ONNX_RUNTIME)
    for got, name in zip(final, ["h_n", "c_n"], strict=False):
        assert_parity(got, run[name], cell, ONNX_RUNTIME)


@pytest.mark.parametrize("cell", CELLS)
def test_onnx_runtime_gives_torchs_output_in_two_directions(cell: str) -> None:
    weights, run = torch_run(cell, torch.float32, bidirectional=True)
    named = {n + "_l0" if not n.endswith("_reverse") else n: array for n, array in weights.items()}
    both = [convert_weights(named, cell, "pytorch", "onnx", suffix=suffix) for suffix in ("_l0", "_l0_reverse")]
    stacked = {name: np.concatenate([direction[name] for direction in both]) for name in both[0]}
    Y, *_ = onnx_run(stacked, cell, run, "bidirectional", **attributes_of(cell))
    assert_parity(Y.transpose(0, 2, 1, 3).reshape(T, B, 2 * H), run["output"], cell, ONNX_RUNTIME)


@pytest.mark.parametrize("cell", CELLS)
def test_torch_gives_onnx_runtimes_output(cell: str) -> None:
    rng = np.random.default_rng(5)
    like, run = torch_run(cell, torch.float32)
    shapes = {name: array.shape for name, array in convert_weights(like, cell, "pytorch", "onnx").items()}
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    module = CELLS[cell](I, H)
    back = convert_weights(weights, cell, "onnx", "pytorch", suffix="_l0")
    module.load_state_dict({name: torch.from_numpy(array) for name, array in back.items()})
    h_0, c_0 = torch.from_numpy(run["h_0"]), torch.from_numpy(run["c_0"])
    with torch.no_grad():
        output, _ = module(torch.from_numpy(run["x"]), (h_0, c_0) if cell == "lstm" else h_0)
    Y, *_ = onnx_run(weights, cell, run, "forward", **attributes_of(cell))
    assert_parity(output.numpy(), Y[:, 0], cell, ONNX_RUNTIME)


def test_onnx_gru_that_resets_before_the_product_is_another_function() -> None:
    weights, run = torch_run("gru", torch.float32)
    Y, *_ = onnx_run(convert_weights(weights, "gru", "pytorch", "onnx"), "gru", run, "forward", linear_before_reset=0)
    assert np.abs(Y[:, 0] - run["output"]).max() > 1e-2


# There and back


def assert_equal_weights(got: Weights, expected: Weights) -> None:
    assert set(got) == set(expected)
    for name, array in expected.items():
        assert got[name].dtype == array.dtype
        assert_array_equal(got[name], array, err_msg=name)


def invertible(convention: str, cell: str) -> bool:
    return convention in ("pytorch", "onnx", "cudnn") or (convention, cell) == ("keras", "gru")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("source", "target"), list(itertools.product(CONVENTIONS, CONVENTIONS)))
@pytest.mark.parametrize("cell", CELLS)
def test_there_and_back_is_the_identity(cell: str, source: str, target: str, bias: bool, dtype: torch.dtype) -> None:
    """Wherever both biases survive, and from a convention of one bias always."""
    weights, _ = torch_run(cell, dtype, bias=bias)
    there = convert_weights(weights, cell, "pytorch", source)
    back = convert_weights(convert_weights(there, cell, source, target), cell, target, source)
    if not bias or invertible(target, cell) or not invertible(source, cell):
        assert_equal_weights(back, there)
    else:
        assert set(back) == set(there)
        again = convert_weights(convert_weights(back, cell, source, target), cell, target, source)
        assert_equal_weights(again, back)


@pytest.mark.parametrize("convention", ["keras", "onednn"])
@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_a_single_bias_is_the_sum_and_comes_back_as_the_first(cell: str, convention: str) -> None:
    weights, _ = torch_run(cell)
    back = convert_weights(convert_weights(weights, cell, "pytorch", convention), cell, convention, "pytorch")
    assert_array_equal(back["bias_ih"], weights["bias_ih"] + weights["bias_hh"])
    assert_array_equal(back["bias_hh"], np.zeros_like(weights["bias_hh"]))


def test_onednn_keeps_the_two_biases_of_n_apart() -> None:
    weights, _ = torch_run("gru")
    back = convert_weights(convert_weights(weights, "gru", "pytorch", "onednn"), "gru", "onednn", "pytorch")
    sums = weights["bias_ih"] + weights["bias_hh"]
    assert_array_equal(back["bias_ih"], np.concatenate([sums[: 2 * H], weights["bias_ih"][2 * H :]]))
    assert_array_equal(back["bias_hh"], np.concatenate([np.zeros(2 * H), weights["bias_hh"][2 * H :]]))


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("cell", CELLS)
def test_a_module_of_ours_passes_through_every_convention(cell: str, convention: str) -> None:
    options: dict[str, Any] = {"num_layers": 2, "bidirectional": True, "dtype": np.float64}
    first, second = (getattr(numpy_rnn, cell.upper())(I, H, **options, rng=rng) for rng in (0, 1))
    layers: Weights = {}
    for suffix in ("_l0", "_l0_reverse", "_l1", "_l1_reverse"):
        there = convert_weights(first.state_dict(), cell, "pytorch", convention, suffix=suffix)
        layers |= convert_weights(there, cell, convention, "pytorch", suffix=suffix)
    second.load_state_dict(layers)
    x = np.random.default_rng(0).normal(size=(T, B, I))
    assert_parity(second(x)[0], first(x)[0], cell)


def test_tensors_and_torch_tensors_are_weights_too() -> None:
    weights, _ = torch_run("gru")
    expected = convert_weights(weights, "gru", "pytorch", "keras")
    for kind in (torch.from_numpy, numpy_rnn.Tensor, np.asfortranarray, lambda a: a.astype(">f8")):
        given = {name: kind(array) for name, array in weights.items()}
        assert_equal_weights(convert_weights(given, "gru", "pytorch", "keras"), expected)


# What is refused


def zeros(**shapes: tuple[int, ...]) -> Weights:
    return {name: np.zeros(shape) for name, shape in shapes.items()}


KERAS_GRU = zeros(kernel=(I, 3 * H), recurrent_kernel=(H, 3 * H))
ONNX_LSTM = zeros(W=(1, 4 * H, I), R=(1, 4 * H, H))
LSTM = zeros(weight_ih=(4 * H, I), weight_hh=(4 * H, H))


@pytest.mark.parametrize(
    ("weights", "cell", "source", "target", "message"),
    [
        (LSTM, "lstm", "pytorch", "tensorflow", "target must be one of pytorch, cudnn, keras, onnx, onednn, got 'tens"),
        (LSTM, "lstm", "torch", "keras", "source must be one of pytorch, .* got 'torch'"),
        (LSTM, "LSTM", "pytorch", "keras", "cell must be one of rnn, lstm, gru, got 'LSTM'"),
        (LSTM, "gru", "pytorch", "keras", r"weight_ih must be \(G\*H, I\) with G = 3 for cell 'gru', got \(20, 3\)"),
        (
            LSTM | zeros(weight_hh=(4 * H, P)),
            "lstm",
            "pytorch",
            "keras",
            r"weight_hh must be \(G\*H, H\) = \(20, 5\) for cell 'lstm', got \(20, 2\)",
        ),
        (
            LSTM | zeros(weight_hr=(P, H)),
            "lstm",
            "pytorch",
            "cudnn",
            r"weight_hh must be \(G\*H, P\) = \(20, 2\) for cell 'lstm', got \(20, 5\)",
        ),
        (LSTM | zeros(weight_ih=(4 * H,)), "lstm", "pytorch", "keras", r"weight_ih must be .* got \(20,\)"),
        (LSTM | zeros(bias_ih=(4 * H,)), "lstm", "pytorch", "keras", r"(?s)are weight_ih.*\n  missing: bias_hh$"),
        (zeros(weight_ih=(20, 3)), "lstm", "pytorch", "keras", "missing: weight_hh"),
        ({}, "lstm", "onnx", "keras", "(?s)missing: W.*missing: R"),
        (LSTM | zeros(bais_hh=(20,)), "lstm", "pytorch", "keras", "unexpected: bais_hh"),
        (zeros(weight_ih_l0=(20, 3)), "lstm", "pytorch", "keras", "suffix='_l0' chooses a layer"),
        (ONNX_LSTM | zeros(P=(1, 3 * H)), "lstm", "onnx", "pytorch", "peepholes, 'P', which PyTorch's LSTM does not"),
        (zeros(weights_peephole=(1, 1, 3, H)), "lstm", "onednn", "onnx", "peepholes, 'weights_peephole'"),
        (zeros(W=(2, 4 * H, I), R=(2, 4 * H, H)), "lstm", "onnx", "keras", r"= \(1, 20, 3\) .* got \(2, 20, 3\)"),
        (KERAS_GRU | zeros(bias=(3 * H,)), "gru", "keras", "pytorch", r"\(2, G\*H\) .*resets before the product"),
        (
            zeros(weights_layer=(1, 1, I, 3, H), weights_iter=(1, 1, H, 3, H), bias=(1, 1, 3, H)),
            "gru",
            "onednn",
            "pytorch",
            r"\(1, 1, 4, H\) .*resets before the product",
        ),
        (KERAS_GRU | zeros(bias=(6 * H,)), "gru", "keras", "pytorch", r"= \(2, 15\) for cell 'gru', got \(30,\)$"),
    ],
)
def test_what_cannot_be_converted_is_refused(
    weights: Weights, cell: str, source: str, target: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        convert_weights(weights, cell, source, target)


@pytest.mark.parametrize("target", ["keras", "onnx"])
def test_a_projection_has_no_place_in_keras_and_onnx(target: str) -> None:
    weights, _ = torch_run("lstm", proj_size=P)
    with pytest.raises(ValueError, match=f"projection, and the LSTM of the convention {target} has none"):
        convert_weights(weights, "lstm", "pytorch", target)


def test_weights_are_of_one_floating_point_dtype() -> None:
    mixed = LSTM | {"weight_hh": LSTM["weight_hh"].astype(np.float32)}
    with pytest.raises(TypeError, match="one floating-point dtype, got float32, float64"):
        convert_weights(mixed, "lstm", "pytorch", "keras")
    integers = {name: array.astype(int) for name, array in LSTM.items()}
    with pytest.raises(TypeError, match="one floating-point dtype, got int64"):
        convert_weights(integers, "lstm", "pytorch", "keras")
    with pytest.raises(TypeError, match=r"weights\['weight_ih'\] must be float16"):
        convert_weights({"weight_ih": np.zeros(2, complex)}, "lstm", "pytorch", "keras")
