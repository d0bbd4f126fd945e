"""The RNN module against torch.nn.RNN: every output and every gradient, over every combination of options."""

import itertools
from typing import Any

import numpy as np
import pytest

import numpy_rnn
from numpy_rnn.cells import rnn as cell
from parity_tests.helpers import assert_all_parity, randomise, run_both

T, B, I, H = 6, 4, 3, 5  # noqa: E741


def reads(name: str) -> Any:
    """What the loss looks at."""

    def call(module: Any, *inputs: Any) -> list[Any]:
        output, h_n = module(*inputs)
        return {"output": [output], "h_n": [h_n], "both": [output, h_n], "one step": [output[0]]}[name]

    return call


def keep_clear_of_the_kink(module: numpy_rnn.Module, rng: np.random.Generator) -> None:
    """Give all weights of a unit one sign: for positive inputs it is then clearly open or clearly closed.

    In float32 a relu's input within rounding of 0 can be open in one library and closed in the other, and then whole
    gradients differ, rightly. float64 is tested without this.
    """
    signs = rng.choice([-1, 1], H, p=[0.4, 0.6])
    with numpy_rnn.no_grad():
        for parameter in module.parameters():
            parameter.copy_((np.abs(parameter.data).T * signs).T)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["time-major", "batch_first", "unbatched"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_all_gradients(
    num_layers: int, bidirectional: bool, nonlinearity: str, bias: bool, layout: str, dtype: str
) -> None:
    rng = np.random.default_rng([num_layers, bidirectional, bias])
    module = numpy_rnn.RNN(
        I, H, num_layers, nonlinearity, bias, layout == "batch_first", bidirectional=bidirectional, dtype=dtype
    )
    states = num_layers * (1 + bidirectional)
    for steps, batch, state, read in itertools.product(
        (1, T), (1, B), ("none", "given", "learnable"), ("output", "h_n", "both", "one step")
    ):
        randomise(module, rng)
        clear = nonlinearity == "relu" and dtype == "float32"
        if clear:
            keep_clear_of_the_kink(module, rng)
        shape = {
            "time-major": (steps, batch, I),
            "batch_first": (batch, steps, I),
            "unbatched": (steps, I),
        }[layout]
        state_shape = (states, H) if layout == "unbatched" else (states, batch, H)
        arrays = [rng.normal(size=shape).astype(dtype)]
        if state != "none":
            arrays.append(rng.normal(size=state_shape).astype(dtype))
        if clear:
            arrays = [np.abs(array) for array in arrays]
        requires_grad = [True, state == "learnable"][: len(arrays)]
        pairs = run_both(module, arrays, requires_grad, reads(read), rng)
        assert_all_parity(pairs, f"T={steps} B={batch} state {state}, loss reads {read}")


def test_frozen_parameters_and_inputs_get_no_gradient_and_the_others_theirs() -> None:
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l1", "weight_hh_l1")
    rng = np.random.default_rng(0)
    for learnt in itertools.product((False, True), repeat=len(names)):
        module = randomise(numpy_rnn.RNN(I, H, 2, dtype="float64"), rng).requires_grad_(False)
        for name, learn in zip(names, learnt, strict=True):
            getattr(module, name).requires_grad = learn
        for grads in itertools.product((False, True), repeat=2):
            if not any(learnt) and not any(grads):
                continue
            arrays = [rng.normal(size=(T, B, I)), rng.normal(size=(2, B, H))]
            assert_all_parity(run_both(module, arrays, grads, reads("both"), rng), (learnt, grads))


@pytest.mark.parametrize("learnt", ["weight_hh_l0", "weight_hh_l0_reverse", "bias_ih_l1_reverse"])
def test_one_direction_of_one_layer_learns_alone(learnt: str) -> None:
    rng = np.random.default_rng(0)
    module = randomise(numpy_rnn.RNN(I, H, 2, bidirectional=True, dtype="float64"), rng).requires_grad_(False)
    getattr(module, learnt).requires_grad = True
    pairs = run_both(module, [rng.normal(size=(T, B, I))], [False], reads("both"), rng)
    assert_all_parity(pairs, learnt)
    assert pairs[f"d {learnt}"][0] is not None


def test_the_cells_backward_leaves_every_upstream_gradient_as_it_was() -> None:
    rng = np.random.default_rng(0)
    x, h_0, w_ih, w_hh = (rng.normal(size=s) for s in ((T, B, I), (B, H), (H, I), (H, H)))
    h, _, saved = cell.forward(x, h_0, w_ih, w_hh)
    dh, dh_n = rng.normal(size=h.shape), rng.normal(size=h_0.shape)
    before = dh.tobytes(), dh_n.tobytes()
    cell.backward(dh, dh_n, saved, w_ih, w_hh)
    assert (dh.tobytes(), dh_n.tobytes()) == before


def test_one_module_called_twice_in_a_graph_adds_its_gradients_up() -> None:
    def call(module: Any, x: Any, y: Any) -> list[Any]:
        output, h_n = module(x)
        return [module(y, h_n)[0] + output, h_n]

    rng = np.random.default_rng(0)
    module = randomise(numpy_rnn.RNN(I, H, dtype="float64"), rng)
    arrays = [rng.normal(size=(T, B, I)), rng.normal(size=(T, B, I))]
    assert_all_parity(run_both(module, arrays, [True, True], call, rng), "two calls")


@pytest.mark.parametrize("layout", ["strided", "reversed", "transposed", "broadcast"])
def test_arrays_in_any_memory_layout(layout: str) -> None:
    rng = np.random.default_rng(0)
    module = randomise(numpy_rnn.RNN(I, H, 2, bidirectional=True, dtype="float64"), rng)
    x, hx = {
        "strided": (rng.normal(size=(2 * T, B, 2 * I))[::2, :, ::2], rng.normal(size=(4, B, 2 * H))[:, :, ::2]),
        "reversed": (rng.normal(size=(T, B, I))[::-1, :, ::-1], rng.normal(size=(4, B, H))[::-1]),
        "transposed": (rng.normal(size=(I, B, T)).T, rng.normal(size=(H, B, 4)).T),
        "broadcast": (np.broadcast_to(rng.normal(size=I), (T, B, I)), np.broadcast_to(rng.normal(size=H), (4, B, H))),
    }[layout]
    assert_all_parity(run_both(module, [x, hx], [True, True], reads("both"), rng), layout)


def test_an_empty_batch_gives_empty_outputs_and_zero_gradients() -> None:
    module = numpy_rnn.RNN(I, H, 2, bidirectional=True, dtype="float64", rng=0)
    rng = np.random.default_rng(0)
    assert_all_parity(run_both(module, [np.zeros((T, 0, I))], [True], reads("both"), rng), "B=0")
    assert module.weight_hh_l0.grad is not None
    assert not module.weight_hh_l0.grad.numpy().any()


def test_relu_passes_no_gradient_at_zero_and_passes_it_at_nan() -> None:
    module = numpy_rnn.RNN(1, 3, nonlinearity="relu", dtype="float64", rng=0)
    weight = np.array([[1.0], [-1.0], [np.nan]])
    zeros = np.zeros(3)
    module.load_state_dict(
        {"weight_ih_l0": weight, "weight_hh_l0": np.zeros((3, 3)), "bias_ih_l0": zeros, "bias_hh_l0": zeros}
    )
    x = np.array([[[0.0], [2.0]]])  # one step, a batch of two: the outputs are 0, 0, nan and 2, 0, nan
    pairs = run_both(module, [x], [True], reads("output"), np.random.default_rng(0))
    assert_all_parity(pairs, "relu at 0 and nan")
    bias = np.asarray(pairs["d bias_ih_l0"][0])
    assert bias[0] != 0
    assert bias[1] == 0
    assert np.isfinite(bias[2])


def test_relu_passes_no_infinite_upstream_gradient_where_it_is_closed() -> None:
    module = numpy_rnn.RNN(1, 1, nonlinearity="relu", bias=False, dtype="float64", rng=0)
    module.load_state_dict({"weight_ih_l0": [[-1.0]], "weight_hh_l0": [[0.5]]})
    x = numpy_rnn.Tensor(np.ones((1, 1, 1)), requires_grad=True)
    output, _ = module(x)
    output.backward(np.full((1, 1, 1), np.inf))
    assert x.grad is not None
    assert x.grad.item() == 0


def test_float32_stays_float32_everywhere() -> None:
    model = numpy_rnn.SequenceModel("rnn", I, H, 2, num_layers=2, rng=0)
    optimizers = [
        numpy_rnn.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
        numpy_rnn.Adadelta(model.parameters(), weight_decay=0.1),
    ]
    x = numpy_rnn.Tensor(np.ones((T, B, I), np.float32), requires_grad=True)
    hx = numpy_rnn.Tensor(np.ones((2, B, H), np.float32), requires_grad=True)
    output, h_n = model(x, hx)
    loss = numpy_rnn.mse_loss(output, np.zeros((T, B, 2), np.float32))
    (loss + loss + 1.0).backward()
    numpy_rnn.clip_grad_norm_(model.parameters(), 0.1)
    for optimizer in optimizers:
        optimizer.step()
    seen = [output, h_n, loss, x.grad, hx.grad, output[1:], h_n.detach().clone()]
    seen += list(model.parameters()) + [p.grad for p in model.parameters()]
    assert {t.dtype for t in seen if t is not None} == {np.dtype(np.float32)}
    buffers = [value for o in optimizers for state in o.state.values() for value in state.values()]
    assert {b.dtype for b in buffers if isinstance(b, np.ndarray)} == {np.dtype(np.float32)}
    assert all(array.dtype == np.float32 for array in model.state_dict().values())


@pytest.mark.parametrize("masked", [False, True], ids=["", "masks"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(("kind", "own"), [("RNN", {}), ("LSTM", {}), ("LSTM", {"proj_size": 2}), ("GRU", {})])
def test_the_output_is_the_users_to_write_into(
    kind: str, own: dict[str, int], num_layers: int, bidirectional: bool, masked: bool
) -> None:
    """Whatever is written into what comes out, no gradient changes by a bit."""
    rng = np.random.default_rng(0)
    options = {"num_layers": num_layers, "bidirectional": bidirectional, **own}
    module = randomise(getattr(numpy_rnn, kind)(I, H, **options, dtype="float64"), rng)
    width = own.get("proj_size", H) * (1 + bidirectional)
    masks = [rng.choice([0.0, 2.0], (T, B, width)) for _ in range(num_layers - 1)] if masked else None
    x = numpy_rnn.Tensor(rng.normal(size=(T, B, I)), requires_grad=True)
    gradients = []
    for spoil in (False, True):
        x.grad = None
        module.zero_grad()
        output, state = module(x, dropout_masks=masks)
        results = [output, *(state if isinstance(state, tuple) else (state,))]
        upstream = [np.ones(result.shape) for result in results]
        if spoil:
            for result in results:
                result.detach().zero_()
        numpy_rnn.backward(results, upstream)
        gradients.append([p.grad.numpy().copy() for p in (x, *module.parameters())])
    for unspoilt, spoilt in zip(*gradients, strict=True):
        np.testing.assert_array_equal(spoilt, unspoilt)


def test_initial_weights_come_from_a_seed_or_generator_and_their_law() -> None:
    a, b = numpy_rnn.RNN(I, 50, rng=3), numpy_rnn.RNN(I, 50, rng=np.random.default_rng(3))
    c = numpy_rnn.RNN(I, 50, rng=4)
    assert all(np.array_equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert not np.array_equal(a.weight_hh_l0, c.weight_hh_l0)
    values = a.weight_hh_l0.numpy() * np.sqrt(50)
    assert np.abs(values).max() <= 1
    np.testing.assert_allclose([values.mean(), values.var()], [0, 1 / 3], atol=0.03)
