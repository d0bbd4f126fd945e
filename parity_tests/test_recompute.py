"""A window that keeps only every k-th state has the gradients of one that keeps all."""

import gc
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn import GRU, LSTM, InPlaceModificationError, Tensor, no_grad
from torch_rnn import check_parity

KINDS = {"lstm": (LSTM, {}), "lstm-projection": (LSTM, {"proj_size": 2}), "gru": (GRU, {})}
OPTIONS = {"plain": {}, "layers": {"num_layers": 2, "bidirectional": True}, "no-bias": {"bias": False}}
T, B, I, H = 11, 3, 4, 5  # noqa: E741 the field's letters


def carried(module, B, rng):
    """Return random initial states that need a gradient and that nobody may write to."""
    parts = module.num_layers * (2 if module.bidirectional else 1)
    sizes = [getattr(module, "proj_size", 0) or H, H][: 2 if isinstance(module, LSTM) else 1]
    states = [Tensor(rng.standard_normal((parts, B, size)), requires_grad=True) for size in sizes]
    for state in states:
        state.data.flags.writeable = False
    return states


def gradients(module, x, lengths, upstream, read=slice(None)):
    """Return what one call gives and every gradient, from random gradients of those results that are ``read``."""
    rng = np.random.default_rng(upstream)
    leaf, hx = Tensor(x.copy(), requires_grad=True), carried(module, x.shape[1], rng)
    output, state = module(leaf, tuple(hx) if len(hx) > 1 else hx[0], lengths=lengths)
    states = state if isinstance(state, tuple) else (state,)
    outputs = [output, *states][read]
    numpy_rnn.backward(outputs, [rng.standard_normal(o.shape) for o in outputs])
    found = [np.asarray(o) for o in outputs] + [np.asarray(leaf.grad), *(np.asarray(state.grad) for state in hx)]
    found += [np.asarray(p.grad) for p in module.parameters()]
    module.zero_grad()
    return found


@pytest.mark.parametrize("every", [1, 3, 4, 11, 100])
@pytest.mark.parametrize("lengths", [None, [11, 2, 7]], ids=["equal", "lengths"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradients_are_those_without(kind, options, lengths, every):
    make, own = KINDS[kind]
    module = make(I, H, **own, **options, dtype=np.float64, rng=1)
    again = make(I, H, **own, **options, dtype=np.float64, rng=1, recompute_every=every)
    x = np.random.default_rng(2).standard_normal((T, B, I))
    for one, other in zip(gradients(module, x, lengths, 3), gradients(again, x, lengths, 3), strict=True):
        assert_allclose(other, one, rtol=0, atol=1e-12 * max(1, np.abs(one).max()))


@pytest.mark.parametrize("lengths", [None, [11, 2, 7]], ids=["equal", "lengths"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_the_loss_does_not_read_has_no_gradient(kind, lengths):
    make, own = KINDS[kind]
    x = np.random.default_rng(2).standard_normal((T, B, I))
    for read in [slice(i, i + 1) for i in range(3 if make is LSTM else 2)]:
        module, again = (make(I, H, **own, dtype=np.float64, rng=1, recompute_every=k) for k in (None, 4))
        for one, other in zip(*(gradients(m, x, lengths, 3, read) for m in (module, again)), strict=True):
            assert_allclose(other, one, rtol=0, atol=1e-12 * max(1, np.abs(one).max()))


@pytest.mark.parametrize("kind", KINDS)
def test_parity_with_pytorch(kind):
    make, own = KINDS[kind]
    module = make(I, H, 2, **own, dtype=np.float64, rng=1, recompute_every=4)
    assert check_parity(module, np.random.default_rng(2).standard_normal((T, B, I)), lengths=[11, 2, 7]).ok


@pytest.mark.parametrize("every", [None, 1])
def test_a_projection_that_no_gradient_reaches_has_none(every):
    """Zeros instead would let an optimizer's weight decay move it."""
    module = LSTM(I, H, proj_size=2, rng=1, recompute_every=every)
    _, (_, c_n) = module(np.ones((1, B, I), np.float32))
    c_n.backward(np.ones(c_n.shape, np.float32))
    assert module.weight_hr_l0.grad is None


@pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"])
@pytest.mark.parametrize("make", [LSTM, GRU])
def test_all_that_a_forward_needs_must_be_as_it_was(make, name):
    """Recomputing reads the biases and the weights even where the gradient alone would not."""
    module = make(I, H, rng=1, recompute_every=4)
    output, _ = module(np.ones((T, B, I), np.float32))
    with no_grad():
        getattr(module, name).add_(1)
    with pytest.raises(InPlaceModificationError, match=name):
        output.backward(np.ones(output.shape, np.float32))


@pytest.mark.parametrize("make", [LSTM, GRU])
def test_the_initial_state_must_be_as_it_was_even_where_only_w_ih_learns(make):
    module = make(I, H, rng=1, recompute_every=4).requires_grad_(False)
    module.weight_ih_l0.requires_grad = True
    h_0, c_0 = (Tensor(np.zeros((1, B, H), np.float32)) for _ in range(2))
    output, _ = module(np.ones((T, B, I), np.float32), (h_0, c_0) if make is LSTM else h_0)
    with no_grad():
        h_0.add_(1)
    with pytest.raises(InPlaceModificationError, match="h_0" if make is LSTM else "hx"):
        output.backward(np.ones(output.shape, np.float32))


@pytest.mark.parametrize("make", [LSTM, GRU])
def test_saved_bytes_grow_as_the_states_kept(make):
    """At T = 400 and k = 20: 20 states of each kind and the output's h, against gates of every step."""
    T, B, I, H = 400, 4, 3, 16  # noqa: E741
    x = np.ones((T, B, I), np.float32)

    def saved(**options) -> int:
        module = make(I, H, rng=1, **options)
        tracemalloc.start()
        output, state = module(x)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del output, state
        return held

    row, states = T * B * H * 4, 2 if make is LSTM else 1
    output = row  # what the caller holds
    assert saved() - output > 4 * row
    assert saved(recompute_every=20) - output < (states / 20 + 0.25) * row  # a quarter for the Python objects


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)])
@pytest.mark.parametrize("make", [LSTM, GRU])
def test_what_is_no_number_of_steps_is_refused(make, value, error):
    with pytest.raises(error, match="recompute_every must be"):
        make(I, H, recompute_every=value)


def test_a_number_set_later_is_checked_at_the_call():
    module = GRU(I, H)
    module.recompute_every = 0
    with pytest.raises(ValueError, match="recompute_every must be at least 1, got 0"):
        module(np.ones((T, B, I), np.float32))


def test_the_repr_says_it():
    assert repr(LSTM(3, 5, recompute_every=7)) == "LSTM(3, 5, recompute_every=7)"
