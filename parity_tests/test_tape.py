"""Tensor and the tape: version counters, detach, retain_graph and the two errors, with PyTorch's rules."""

import copy
import re
import threading
import weakref
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

import numpy_rnn
from numpy_rnn import GraphFreedError, InPlaceModificationError, Parameter, Tensor, backward, mse_loss, no_grad
from numpy_rnn.cells import rnn as rnn_cell
from parity_tests.helpers import assert_parity
from torch_rnn import twin

VERSIONS = re.compile(r"version (\d+); expected version (\d+)")


def one_window(T: int = 3, **settings: Any) -> tuple[numpy_rnn.RNN, np.ndarray]:
    return numpy_rnn.RNN(2, 3, dtype="float64", rng=0, **settings), np.random.default_rng(0).normal(size=(T, 4, 2))


def test_versions_of_parameters() -> None:
    rnn, x = one_window()
    torch_rnn = twin(rnn)

    def note_versions() -> None:
        ours = [p.version for p in rnn.parameters()]
        assert ours == [p._version for p in torch_rnn.parameters()]
        seen.append(ours[0])

    seen: list[int] = []
    optimizers = [
        (numpy_rnn.SGD(rnn.parameters(), lr=0.1), torch.optim.SGD(torch_rnn.parameters(), lr=0.1)),
        (numpy_rnn.Adadelta(rnn.parameters()), torch.optim.Adadelta(torch_rnn.parameters())),
    ]
    note_versions()
    rnn.load_state_dict(rnn.state_dict())
    torch_rnn.load_state_dict(torch_rnn.state_dict())
    note_versions()
    rnn(x)[0].backward(np.ones((3, 4, 3)))
    torch_rnn(torch.from_numpy(x))[0].sum().backward()
    for ours, theirs in optimizers:
        ours.step()
        theirs.step()
        note_versions()
    grads = [p.grad for p in rnn.parameters()], [p.grad for p in torch_rnn.parameters()]
    before = [[g.version for g in grads[0]], [g._version for g in grads[1]]]
    numpy_rnn.clip_grad_norm_(rnn.parameters(), 1.0)
    torch.nn.utils.clip_grad_norm_(torch_rnn.parameters(), 1.0)
    after = [[g.version for g in grads[0]], [g._version for g in grads[1]]]
    assert after == [[version + 1 for version in versions] for versions in before]
    assert seen == [1, 2, 3, 4]
    assert Tensor(np.ones(2)).version == 0


def test_detach_shares_memory_and_version_and_cuts_the_graph() -> None:
    h = Tensor(np.ones(2), requires_grad=True) + 1.0
    d = h.detach()
    assert (d.requires_grad, d.is_leaf, d.grad_fn) == (False, True, None)
    assert (h.requires_grad, h.is_leaf) == (True, False)
    assert d.data is h.data
    d.zero_()
    assert (d.version, h.version) == (1, 1)
    assert not h.numpy().any()


def test_clone_copies_memory_and_keeps_the_graph() -> None:
    x = Tensor(np.ones(2), requires_grad=True)
    c = x.clone()
    assert not np.shares_memory(c.data, x.data)
    c.backward(np.array([1.0, 5.0]))
    np.testing.assert_array_equal(x.grad, [1, 5])


def test_a_view_shares_memory_and_version() -> None:
    h = Tensor(np.ones((3, 2)))
    h[0].zero_()
    h[1:] = 4.0
    assert h.version == 2
    np.testing.assert_array_equal(h, [[0, 0], [4, 4], [4, 4]])
    h[[0, 1]].zero_()  # fancy indexing copies
    assert h.version == 2


def test_backward_twice_with_retain_graph_adds_up_and_without_it_raises() -> None:
    rnn, x = one_window()
    output, _ = rnn(x)
    d = np.random.default_rng(1).normal(size=output.shape)
    output.backward(d, retain_graph=True)
    once = rnn.weight_hh_l0.grad.numpy().copy()
    output.backward(d)
    np.testing.assert_allclose(rnn.weight_hh_l0.grad, 2 * once)
    with pytest.raises(GraphFreedError, match="Trying to backward through the graph a second time") as caught:
        output.backward(d)
    assert "call 1 of RNN(2, 3)" in str(caught.value)
    np.testing.assert_allclose(rnn.weight_hh_l0.grad, 2 * once)


