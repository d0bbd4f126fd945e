"""Optimizers and clipping against torch: 200 steps in float64, state dicts, errors."""

import copy
import inspect
import itertools
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import numpy_rnn
from numpy_rnn import SGD, Adadelta, Parameter, Tensor, clip_grad_norm_, clip_grad_value_, get_total_norm
from numpy_rnn.optim import blocks as blocks_module
from numpy_rnn.optim import optimizer as optimizer_module
from numpy_rnn.optim.blocks import BLOCK, LINE
from parity_tests.helpers import assert_parity
from parity_tests.mutations import mutated
from parity_tests.mutations.optim import MISTAKES

SHAPES = [(3, 4), (4,), (2, 1, 5)]

ON_OFF = (False, True)


def product(name: str, keep: Callable[[dict[str, Any]], bool] = lambda _: True, **choices: Sequence[Any]) -> list[Any]:
    """Every combination of the choices that ``keep`` keeps, and the defaults."""
    combinations = (dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))
    return [(name, {}), *((name, settings) for settings in combinations if keep(settings))]


DECAYED = {"weight_decay": (0, 0.1), "maximize": ON_OFF}
BETAS = [(0.9, 0.999), (0.3, 0.95), (0.0, 0.0)]

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *product(
        "SGD",
        lambda s: not s["nesterov"] or bool(s["momentum"] and not s["dampening"]),
        lr=[0.05],
        momentum=(0, 0.9),
        dampening=(0, 0.3),
        nesterov=ON_OFF,
        **DECAYED,
    ),
    *product("Adadelta", lr=[0.5], rho=(0.5, 0.95), eps=(1e-6, 1e-3), **DECAYED),
    *product("Adagrad", lr=[0.05], lr_decay=(0, 0.1), initial_accumulator_value=(0, 0.5), eps=(1e-10, 1e-3), **DECAYED),
    *product("RMSprop", alpha=(0.5, 0.9), eps=[1e-3], momentum=(0, 0.9), centered=ON_OFF, **DECAYED),
    *product("Adam", betas=BETAS, eps=(1e-8, 1e-3), amsgrad=ON_OFF, **DECAYED),
    *product("AdamW", lr=[0.05], betas=BETAS, eps=(1e-8, 1e-3), amsgrad=ON_OFF, **DECAYED),
    *product("NAdam", betas=BETAS[:2], momentum_decay=(0, 0.1), decoupled_weight_decay=ON_OFF, **DECAYED),
    *product("RAdam", betas=[(0.3, 0.95), (0.5, 0.99)], eps=(1e-8, 1e-3), decoupled_weight_decay=ON_OFF, **DECAYED),
    *product("Adamax", betas=BETAS, eps=(1e-8, 1e-3), **DECAYED),
    *product("ASGD", lr=[0.05], lambd=(0, 0.1), alpha=(0.75, 1), t0=(1e6, 0, 50), **DECAYED),
]
OPTIMIZERS = sorted({name for name, _ in SETTINGS})

EXTRA: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "nesterov": True},
    "RMSprop": {"momentum": 0.9},
    "Adam": {"amsgrad": True},
    "AdamW": {"amsgrad": True},
    "ASGD": {"t0": 2, "lambd": 0.1},
}


def pair(name: str, settings: dict[str, Any], dtype: Any = np.float64) -> tuple[list[Parameter], list[Any], Any, Any]:
    rng = np.random.default_rng(0)
    ours = [Parameter(rng.normal(size=shape).astype(dtype)) for shape in SHAPES]
    theirs = [torch.nn.Parameter(torch.from_numpy(p.numpy().copy())) for p in ours]
    return ours, theirs, getattr(numpy_rnn, name)(ours, **settings), getattr(torch.optim, name)(theirs, **settings)