def test_an_error_speaks_of_the_module_as_it_was_at_the_call() -> None:
    rnn, x = one_window()
    first, _ = rnn(x)
    rnn.nonlinearity, rnn.batch_first = "relu", True
    second, _ = rnn(x)
    with no_grad():
        rnn.weight_hh_l0.zero_()
    for output, said in ((first, "call 1 of RNN(2, 3) saved"), (second, "call 2 of RNN(2, 3, nonlinearity='relu', b")):
        with pytest.raises(InPlaceModificationError, match=re.escape(said)):
            output.backward(np.ones(output.shape))


def test_each_call_takes_the_parameters_that_the_module_has_then() -> None:
    rnn, x = one_window()
    old, h = rnn.weight_hh_l0, np.zeros((1, 4, 3))
    rnn(x, h)[0].backward(np.ones((3, 4, 3)))
    kept = old.grad.numpy().copy()
    rnn.weight_hh_l0 = Parameter(2 * old.data)
    rnn.weight_ih_l0.requires_grad_(False)
    rnn.bias_ih_l0 = None
    del rnn.bias_hh_l0
    rnn.zero_grad()
    output, _ = rnn(x, h)
    output.backward(np.ones(output.shape))
    np.testing.assert_array_equal(old.grad, kept)
    assert rnn.weight_ih_l0.grad is None
    plain = numpy_rnn.RNN(2, 3, bias=False, dtype="float64")
    plain.load_state_dict(rnn.state_dict())
    expected, _ = plain(x, h)
    np.testing.assert_array_equal(output, expected)
    expected.backward(np.ones(output.shape))
    np.testing.assert_array_equal(rnn.weight_hh_l0.grad, plain.weight_hh_l0.grad)


def test_a_freed_graph_keeps_neither_input_nor_state() -> None:
    rnn, x = one_window()
    input, state = x.copy(), np.zeros((1, 4, 3))
    refs = [weakref.ref(input), weakref.ref(state)]
    output, _ = rnn(input, state)
    del input, state
    assert all(ref() is not None for ref in refs)  # the backward needs them
    output.backward(np.ones(output.shape))
    assert all(ref() is None for ref in refs)