def step(ours: list[Any], theirs: list[Any], optimizers: Sequence[Any], rng: np.random.Generator, k: int) -> None:
    """One step on gradients that are normal, large, tiny, zero or missing in turn."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        scale = (1.0, 1e3, 1e-7, 0.0, None)[(k + i) % 5]
        gradient = None if scale is None else (scale * rng.normal(size=a.shape)).astype(a.dtype)
        a.grad = None if gradient is None else Tensor(gradient.copy())
        b.grad = None if gradient is None else torch.from_numpy(np.array(gradient))
    for optimizer in optimizers:
        optimizer.step()


def assert_equal_runs(ours: list[Any], theirs: list[Any], optimizer: Any, torch_optimizer: Any) -> None:
    """The weights, every entry of every state, and the versions."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert_parity(a, b, f"parameter {i}")
        assert a.version == b._version + 1  # ours starts at 1, a plain torch Parameter at 0
        state = {key: value for key, value in torch_optimizer.state[b].items() if value is not None}
        assert set(optimizer.state[a]) == set(state)
        for key, value in state.items():
            if value.ndim:
                assert_parity(optimizer.state[a][key], value, f"{key} of parameter {i}")
            else:
                assert optimizer.state[a][key] == value.item(), key


def two_hundred_steps(name: str, settings: dict[str, Any]) -> None:
    ours, theirs, *optimizers = pair(name, settings)
    rng = np.random.default_rng(1)
    for k in range(200):
        step(ours, theirs, optimizers, rng, k)
    assert_equal_runs(ours, theirs, *optimizers)


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_two_hundred_steps(name: str, settings: dict[str, Any]) -> None:
    try:
        two_hundred_steps(name, settings)
    except AssertionError as error:
        error.add_note(f"{name} with {settings}")
        raise


@pytest.mark.parametrize(("name", "settings", "mutation"), MISTAKES)
def test_the_usual_mistakes_are_noticed(name: str, settings: dict[str, Any], mutation: Any) -> None:
    two_hundred_steps(name, settings)
    with mutated(*mutation), np.errstate(invalid="ignore"), pytest.raises(AssertionError):
        two_hundred_steps(name, settings)