def test_what_saved_nothing_can_be_walked_twice_as_in_torch() -> None:
    results = []
    for x, run in (
        (Tensor(np.ones(2), requires_grad=True), backward),
        (torch.ones(2).requires_grad_(), torch.autograd.backward),
    ):
        y = x[0] + x[1]
        run([y])
        run([y])
        results.append(x.grad)
    np.testing.assert_array_equal(*results)
    head = numpy_rnn.Linear(2, 3, rng=0)
    head.weight.requires_grad = False
    y = head(np.ones((4, 2), np.float32))
    for _ in range(2):
        y.backward(np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(head.bias.grad, [8, 8, 8])


CASES = {
    "one step from a state outside the graph": (1, {}, False, 2),
    "two steps": (2, {}, False, 1),
    "a learnable initial state": (1, {}, True, 1),
    "two layers": (1, {"num_layers": 2}, False, 1),
    "two directions": (1, {"bidirectional": True}, False, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_the_articles_loop_fails_at_the_same_step_with_the_same_versions(case: str) -> None:
    T, settings, learn_state, fails_at = CASES[case]
    rnn, _ = one_window(**settings)
    torch_rnn = twin(rnn)
    states = rnn.num_layers * (2 if rnn.bidirectional else 1)
    x = np.random.default_rng(0).normal(size=(5, T, 4, 2))
    h_0 = np.zeros((states, 4, 3))

    def loop(module: Any, optimizer: Any, tensor: Any, loss: Any) -> tuple[int, Any]:
        state = tensor(h_0)
        state.requires_grad_(learn_state)
        for i in range(5):
            optimizer.zero_grad()
            output, state = module(tensor(x[i]), state)
            try:
                loss(output, tensor(np.zeros(output.shape))).backward(retain_graph=True)
            except RuntimeError as error:
                return i, error
            optimizer.step()
        raise AssertionError("the loop ran")

    i, error = loop(rnn, numpy_rnn.SGD(rnn.parameters(), lr=0.1), Tensor, mse_loss)
    torch_optimizer = torch.optim.SGD(torch_rnn.parameters(), lr=0.1)
    torch_i, torch_error = loop(torch_rnn, torch_optimizer, torch.from_numpy, torch.nn.functional.mse_loss)
    assert i == torch_i == fails_at
    assert isinstance(error, InPlaceModificationError)
    ours, theirs = VERSIONS.search(str(error)), VERSIONS.search(str(torch_error))
    assert ours is not None
    assert theirs is not None
    assert ours.groups() == theirs.groups() == (str(fails_at + 1), str(fails_at))
    assert (error.version, error.expected) == (fails_at + 1, fails_at)
    assert getattr(rnn, error.name).shape == error.shape
    assert "modified by an inplace operation" in str(error)
    assert f"call {fails_at} of RNN" in str(error)
    assert "SGD.step()" in str(error)


def test_detached_the_same_loop_runs() -> None:
    rnn, x = one_window(T=1)
    optimizer = numpy_rnn.Adadelta(rnn.parameters())
    state = None
    for _ in range(5):
        optimizer.zero_grad()
        output, state = rnn(x, state)
        mse_loss(output, np.zeros(output.shape)).backward()
        optimizer.step()
        state = state.detach()
    assert [p.version for p in rnn.parameters()] == [6] * 4


def test_a_raw_write_is_silent_and_the_backward_reads_the_live_weight() -> None:
    gradients = []
    for tensor, module in ((Tensor, one_window()[0]), (torch.from_numpy, twin(one_window()[0]))):
        x = tensor(one_window()[1].copy())
        x.requires_grad_(True)
        output, _ = module(x)
        module.weight_hh_l0.data[...] = 0.7
        output.backward(tensor(np.ones(output.shape)))
        gradients.append(x.grad)
    assert_parity(*gradients, "dx after a raw write")


@pytest.mark.parametrize("what", ["x", "hx"])
def test_an_input_written_to_before_its_backward_is_noticed(what: str) -> None:
    rnn, x = one_window()
    tensors = {"x": Tensor(x), "hx": Tensor(np.ones((1, 4, 3)))}
    output, _ = rnn(tensors["x"], tensors["hx"])
    tensors[what].add_(1.0)
    name = {"x": "input", "hx": "hx"}[what]
    with pytest.raises(InPlaceModificationError, match=rf"{name} \[.*version 1; expected version 0"):
        output.backward(np.ones(output.shape))
    rnn.requires_grad_(False)  # with no weight to learn, neither array is needed
    rnn.bias_ih_l0.requires_grad = True
    output, _ = rnn(tensors["x"], tensors["hx"])
    tensors[what].add_(1.0)
    output.backward(np.ones(output.shape))


def test_a_failed_walk_changes_no_gradient_and_frees_nothing() -> None:
    model = numpy_rnn.SequenceModel("rnn", 2, 3, 1, dtype="float64", rng=0)
    output, _ = model(one_window()[1])
    loss = mse_loss(output, np.zeros(output.shape))
    weight = model.rnn.weight_hh_l0
    with no_grad():
        weight.add_(1.0)
    with pytest.raises(InPlaceModificationError, match="add_ has written"):
        loss.backward()
    assert [p.grad for p in model.parameters()] == [None] * 6
    with no_grad():
        weight.add_(-1.0)
    with pytest.raises(InPlaceModificationError, match="version 3; expected version 1"):  # not: freed
        loss.backward()


def test_gradients_of_several_tensors_at_once() -> None:
    pairs = []
    for x, run in (
        (Tensor(np.ones(3), requires_grad=True), backward),
        (torch.ones(3, dtype=torch.float64).requires_grad_(), torch.autograd.backward),
    ):
        y = x + x
        # y is an output and an input of another output; x is a leaf given itself
        up = [np.array([1.0, 2.0, 3.0]), np.array(5.0), np.array([7.0, 7.0, 7.0])]
        run([y, y[1], x], [Tensor(u) if run is backward else torch.from_numpy(u) for u in up])
        pairs.append(x.grad)
    np.testing.assert_array_equal(*pairs)


def test_gradients_of_two_leaves_never_share_memory() -> None:
    a, b = Tensor(np.ones(2), requires_grad=True), Tensor(np.ones(2), requires_grad=True)
    upstream = np.ones(2)
    (a + b).backward(upstream, retain_graph=True)
    upstream[:] = 9
    a.grad.zero_()
    np.testing.assert_array_equal(b.grad, [1, 1])
    rnn, x = one_window()
    rnn(x)[0].backward(np.ones((3, 4, 3)))
    assert not np.shares_memory(rnn.bias_ih_l0.grad.data, rnn.bias_hh_l0.grad.data)


@pytest.mark.parametrize(
    "index", [0, -1, slice(1, None), (slice(None), 1), ([0, 0, 2],), np.array([True, False, True]), (0, 1), ..., None]
)
def test_indexing_as_in_torch(index: Any) -> None:
    data = np.arange(6.0).reshape(3, 2)
    x, y = Tensor(data, requires_grad=True), torch.from_numpy(data.copy()).requires_grad_()
    a, b = x[index], y[index]
    upstream = np.random.default_rng(0).normal(size=a.shape)
    a.backward(upstream)
    b.backward(torch.from_numpy(upstream))
    np.testing.assert_array_equal(a, b.detach())
    np.testing.assert_array_equal(x.grad, y.grad)
    if isinstance(index, np.ndarray):
        np.testing.assert_array_equal(x[Tensor(index)], a)


def test_an_index_array_is_kept_as_it_was() -> None:
    x, index = Tensor(np.arange(3.0), requires_grad=True), np.array([0, 1])
    y = x[index]
    index[:] = 2
    y.backward(np.array([1.0, 1.0]))
    np.testing.assert_array_equal(x.grad, [1, 1, 0])


def test_no_grad_records_nothing_and_ends_with_its_block() -> None:
    rnn, x = one_window()
    with pytest.raises(ValueError, match="input must be"), no_grad():
        rnn(x[0, 0])
    assert rnn(x)[0].requires_grad

    @no_grad()
    def run() -> Tensor:
        with no_grad():
            pass
        return rnn(x)[0]

    assert not run().requires_grad
    assert rnn(x)[0].requires_grad


def test_in_place_writes_on_the_graph_are_refused_outside_no_grad() -> None:
    leaf = Parameter(np.ones(2))
    for write in (leaf.zero_, lambda: leaf.add_(1.0), lambda: leaf.copy_(1.0), lambda: leaf.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="a leaf that requires a gradient"):
            write()
    with pytest.raises(RuntimeError, match="a Tensor of the graph"):
        (leaf + 1.0).zero_()
    np.testing.assert_array_equal(leaf, [1, 1])
    assert leaf.version == 1
    with no_grad():
        leaf.copy_(leaf.detach() + 1.0)
    assert leaf.version == 2


def test_arrays_are_read_only_from_outside() -> None:
    t = Tensor(np.ones((2, 2)), requires_grad=True)
    for view in (t.numpy(), np.asarray(t)):
        assert np.shares_memory(view, t.data)
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0
    copied = np.array(t)
    copied[0] = 0
    assert np.asarray(t, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.array(t, dtype=np.float32, copy=False)
    np.testing.assert_array_equal(t, np.ones((2, 2)))


def test_arithmetic_that_is_not_recorded_is_refused() -> None:
    t = Tensor(np.ones(2), requires_grad=True)
    for attempt in (
        lambda: t * 2,
        lambda: 2 * t,
        lambda: np.ones(2) * t,
        lambda: np.exp(t),
        lambda: np.ones(2) @ t,
        lambda: t - t,
    ):
        with pytest.raises(TypeError):
            attempt()
    assert (np.ones(2) + t).requires_grad
    assert sum([t, t]).requires_grad


def test_bad_calls_by_message() -> None:
    x = Tensor(np.ones(3), requires_grad=True)
    y = x + x
    cases: list[tuple[type[Exception], str, Any]] = [
        (RuntimeError, r"only for one element: tensors\[0\] has shape \(3,\)", y.backward),
        (RuntimeError, r"only for one element: tensors\[0\] has shape \(0,\)", lambda: x[:0].backward()),
        (ValueError, r"gradient must have the shape of its tensor, \(3,\), got \(2,\)", lambda: y.backward(np.ones(2))),
        (TypeError, "dtype of its tensor, float64, got float32", lambda: y.backward(np.ones(3, np.float32))),
        (RuntimeError, r"tensors\[0\] does not require grad", Tensor(1.0).backward),
        (ValueError, "one for each of the 1 tensors, got 2", lambda: backward([y], [None, None])),
        (TypeError, "must be a sequence of Tensors, got one", lambda: backward(y)),
        (RuntimeError, "only be set on a leaf", lambda: y.requires_grad_(False)),
        (TypeError, "only float32 and float64 Tensors can require", lambda: Tensor([1, 2], requires_grad=True)),
        (TypeError, "got complex128", lambda: Tensor([1j])),
        (TypeError, "got float16", lambda: Tensor(np.ones(2, np.float16))),
        (TypeError, "got <U1", lambda: Tensor(["a"])),
        (TypeError, "got a Tensor: use tensor.detach", lambda: Tensor(x)),
        (ValueError, r"exactly one element, got shape \(3,\)", x.item),
        (ValueError, r"got \(3,\) float64 and \(2,\) float64", lambda: x + np.ones(2)),
        (ValueError, r"got \(3,\) float64 and \(3,\) float32", lambda: x + np.ones(3, np.float32)),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()
    assert x.grad is None


def test_how_tensors_print() -> None:
    x = Tensor(np.array([1.0]), requires_grad=True)
    assert repr(x) == "Tensor([1.], requires_grad=True)"
    assert repr(x + x) == "Tensor([2.], grad_fn=<add>)"
    assert f"{x[0]:.2f} {float(x)}" == "1.00 1.0"


def test_a_backward_frees_the_memory_of_its_window_and_a_detached_state_holds_none() -> None:
    kept = []
    rnn, x = one_window(num_layers=2, bidirectional=True)
    forward = rnn_cell.forward

    def watched(*arguments: Any, **options: Any) -> Any:
        result = forward(*arguments, **options)
        kept.append(weakref.ref(result[0]))
        return result

    with mock.patch.object(rnn_cell, "forward", watched):
        output, state = rnn(x)
        assert sum(ref() is not None for ref in kept) == 4
        output.backward(np.ones(output.shape), retain_graph=True)
        assert sum(ref() is not None for ref in kept) == 4
        output.backward(np.ones(output.shape))
        assert sum(ref() is not None for ref in kept) == 0
        for _ in range(3):
            output, state = rnn(x, state.detach())
        del output
        assert sum(ref() is not None for ref in kept) == 4  # the graph of the last window, through its state
        state = state.detach()
        assert sum(ref() is not None for ref in kept) == 0


def test_add_adds_alpha_times_and_accumulation_is_in_place_and_counted() -> None:
    t = Tensor(np.ones(2))
    t.add_(other=np.array([1.0, 2.0]), alpha=-0.5)
    np.testing.assert_array_equal(t, [0.5, 0])
    np.testing.assert_array_equal(t.copy_([3.0, 4.0]), [3, 4])
    x = Tensor(np.ones(2), requires_grad=True)
    (x + x).backward(np.ones(2))
    grad = x.grad
    (x + x).backward(np.ones(2))
    assert x.grad is grad
    assert grad.version == 1
    np.testing.assert_array_equal(grad, [4, 4])


def test_no_grad_is_of_its_thread_alone() -> None:
    rnn, x = one_window()
    seen: list[bool] = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(rnn(x)[0].requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_a_copied_input_is_the_librarys_own_and_a_view_is_checked() -> None:
    """As in torch: a batch_first input is copied to be time-major, so that a later write into it does no harm."""
    gradients = []
    for spoil in (False, True):
        rnn, x = one_window(batch_first=True)
        t = Tensor(np.ascontiguousarray(x.swapaxes(0, 1)))
        output, _ = rnn(t)
        if spoil:
            t.zero_()
        output.backward(np.ones(output.shape))
        gradients.append(rnn.weight_ih_l0.grad.numpy())
    np.testing.assert_array_equal(*gradients)
    head = numpy_rnn.Linear(2, 1, dtype="float64", rng=0)
    t = Tensor(np.ones((3, 2)))
    y = head(t)
    t.zero_()
    with pytest.raises(InPlaceModificationError, match="input"):
        y.backward(np.ones((3, 1)))


def test_linear_reads_its_live_weight() -> None:
    head = numpy_rnn.Linear(2, 1, dtype="float64", rng=0)
    x = Tensor(np.ones((1, 2)), requires_grad=True)
    y = head(x)
    head.weight.data[...] = 7.0
    y.backward(np.ones((1, 1)))
    np.testing.assert_array_equal(x.grad, [[7, 7]])


def test_a_frozen_layer_below_is_not_walked_and_its_weights_may_be_written() -> None:
    for tensor, module in (
        (Tensor, one_window(num_layers=2)[0]),
        (torch.from_numpy, twin(one_window(num_layers=2)[0])),
    ):
        for name, p in module.named_parameters():
            p.requires_grad_(name.endswith("l1"))
        output, _ = module(tensor(one_window()[1]))
        with no_grad() if module.__class__.__module__.startswith("numpy_rnn") else torch.no_grad():
            module.weight_hh_l0.add_(1.0)
        output.backward(tensor(np.ones(output.shape)))
        assert module.weight_hh_l0.grad is None


def test_what_was_frozen_after_the_forward_gets_no_gradient() -> None:
    for tensor, module in ((Tensor, one_window()[0]), (torch.from_numpy, twin(one_window()[0]))):
        output, _ = module(tensor(one_window()[1]))
        module.weight_hh_l0.requires_grad_(False)
        output.backward(tensor(np.ones(output.shape)))
        assert module.weight_hh_l0.grad is None
        assert module.weight_ih_l0.grad is not None


def test_which_of_two_modified_arrays_is_named_is_as_in_torch() -> None:
    """The last step reads W_hh, the first one the initial state: backward meets the weight first."""
    messages = []
    for tensor, module in ((Tensor, one_window()[0]), (torch.from_numpy, twin(one_window()[0]))):
        x, hx = tensor(one_window()[1]), tensor(np.ones((1, 4, 3)))
        output, _ = module(x, hx)
        hx.add_(1.0)
        with no_grad(), torch.no_grad():
            module.weight_hh_l0.add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
            output.backward(tensor(np.ones(output.shape)))
        messages.append(str(caught.value))
    assert ": weight_hh_l0 [3, 3] " in messages[0]
    assert "[3, 3]]" in messages[1]


def test_an_unusable_grad_is_refused_before_any_is_changed() -> None:
    for wrong, message in (
        (np.ones((3, 3)), "grad must be a Tensor or None"),
        (Tensor(np.ones(2)), "like its parameter"),
    ):
        rnn, x = one_window()
        rnn.bias_hh_l0.grad = wrong
        with pytest.raises((TypeError, ValueError), match=message):
            rnn(x)[0].backward(np.ones((3, 4, 3)))
        assert rnn.weight_ih_l0.grad is None


def test_deep_copies_are_leaves_at_version_0() -> None:
    rnn, x = one_window()
    rnn(x)[0].backward(np.ones((3, 4, 3)))
    copied = copy.deepcopy(rnn)
    assert {p.version for p in copied.parameters()} == {0}
    assert not np.shares_memory(copied.weight_hh_l0.data, rnn.weight_hh_l0.data)
    np.testing.assert_array_equal(copied.weight_hh_l0.grad, rnn.weight_hh_l0.grad)
    with pytest.raises(RuntimeError, match="only a leaf can be copied deeply"):
        copy.deepcopy(rnn(x)[0])
    assert Tensor(np.ones(2, np.float32)).__add__(np.float64(1)).dtype == np.float32


def test_an_index_list_is_kept_as_it_was() -> None:
    x, index = Tensor(np.arange(3.0), requires_grad=True), [0]
    y = x[index]
    index[0] = 2
    y.backward(np.ones(1))
    np.testing.assert_array_equal(x.grad, [1, 0, 0])


def test_the_advice_fits_what_was_written() -> None:
    """A carried weight, a head after added-up losses, and a state reset in place have other causes and cures."""
    messages = {}
    for what in ("weight", "head", "state"):
        model = numpy_rnn.SequenceModel("lstm", 2, 3, 1, dtype="float64", rng=0)
        h = Tensor(np.ones((1, 4, 3)))
        output, _ = model(one_window()[1], (h, Tensor(np.ones((1, 4, 3)))))
        with no_grad():
            if what == "state":
                h[:, 0] = 0
            else:
                (model.linear.weight if what == "head" else model.rnn.weight_hh_l0).add_(1.0)
        with pytest.raises(InPlaceModificationError) as caught:
            output.backward(np.ones(output.shape))
        messages[what] = str(caught.value)
    assert "of an LSTM both h and c" in messages["weight"]
    assert "losses are added up over windows" in messages["head"]
    assert "`h[:, done] = 0`" in messages["state"]
    assert "carried" not in messages["state"]
    assert "h_0 [4, 3] is at version 1" in messages["state"]


def test_a_view_of_a_view_shares_the_version_and_its_write_is_seen() -> None:
    """The memory of ``h`` is a view already, as that of a ``batch_first`` output is."""
    h = Tensor(np.arange(6.0).reshape(2, 3).T)
    first = h[0]
    weight = Tensor(np.ones(2), requires_grad=True)
    loss = mse_loss(weight, first, "sum")
    h[0] = np.zeros(2)
    assert first.version == h.version == 1
    with pytest.raises(InPlaceModificationError):
        loss.backward()