@pytest.mark.parametrize("name", ["NAdam", "ASGD"])
def test_numbers_of_a_state_are_float32_unless_the_default_is_float64(name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(optimizer_module, "SCALAR", np.float64)
    settings = {"t0": 50} if name == "ASGD" else {}
    with pytest.raises(AssertionError):
        two_hundred_steps(name, settings)
    torch.set_default_dtype(torch.float64)
    try:
        two_hundred_steps(name, settings)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_float32_stays_float32(name: str) -> None:
    ours, theirs, *optimizers = pair(name, {}, dtype=np.float32)
    rng = np.random.default_rng(1)
    for k in range(50):
        step(ours, theirs, optimizers, rng, k)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert_parity(a, b, f"parameter {i}", 1e-5)
        for key, value in optimizers[1].state[b].items():
            if value.ndim:
                assert_parity(optimizers[0].state[a][key], value, key, 1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("value", [0.0, 1e-7, 1e120, 1e160, np.inf, np.nan])
def test_gradients_all_alike(name: str, value: float) -> None:
    """Including those whose squares overflow; the momenta and the extra state are on where there are any."""
    ours, theirs, *optimizers = pair(name, EXTRA.get(name, {}))
    for _ in range(3):
        for a, b in zip(ours, theirs, strict=True):
            a.grad, b.grad = Tensor(np.full(a.shape, value)), torch.full(a.shape, value, dtype=torch.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            optimizers[0].step()
        optimizers[1].step()
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert_parity(a, b, f"parameter {i}")
        for key, theirs_ in optimizers[1].state[b].items():
            if theirs_.ndim:
                assert_parity(optimizers[0].state[a][key], theirs_, key)


def as_torch(state_dict: dict[str, Any]) -> dict[str, Any]:
    state = {
        i: {key: torch.tensor(value) if key != "step" else value for key, value in entries.items()}
        for i, entries in state_dict["state"].items()
    }
    return {**state_dict, "state": state}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_state_dict_goes_on_where_it_was(name: str) -> None:
    """In ours, from ours to torch, and from torch to ours."""
    settings = EXTRA.get(name, {}) | {"weight_decay": 0.1, "lr": 0.03}
    ours, theirs, *optimizers = pair(name, settings)
    rng = np.random.default_rng(1)
    for k in range(7):
        step(ours, theirs, optimizers, rng, k)
    saved, torch_saved = (optimizer.state_dict() for optimizer in optimizers)
    assert saved["state"].keys() == torch_saved["state"].keys()
    assert all(saved["state"][i].keys() == torch_saved["state"][i].keys() for i in saved["state"])
    before = copy.deepcopy(saved)

    fresh, torch_fresh = copies(ours), copies(ours)
    restored = getattr(numpy_rnn, name)([p for p, _ in fresh])
    restored.load_state_dict(saved)
    from_torch = getattr(numpy_rnn, name)([p for p, _ in torch_fresh])
    from_torch.load_state_dict(torch_saved)
    in_torch = getattr(torch.optim, name)([p for _, p in fresh])
    in_torch.load_state_dict(in_torch.state_dict() | as_torch(saved) | {"param_groups": torch_saved["param_groups"]})
    if name == "NAdam":  # loading makes torch's mu_product float64, so that torch resumed is not torch uninterrupted
        for _, p in fresh:
            in_torch.state[p]["mu_product"] = in_torch.state[p]["mu_product"].float()
    for k in range(7, 20):
        step(ours, theirs, optimizers, np.random.default_rng(k), k)
        step([p for p, _ in fresh], [p for _, p in fresh], (restored, in_torch), np.random.default_rng(k), k)
        step([p for p, _ in torch_fresh], theirs, (from_torch,), np.random.default_rng(k), k)
    for a, (b, c), (d, _) in zip(ours, fresh, torch_fresh, strict=True):
        assert_array_equal(a, b)
        assert_parity(a, c, "in torch")
        assert_parity(a, d, "from torch")
    np.testing.assert_equal(saved, before)  # what was saved did not go on with the run


def copies(parameters: list[Parameter]) -> list[tuple[Parameter, Any]]:
    arrays = [p.numpy() for p in parameters]
    return [(Parameter(a.copy()), torch.nn.Parameter(torch.from_numpy(a.copy()))) for a in arrays]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_groups_like_torch(name: str) -> None:
    rng = np.random.default_rng(0)
    (a, at), (b, bt), (c, ct) = copies([Parameter(rng.normal(size=3)) for _ in range(3)])
    runs = []
    for module, (x, y, z) in ((numpy_rnn, (a, b, c)), (torch.optim, (at, bt, ct))):
        optimizer = getattr(module, name)([{"params": x, "lr": 0.3}, {"params": [y], "weight_decay": 0.2}], lr=0.1)
        optimizer.add_param_group({"params": [z], "maximize": True})
        runs.append(optimizer)
    for k in range(10):
        step([a, b, c], [at, bt, ct], runs, rng, k)
    assert_equal_runs([a, b, c], [at, bt, ct], *runs)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_defaults_and_argument_order_are_torchs(name: str) -> None:
    ours = inspect.signature(getattr(numpy_rnn, name)).parameters
    theirs = inspect.signature(getattr(torch.optim, name)).parameters
    names = [key for key in theirs if key in ours]
    positional = [key for key in ours if ours[key].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert set(theirs) - set(ours) == {"foreach", "capturable", "differentiable", "fused"} & set(theirs)
    assert set(ours) <= set(theirs)
    assert list(theirs)[: len(positional)] == positional
    assert {key: ours[key].default for key in names} == {key: theirs[key].default for key in names}


def test_a_parameter_of_no_dimensions() -> None:
    for name in OPTIMIZERS:
        p = Parameter(np.array(2.0))
        memory, q = p.data, torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        optimizers = (
            getattr(numpy_rnn, name)([p], **EXTRA.get(name, {})),
            getattr(torch.optim, name)([q], **EXTRA.get(name, {})),
        )
        for k in range(10):
            step([p], [q], optimizers, np.random.default_rng(k), k)
        assert p.data is memory
        assert_parity(p, q, name)
        optimizers[0].load_state_dict(optimizers[0].state_dict())
        optimizers[0].step()


def test_a_closure_is_called_first_and_its_loss_returned() -> None:
    parameter = Parameter(np.ones(1))

    def closure() -> float:
        parameter.grad = Tensor(np.ones(1))
        return 3.5

    assert SGD([parameter], lr=0.5).step(closure) == 3.5
    assert parameter.item() == 0.5


def test_zero_grad_can_keep_the_array() -> None:
    a, b = Parameter(np.ones(1)), Parameter(np.ones(1))
    a.grad = gradient = Tensor(np.ones(1))
    SGD([a, b]).zero_grad(set_to_none=False)
    assert a.grad is gradient
    assert (gradient.item(), gradient.version) == (0, 1)
    assert b.grad is None


def test_centred_rmsprop_on_a_constant_gradient_loses_digits_as_torch_does() -> None:
    """Under the root stands a difference of two numbers that become equal."""
    ours, theirs, *optimizers = pair("RMSprop", {"centered": True, "alpha": 0.9})
    for k in range(200):
        for a, b in zip(ours, theirs, strict=True):
            a.grad, b.grad = Tensor(np.full(a.shape, 0.7)), torch.full(a.shape, 0.7, dtype=torch.float64)
        for optimizer in optimizers:
            optimizer.step()
        if k == 40:
            assert_parity(ours[0], theirs[0], "after 40 steps", 1e-10)
    state, torch_state = optimizers[0].state[ours[0]], optimizers[1].state[theirs[0]]
    for key in ("square_avg", "grad_avg"):
        assert_parity(state[key], torch_state[key], key)


def test_parameter_groups_have_settings_of_their_own() -> None:
    a, b = Parameter(np.ones(1)), Parameter(np.ones(1))
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    for p in (a, b):
        p.grad = Tensor(np.ones(1))
    optimizer.step()
    assert_allclose([a.item(), b.item()], [0.9, 0.5])
    optimizer.zero_grad()
    assert a.grad is None
    assert b.grad is None


def test_a_step_writes_in_place_and_keeps_the_gradient() -> None:
    p = Parameter(np.ones(2))
    memory, gradient = p.data, np.full(2, 2.0)
    p.grad = Tensor(gradient)
    for optimizer in (SGD([p], lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True), Adadelta([p], weight_decay=0.1)):
        optimizer.step()
        optimizer.step()
    assert p.data is memory
    assert_array_equal(gradient, [2, 2])
    assert p.version == 5


# Arrays for intermediate results: scale and change, one after the other in one; two at once where an update needs both.
# A changed gradient (maximize, coupled decay) is one more.
SCRATCH = dict.fromkeys(OPTIMIZERS, 1) | {"Adadelta": 2, "NAdam": 2}
OBJECTS = 1 << 15  # bytes of Python objects: views, generators, numbers


def allocated(call: Callable[[], object]) -> int:
    """The most bytes that stood during ``call`` above those before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "settings", "more"),
    [(name, {}, 0) for name in OPTIMIZERS]
    + [(name, EXTRA[name], 0) for name in EXTRA]
    + [(name, {"weight_decay": 0.1, "maximize": True}, 1) for name in OPTIMIZERS],
)
def test_a_step_needs_no_memory_but_a_block(name: str, settings: dict[str, Any], more: int, dtype: Any) -> None:
    big = Parameter(np.ones((600, 700), dtype))  # 13 to 26 blocks
    big.grad = Tensor(np.ones((600, 700), dtype))
    optimizer = getattr(numpy_rnn, name)([big], **settings)
    optimizer.step()  # makes the state
    allowed = (SCRATCH[name] + more) * (BLOCK + LINE) + OBJECTS
    assert allowed < big.data.nbytes / 2
    assert allocated(optimizer.step) <= allowed


@pytest.mark.parametrize("norm_type", [2, 1, 0.5, 0, np.inf])
def test_clipping_needs_no_memory_but_a_few_blocks(norm_type: float) -> None:
    big = Parameter(np.ones((600, 700)))
    big.grad = Tensor(np.ones((600, 700)))
    expected = np.linalg.norm(big.grad.data.ravel(), norm_type) if norm_type else 1
    assert_allclose(get_total_norm(big.grad, norm_type), expected, rtol=1e-12)
    few = 3 * BLOCK + OBJECTS  # inside np.linalg.norm: the sizes and their powers
    assert allocated(lambda: clip_grad_norm_([big], 1.0, norm_type)) <= few
    assert allocated(lambda: clip_grad_value_([big], 1e-4)) <= OBJECTS
    assert allocated(lambda: SGD([big]).zero_grad(set_to_none=False)) <= OBJECTS


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": np.ascontiguousarray,
    "transposed": lambda a: a.T.copy().T,
    "axes turned": lambda a: a.transpose(1, 2, 0).copy().transpose(2, 0, 1),
    "every second": lambda a: np.repeat(a, 2, axis=2)[..., ::2],
    "backwards": lambda a: a[::-1, :, ::-1].copy()[::-1, :, ::-1],
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(
    ("of_p", "of_g"), [(k, k) for k in LAYOUTS] + [("transposed", "plain"), ("plain", "backwards")]
)
@pytest.mark.parametrize("block", [64, 512])
def test_arrays_of_any_layout_are_updated_in_place(
    name: str, of_p: str, of_g: str, block: int, monkeypatch: Any
) -> None:
    """Blocks of 8 elements are less than a row of the array, of 64 more; all give the numbers of one block.

    Not always the bits: a vectorized loop may round the last elements of a block otherwise than those before.
    """
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=(3, 5, 11)), rng.normal(size=(3, 3, 5, 11))
    results = []
    for size, p_layout, g_layout in ((1 << 17, "plain", "plain"), (block, of_p, of_g)):
        monkeypatch.setattr(blocks_module, "BLOCK", size)
        memory = LAYOUTS[p_layout](start.copy())
        parameter = Parameter(memory)
        optimizer = getattr(numpy_rnn, name)([parameter], **EXTRA.get(name, {}) | {"weight_decay": 0.1})
        for gradient in gradients:
            parameter.grad = Tensor(LAYOUTS[g_layout](gradient))
            optimizer.step()
            assert_array_equal(parameter.grad, gradient)
        assert parameter.data is memory
        results.append(memory)
    assert_allclose(results[1], results[0], rtol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [1, 8, 64, 10**6])
def test_blocks_are_views_that_hold_each_element_once(layout: str, size: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK", 8 * size)
    array, other = LAYOUTS[layout](np.zeros((3, 5, 11))), np.arange(165.0).reshape(3, 5, 11)
    for a, b, nothing, t in blocks_module.blocks(array, other, None, scratch=1):
        assert nothing is None
        assert a.shape == b.shape == t.shape
        assert a.size <= size
        assert np.may_share_memory(a, array)
        a += b + 1
    assert_array_equal(array, other + 1)


CLIPS = {
    "above": ([[3.0], [4.0]], 1.0),
    "below": ([[3.0], [4.0]], 10.0),
    "exactly": ([[3.0], [4.0]], 5.0),
    "zero": ([[0.0], [0.0]], 1.0),
    "to zero": ([[3.0], [4.0]], 0.0),
    "unbounded": ([[3.0], [4.0]], np.inf),
    "infinite": ([[np.inf, 1.0], [4.0]], 1.0),
    "nan": ([[np.nan, 1.0], [4.0]], 1.0),
    "missing": ([None, [4.0]], 1.0),
    "all missing": ([None, None], 1.0),
}


def with_gradients(gradients: list[Any], dtype: str) -> tuple[list[Tensor], list[Any]]:
    ours, theirs = [], []
    for gradient in gradients:
        array = np.zeros(1) if gradient is None else np.array(gradient, dtype)
        ours.append(Tensor(np.zeros_like(array)))
        theirs.append(torch.from_numpy(np.zeros_like(array)))
        if gradient is not None:
            ours[-1].grad, theirs[-1].grad = Tensor(array.copy()), torch.from_numpy(array.copy())
    return ours, theirs


def assert_equal_gradients(ours: list[Tensor], theirs: list[Any], dtype: str) -> None:
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert (a.grad is None) == (b.grad is None), f"the gradient of parameter {i} is None on one side only"
        if a.grad is not None:
            assert_allclose(a.grad, b.grad, rtol=1e-6 if dtype == "float32" else 1e-15)
            assert (a.grad.dtype, a.grad.version) == (np.dtype(dtype), b.grad._version)


@pytest.mark.parametrize("case", CLIPS)
@pytest.mark.parametrize("norm_type", [2, 1, 0.5, 3, 0, np.inf, "inf", -1, -np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_clipping(case: str, norm_type: Any, dtype: str) -> None:
    gradients, max_norm = CLIPS[case]
    ours, theirs = with_gradients(gradients, dtype)
    with np.errstate(all="raise"):
        before = get_total_norm((p.grad for p in ours if p.grad is not None), norm_type)
        norm = clip_grad_norm_(iter(ours), max_norm, norm_type)
    assert_allclose(norm, float(torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)), rtol=1e-6)
    assert_allclose(before, norm, rtol=0)
    assert_equal_gradients(ours, theirs, dtype)


@pytest.mark.parametrize("norm_type", [2, 1, 0.5, 0, np.inf])
def test_clipping_of_several_shapes(norm_type: float) -> None:
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=shape) for shape in [(), (3, 4), (2, 1, 5), (1, 1)]]
    gradients[1][0, 0] = 0
    ours, theirs = with_gradients(gradients, "float64")
    clip_grad_norm_(ours, 0.7, norm_type)
    torch.nn.utils.clip_grad_norm_(theirs, 0.7, norm_type)
    assert_equal_gradients(ours, theirs, "float64")


def test_the_norm_of_one_tensor_and_of_none() -> None:
    assert get_total_norm(Tensor(np.array([[3.0], [4.0]]))) == 5
    assert get_total_norm([]) == float(torch.nn.utils.get_total_norm([])) == 0
    assert get_total_norm([Tensor(np.zeros((0, 3))), Tensor(np.array([-2.0]))], np.inf) == 2


@pytest.mark.parametrize("clip_value", [1.0, 0.5, 0, 100, np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_clipping_by_value(clip_value: float, dtype: str) -> None:
    ours, theirs = with_gradients([[3.0, -4.0, 0.5, -0.5, 0.0, np.nan, np.inf, -np.inf], None, [[1e-7, -2.0]]], dtype)
    clip_grad_value_(iter(ours), clip_value)
    torch.nn.utils.clip_grad_value_(theirs, clip_value)
    assert_equal_gradients(ours, theirs, dtype)


def test_clipping_by_value_without_a_gradient_does_nothing() -> None:
    clip_grad_value_(Parameter(np.ones(1)), 1.0)
    with pytest.raises(RuntimeError, match="nested_tensorlist"):  # torch's own answer
        torch.nn.utils.clip_grad_value_(torch.nn.Parameter(torch.ones(1)), 1.0)


def test_clipping_refuses_what_is_not_finite_and_changes_nothing() -> None:
    p = Parameter(np.ones(2))
    p.grad = Tensor(np.array([np.nan, 1.0]))
    for norm_type in (2, 1, 0.5, np.inf):
        with pytest.raises(RuntimeError, match="total norm of the gradients is nan"):
            clip_grad_norm_([p], 1.0, norm_type, error_if_nonfinite=True)
    with pytest.raises(RuntimeError, match="total norm of the gradients is inf"):
        get_total_norm([Tensor(np.array([-np.inf]))], error_if_nonfinite=True)
    assert p.grad.version == 0
    assert p.grad.numpy()[1] == 1


def p() -> Parameter:
    return Parameter(np.ones(2))


def with_gradient(gradient: np.ndarray) -> SGD:
    parameter = p()
    parameter.grad = Tensor(gradient)
    return SGD([parameter])


TWICE = p()
CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: SGD([p()], lr=-1), ValueError, "lr must be at least 0, got -1"),
    (lambda: SGD([p()], lr=np.nan), ValueError, "lr must be at least 0, got nan"),
    (lambda: SGD([p()], momentum=-1), ValueError, "momentum must be at least 0, got -1"),
    (lambda: SGD([p()], weight_decay=-1), ValueError, "weight_decay must be at least 0, got -1"),
    (lambda: SGD([p()], nesterov=True), ValueError, "nesterov needs momentum above 0 and dampening 0, got momentum 0"),
    (lambda: SGD([p()], momentum=0.9, dampening=0.1, nesterov=True), ValueError, "nesterov needs"),
    (lambda: Adadelta([p()], lr=-1), ValueError, "lr must be at least 0"),
    (lambda: Adadelta([p()], rho=2), ValueError, r"rho must be in \[0, 1\], got 2"),
    (lambda: Adadelta([p()], eps=-1), ValueError, "eps must be at least 0, got -1"),
    *(
        (lambda name=name, setting=setting: getattr(numpy_rnn, name)([p()], **{setting: -1}), ValueError, message)
        for name in OPTIMIZERS
        for setting, message in [
            ("lr", "lr must be at least 0, got -1"),
            ("weight_decay", "weight_decay must be at least 0, got -1"),
            ("eps", "eps must be at least 0, got -1"),
            ("lr_decay", "lr_decay must be at least 0, got -1"),
            ("initial_accumulator_value", "initial_accumulator_value must be at least 0, got -1"),
            ("momentum", "momentum must be at least 0, got -1"),
            ("momentum_decay", "momentum_decay must be at least 0, got -1"),
        ]
        if setting in inspect.signature(getattr(numpy_rnn, name)).parameters
    ),
    *(
        (lambda name=name, betas=betas: getattr(numpy_rnn, name)([p()], betas=betas), ValueError, message)
        for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax")
        for betas, message in [
            ((1, 0.9), r"betas\[0\] must be in \[0, 1\), got 1"),
            ((0.9, -0.1), r"betas\[1\] must be in \[0, 1\), got -0.1"),
        ]
    ),
    (lambda: numpy_rnn.RMSprop([p()], alpha=1.5), ValueError, r"alpha must be in \[0, 1\], got 1.5"),
    (lambda: SGD([]), ValueError, "params must hold at least one Tensor, got none"),
    (lambda: SGD(p()), TypeError, "params must be an iterable of Tensors or dicts, got one Tensor"),
    (lambda: SGD([np.ones(2)]), TypeError, "params must hold Tensors, got ndarray"),
    (lambda: SGD([p() + 1.0]), ValueError, "params must hold leaves"),
    (lambda: SGD([TWICE, TWICE]), ValueError, "each parameter once, got one twice"),
    (lambda: SGD([{"params": [p()], "rho": 1}]), ValueError, "unknown settings of SGD: rho"),
    (lambda: with_gradient(np.ones(3)).step(), ValueError, r"grad must be \(2,\) float64 .* got \(3,\) float64"),
    (lambda: with_gradient(np.ones(2, np.float32)).step(), ValueError, r"got \(2,\) float32"),
    (lambda: clip_grad_norm_([p()], -1.0), ValueError, "max_norm must be at least 0, got -1.0"),
    (lambda: clip_grad_norm_([p()], np.nan), ValueError, "max_norm must be at least 0, got nan"),
    (lambda: clip_grad_norm_([p()], 1.0, np.nan), ValueError, "norm_type must be a number or inf, got nan"),
    (lambda: clip_grad_value_([p()], -1.0), ValueError, "clip_value must be at least 0, got -1.0"),
    (lambda: clip_grad_value_([p()], np.nan), ValueError, "clip_value must be at least 0, got nan"),
    (
        lambda: numpy_rnn.Adam([p()]).load_state_dict(
            {**numpy_rnn.Adam([p()]).state_dict(), "state": {0: {"step": 1}}}
        ),
        ValueError,
        "state of parameter 0 must have exp_avg, exp_avg_sq",
    ),
    (
        lambda: SGD([p()]).load_state_dict(SGD([p(), p()]).state_dict()),
        ValueError,
        r"parameter groups of sizes \[1\], got \[2\]",
    ),
    (lambda: SGD([p()]).load_state_dict(Adadelta([p()]).state_dict()), ValueError, "must have the settings of SGD"),
    (
        lambda: SGD([p()]).load_state_dict({**SGD([p()]).state_dict(), "state": {3: {}}}),
        ValueError,
        "number its parameters 0 to 0, got 3",
    ),
    (
        lambda: SGD([p()]).load_state_dict(
            {**SGD([p()]).state_dict(), "state": {0: {"momentum_buffer": np.ones((2, 2))}}}
        ),
        ValueError,
        r"momentum_buffer of parameter 0 must be \(2,\), got \(2, 2\)",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_bad_settings_by_message(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_one_bad_gradient_stops_the_step_before_anything_is_written() -> None:
    a, b = p(), p()
    a.grad, b.grad = Tensor(np.ones(2)), Tensor(np.ones(3))
    with pytest.raises(ValueError, match="grad must be"):
        SGD([a, b]).step()
    assert_array_equal(a, [1, 1])
    assert a.version == 1


def test_a_step_that_cannot_be_made_is_not_begun() -> None:
    frozen = np.ones(2)
    frozen.flags.writeable = False
    for spoil in (
        lambda o, b: setattr(b, "data", frozen),
        lambda o, b: o.param_groups[0].update(lr="a"),
        lambda o, b: setattr(b, "grad", np.ones(2)),
    ):
        a, b = p(), p()
        a.grad, b.grad = Tensor(np.ones(2)), Tensor(np.ones(2))
        optimizer = SGD([a, b], momentum=0.9)
        spoil(optimizer, b)
        with pytest.raises((ValueError, TypeError), match=r"must (be|hold)"):
            optimizer.step()
        assert_array_equal(a, [1, 1])
        assert not optimizer.state


def test_settings_given_as_numpy_scalars_do_not_widen_float32() -> None:
    a = Parameter(np.ones(2, np.float32))
    a.grad = Tensor(np.ones(2, np.float32))
    optimizer = SGD([a], lr=np.float64(0.1), momentum=np.float64(0.9))
    optimizer.step()
    optimizer.step()
    assert optimizer.state[a]["momentum_buffer"].dtype == np.float32


def test_state_is_never_shared() -> None:
    a = p()
    a.grad = Tensor(np.ones(2))
    optimizer = SGD([a], momentum=0.9)
    optimizer.step()
    buffer = optimizer.state[a]["momentum_buffer"]
    assert not np.shares_memory(buffer, a.grad.data)
    saved = optimizer.state_dict()
    assert not np.shares_memory(buffer, saved["state"][0]["momentum_buffer"])
    optimizer.load_state_dict(saved)
    assert not np.shares_memory(optimizer.state[a]["momentum_buffer"], saved["state"][0]["momentum_buffer"])


@pytest.mark.parametrize("state_dict", [None, {}, [], {"state": {}}, {"state": {0: 3}, "param_groups": None}])
def test_what_is_no_state_dict_is_refused(state_dict: Any) -> None:
    optimizer = SGD([p()])
    if isinstance(state_dict, dict) and "param_groups" in state_dict:
        state_dict = {**optimizer.state_dict(), "state": {0: 3}}
    with pytest.raises(ValueError, match="must be a mapping"):
        optimizer.load_state_dict(state_dict)


@pytest.mark.parametrize("settings", [{"maximize": True}, {"weight_decay": 0.1}, {"nesterov": True}])
def test_momentum_of_a_single_number(settings: dict[str, Any]) -> None:
    ours, theirs = Parameter(np.array(1.0)), torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
    optimizers = SGD([ours], 0.1, 0.9, **settings), torch.optim.SGD([theirs], 0.1, 0.9, **settings)
    for k in range(5):
        ours.grad, theirs.grad = Tensor(np.array(1.0 + k)), torch.tensor(1.0 + k, dtype=torch.float64)
        for optimizer in optimizers:
            optimizer.step()
    assert_parity(ours, theirs, "a number")


def test_named_parameters_will_do_and_a_closure_records() -> None:
    linear = numpy_rnn.Linear(2, 1, rng=0)
    optimizer = SGD(linear.named_parameters(), lr=0.1)

    def closure() -> Tensor:
        loss = numpy_rnn.mse_loss(linear(np.ones((1, 2), np.float32)), np.zeros((1, 1), np.float32))
        loss.backward()
        return loss

    with numpy_rnn.no_grad():
        assert optimizer.step(closure).item() > 0
    assert linear.weight.version == 2
    torch_linear = torch.nn.Linear(2, 1)
    theirs = torch.optim.SGD(torch_linear.named_parameters(), lr=0.2)
    optimizer.load_state_dict(theirs.state_dict() | {"what else was kept": 3})  # which torch takes too
    assert optimizer.param_groups[0]["lr"] == 0.2
    with pytest.raises(ValueError, match="betas must be a pair"):
        numpy_rnn.Adam(linear.parameters(), betas=(0.9, 0.9, 0.9))


def test_settings_in_a_state_dict_are_checked_before_anything_is_loaded() -> None:
    optimizer = SGD([p()], lr=0.1)
    saved = optimizer.state_dict()
    saved["param_groups"][0]["lr"] = -1.0
    with pytest.raises(ValueError, match="lr must be at least 0"):
        optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.1
