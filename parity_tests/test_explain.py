"""torch_rnn.explain: real errors of real PyTorch loops, and messages of other machines and versions."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import numpy_rnn
import torch_rnn
from numpy_rnn.tape import PAGE
from torch_rnn import Explanation, explain
from torch_rnn.inplace.explain import OUTSIDE

T, B, I, H, K = 3, 5, 2, 4, 7  # noqa: E741
SGD = torch.optim.SGD
Step = Callable[[int, Any], tuple[Tensor, Any]]


class LoopRan(Exception):
    """The loop was to fail, and did not."""


def failing_loop(step: Step, parameters: Any, optimizer: Any = SGD) -> tuple[RuntimeError, int, Any]:
    """Run ``loss, state = step(i, state)`` as the article does until it raises: error, i, the state it started from."""
    update, state = optimizer(list(parameters), lr=0.1), None
    for i in range(4):
        update.zero_grad()
        loss, after = step(i, state)
        try:
            loss.backward(retain_graph=True)
        except RuntimeError as error:
            return error, i, state
        update.step()
        state = after
    raise LoopRan


def carried(module: nn.Module, x: Tensor) -> Step:
    def step(i: int, state: Any) -> tuple[Tensor, Any]:
        output, state = module(x[i], state)
        return output.square().sum(), state

    return step


def series(dtype: torch.dtype = torch.float32, size: int = I) -> Tensor:
    return torch.randn(4, T, B, size, dtype=dtype, generator=torch.Generator().manual_seed(0))


def failure(run: Callable[[], Any]) -> RuntimeError:
    with pytest.raises(RuntimeError) as caught:
        run()
    return caught.value


def written(*tensors: Tensor) -> None:
    with torch.no_grad():
        for tensor in tensors:
            tensor.add_(1.0)


def clear(e: Explanation) -> list[str]:
    """The names of the candidates without doubts; everything that holds for every explanation is asserted here."""
    assert e.kind == "modified in place"
    names = [c.name for c in e.candidates if not c.doubts]
    assert e.certain == (len(names) == 1)
    assert [c.name for c in e.candidates[: len(names)]] == names
    assert len({c.name for c in e.candidates}) == len(e.candidates)
    assert all(c.version == e.version for c in e.candidates if not c.doubts)
    assert str(e) == e.text
    assert max(map(len, e.text.splitlines())) <= 100
    assert f"version {e.version}; expected version {e.expected} instead" in flat(e)
    assert e.text.splitlines()[-1].endswith(PAGE)
    return names


def but_for_what_is_outside(e: Explanation) -> list[str]:
    """The names of the candidates whose one doubt is that an array outside the module may have their shape."""
    assert clear(e) == []
    assert "If it is none of these, it is an array that the forward was given or made" in flat(e)
    return [c.name for c in e.candidates if c.doubts == (OUTSIDE,)]


def flat(e: Explanation) -> str:
    return " ".join(e.text.split())


# Recurrent layers -----------------------------------------------------------------------------------------------------

NATIVE = [(nn.RNN, torch.float32), (nn.RNN, torch.float64), (nn.GRU, torch.float32), (nn.LSTM, torch.float64)]


@pytest.mark.parametrize(("cell", "dtype"), NATIVE)
def test_one_layer_is_certain_and_the_message_shows_the_transpose(cell: Any, dtype: torch.dtype) -> None:
    rnn = cell(I, H).to(dtype)
    error, i, state = failing_loop(carried(rnn, series(dtype)), rnn.parameters())
    e = explain(error, rnn, state)
    assert clear(e) == ["weight_hh_l0"]
    shape = tuple(rnn.weight_hh_l0.shape)
    assert (i, e.version, e.expected, e.shape) == (1, 2, 1, shape[::-1])
    assert (e.candidates[0].shape, e.candidates[0].transposed) == (shape, True)
    text = flat(e)
    assert f"an inplace operation: weight_hh_l0 {list(shape)} is at version 2; expected version 1 instead." in text
    assert "it was written to 1 time since" in text
    assert "the window that saved it ran after 0 updates" in text
    assert "each step raised it by one (AdamW, NAdam and ASGD: by two)" in text
    assert text.index("Usual cause: the state carried from one window to the next") < text.index("a loss added up")
    assert "carry `state.detach()`" in text
    assert "and take `retain_graph=True` out, or run one backward over all windows before the one update" in text
    assert text.index("it alone fits") < text.index("Usual cause") < text.index("If it began at version 1")
    assert "What decides" not in text


def test_a_state_in_the_graph_does_not_compete_with_a_weight_of_its_shape() -> None:
    rnn = nn.RNN(I, B)  # the state (1, B, H) has an entry (B, H) of the weight's shape
    error, _, state = failing_loop(carried(rnn, series()), rnn.parameters())
    e = explain(error, rnn, state)
    assert clear(e) == ["weight_hh_l0"]
    (doubted,) = e.candidates[1:]
    assert (doubted.name, doubted.shape) == ("state", (1, B, B))
    assert "versions never fall" in doubted.doubts[-1]


def test_the_articles_own_setting_leaves_two_and_says_what_decides() -> None:
    rnn = nn.RNN(1, 1)
    x = torch.arange(1.0, 6.0).reshape(5, 1, 1, 1)
    error, i, state = failing_loop(carried(rnn, x), rnn.parameters(), torch.optim.Adadelta)
    e = explain(error, rnn, state)
    assert (i, e.version, e.expected, e.shape) == (2, 3, 2, (1, 1))
    assert clear(e) == ["weight_hh_l0", "weight_ih_l0"]  # in the order of reading, and not certain
    assert "an array [1, 1] is at version 3" in flat(e)
    assert "Where all were written, the first one is the most likely" in flat(e)
    assert flat(e).index("- weight_hh_l0") < flat(e).index("Usual cause") < flat(e).index("What decides")
    assert "2 fit equally well, and the message cannot tell them apart" in flat(e)
    assert "not the weight_ih of a first layer fed with data" in flat(e)
    assert "ran after 1 update." in flat(e)


def test_what_decides_does_decide() -> None:
    fails = []
    for name in ("weight_ih_l0", "weight_hh_l0"):
        rnn = nn.RNN(1, 1)
        try:
            failing_loop(carried(rnn, series(size=1)), [getattr(rnn, name)])
            fails.append(name)
        except LoopRan:
            pass
    assert fails == ["weight_hh_l0"]


def test_layers_of_one_shape_are_all_listed() -> None:
    rnn = nn.RNN(I, H, num_layers=2)
    error, _, state = failing_loop(carried(rnn, series()), rnn.parameters())
    e = explain(error, rnn, state)
    assert clear(e) == ["weight_hh_l1", "weight_ih_l1", "weight_hh_l0"]
    for name in clear(e):
        assert f"- {name} [4, 4]: the shape of its transpose" in flat(e)
    assert "let only one of them be written to at a time" in flat(e)


def test_only_what_was_written_fits() -> None:
    rnn = nn.RNN(I, H, num_layers=2)
    error, _, state = failing_loop(carried(rnn, series()), [rnn.weight_ih_l1])
    e = explain(error, rnn, state)
    assert clear(e) == ["weight_ih_l1"]
    doubted = [c for c in e.candidates if c.doubts]
    assert [(c.name, c.version) for c in doubted] == [("weight_hh_l1", 1), ("weight_hh_l0", 1)]
    assert all("it is at version 1 now, and versions never fall" in c.doubts[0] for c in doubted)
    assert "Less likely: - weight_hh_l1" in flat(e)


def test_two_directions() -> None:
    gru = nn.GRU(I, H, bidirectional=True)
    error, _, state = failing_loop(carried(gru, series()), gru.parameters())
    assert clear(explain(error, gru, state)) == ["weight_hh_l0_reverse", "weight_hh_l0"]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("learn_input", [False, True])
def test_the_order_is_that_in_which_backward_reads(bidirectional: bool, dtype: torch.dtype, learn_input: bool) -> None:
    """Among those of one shape, written one at a time, those that fail, in the order in which hooks see them read."""
    lstm = nn.LSTM(H, H, num_layers=2, bidirectional=bidirectional).to(dtype)
    names, reads = {p.data_ptr(): name for name, p in lstm.named_parameters()}, list[str]()

    def unpack(t: Tensor) -> Tensor:
        reads.append(names.get(t.data_ptr(), ""))
        return t

    x = series(dtype, H)[0].requires_grad_(learn_input)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        output, _ = lstm(x)
    output.sum().backward()
    output, _ = lstm(x)
    written(*lstm.parameters())
    e = explain(failure(output.sum().backward), lstm)
    shown = dict.fromkeys(name for name in reads if name in clear(e))
    assert clear(e)[0] == next(iter(shown))
    fused = dtype == torch.float32 and torch.backends.mkldnn.is_available()
    if fused or not learn_input:
        assert [name for name in clear(e) if name in shown] == list(shown)
    unread = [name for name in clear(e) if name not in shown]
    assert clear(e)[len(shown) :] == unread
    assert all(name.startswith("weight_ih_l0") for name in unread)
    assert bool(unread) == (not fused and not learn_input)
    assert ("reads every weight and bias" in flat(e)) == fused
    assert ("not the weight_ih of a first layer fed with data" in flat(e)) != fused


def test_many_candidates_are_counted_not_printed() -> None:
    rnn = nn.RNN(H, H, num_layers=6)
    error, _, state = failing_loop(carried(rnn, series(size=H)), rnn.parameters())
    e = explain(error, rnn, state)
    assert len(clear(e)) == 12
    assert e.text.count("\n- weight_") == 8
    assert "\n- and 4 more\n" in e.text


def test_the_fused_lstm_shows_weights_as_they_are() -> None:
    lstm = nn.LSTM(I, H)
    error, i, state = failing_loop(carried(lstm, series()), lstm.parameters())
    assert "which is output" not in str(error)
    e = explain(error, lstm, state)
    assert clear(e) == ["weight_ih_l0"]
    assert (i, e.version, e.expected, e.shape, e.candidates[0].transposed) == (1, 2, 1, (4 * H, I), False)
    assert "of an LSTM both h and c" in flat(e)


def test_the_fused_lstm_of_square_inputs_and_its_biases() -> None:
    lstm = nn.LSTM(1, 1)
    error, _, state = failing_loop(carried(lstm, series(size=1)), lstm.parameters())
    e = explain(error, lstm, state)
    assert e.shape == (4, 1)
    assert clear(e) == ["weight_ih_l0", "weight_hh_l0"]
    assert "It reads every weight and bias, whatever needs a gradient. Where all were written, the first" in flat(e)
    assert "fed with data" not in flat(e)
    lstm = nn.LSTM(I, H)
    error, _, state = failing_loop(carried(lstm, series()), [lstm.bias_hh_l0])
    e = explain(error, lstm, state)
    assert e.shape == (4 * H,)
    assert clear(e) == ["bias_hh_l0"]


def test_fused_messages_fit_no_layer_that_is_never_fused_there() -> None:
    message = "modified by an inplace operation: [torch.FloatTensor [4, 2]] is at version 1; expected version 0"
    for module in (nn.RNN(I, H), nn.RNNCell(I, H), nn.Linear(I, H)):
        e = explain(message, module)
        assert clear(e) == []
        assert len(e.candidates) == 1
    assert "on the CPU only nn.LSTM" in explain(message, nn.RNN(I, H)).candidates[0].doubts[0]
    assert "nn.Linear keeps the transpose" in explain(message, nn.Linear(I, H)).candidates[0].doubts[0]
    assert "nn.RNNCell keeps the transpose" in explain(message, nn.RNNCell(I, H)).candidates[0].doubts[0]


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
def test_cells(cell: Any) -> None:
    module = cell(I, H)
    x = series()

    def step(i: int, state: Any) -> tuple[Tensor, Any]:
        state = module(x[i, 0], state)
        return (state[0] if isinstance(state, tuple) else state).square().sum(), state

    error, i, state = failing_loop(step, module.parameters())
    e = explain(error, module, state)
    assert clear(e) == ["weight_hh"]
    assert (i, e.version, e.expected, e.candidates[0].transposed) == (2, 3, 2, True)
    assert "ran after 1 update." in flat(e)


def test_a_user_of_the_state_after_another_update_is_doubted_not_excluded() -> None:
    rnn = nn.GRU(I, H)
    error, _, state = failing_loop(carried(rnn, series()), rnn.parameters())
    written(rnn.weight_hh_l0)
    e = explain(error, rnn, state)
    assert clear(e) == []
    (one,) = e.candidates
    assert (one.name, one.version, e.version) == ("weight_hh_l0", 3, 2)
    assert one.doubts == ("it is at version 3 now: only if it was written to again since the error",)
    text = flat(e)
    assert "nothing fits without a doubt. Perhaps: - weight_hh_l0 [12, 4]" in text
    assert text.index("If it is a parameter:") < text.index("If it is none of these, it is an array that the forward")


def test_a_copied_module_and_a_step_that_raises_twice() -> None:
    rnn = copy.deepcopy(nn.RNN(I, H))
    error, _, state = failing_loop(carried(rnn, series()), rnn.parameters(), torch.optim.AdamW)
    e = explain(error, rnn, state)
    assert (e.version, e.expected) == (2, 0)
    assert "written to 2 times since" in flat(e)
    assert clear(e) == []  # an activation at version 2 would look the same
    assert e.candidates[0].name == "weight_hh_l0"
    assert e.candidates[0].doubts == (
        "what torch.nn makes begins at version 1: only if the module is a copy (deepcopy begins at 0)",
    )


# Heads, embeddings, own cells, states, buffers ------------------------------------------------------------------------


def test_a_head_under_an_added_up_loss_fails_even_with_detach() -> None:
    model, x, total = nn.ModuleDict({"rnn": nn.RNN(I, H), "head": nn.Linear(H, K)}), series(), torch.zeros(())

    def step(i: int, state: Any) -> tuple[Tensor, Any]:
        nonlocal total
        output, state = model["rnn"](x[i], state)
        total = total + model["head"](output).square().sum()
        return total, state.detach()

    error, _, state = failing_loop(step, model.parameters())
    e = explain(error, model, state)
    assert clear(e) == ["head.weight"]
    assert (e.shape, e.candidates[0].shape, e.candidates[0].transposed) == ((H, K), (K, H), True)
    text = flat(e)
    assert "Usual cause: a loss added up over windows" in text
    assert "detaching the state does not help" in text
    assert "Another: the state carried" in text


class Language(nn.Module):
    """An embedding, a GRU, and a linear layer that shares the embedding's weight or not."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.embedding, self.gru, self.decoder = nn.Embedding(K, H), nn.GRU(H, H), nn.Linear(H, K)
        if tied:
            self.decoder.weight = self.embedding.weight

    def forward(self, ids: Tensor, state: Any = None) -> tuple[Tensor, Tensor]:
        output, state = self.gru(self.embedding(ids), state)
        return self.decoder(output), state


@pytest.mark.parametrize("tied", [False, True])
def test_an_embedding_is_not_what_multiplies_unless_it_is_tied(tied: bool) -> None:
    model = Language(tied)
    ids, total = torch.arange(4 * T * B).reshape(4, T, B) % K, torch.zeros(())

    def step(i: int, state: Any) -> tuple[Tensor, Any]:
        nonlocal total
        output, state = model(ids[i], state)
        total = total + output.square().sum()
        return total, state.detach()

    error, _, state = failing_loop(step, model.parameters())
    e = explain(error, model, state)
    assert e.shape == (H, K)
    if tied:
        assert clear(e) == ["embedding.weight = decoder.weight"]
    else:
        assert clear(e) == ["decoder.weight"]
        assert e.candidates[1].name == "embedding.weight"
        assert "keeps only the indices" in e.candidates[1].doubts[0]


def test_an_embedding_model_with_the_carried_state() -> None:
    model = Language(False)
    ids = torch.arange(4 * T * B).reshape(4, T, B) % K
    error, _, state = failing_loop(carried(model, ids), model.parameters())
    assert clear(explain(error, model, state)) == ["gru.weight_hh_l0", "gru.weight_ih_l0"]


class OwnCell(nn.Module):
    def __init__(self, inputs: int = I, transposed: bool = False) -> None:
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(inputs, H)), nn.Parameter(torch.randn(H, H))
        self.b, self.gain = nn.Parameter(torch.zeros(H)), nn.Parameter(torch.ones(H))
        self.transposed = transposed

    def forward(self, x: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor]:
        h = torch.zeros(B, H) if h is None else h
        for x_t in x:
            h = torch.tanh(x_t @ self.w + h @ (self.u.T if self.transposed else self.u) + self.b) * self.gain
        return h, h


@pytest.mark.parametrize("transposed", [False, True])
def test_an_own_cell(transposed: bool) -> None:
    cell = OwnCell(transposed=transposed)
    error, i, state = failing_loop(carried(cell, series()), [cell.u])
    assert ("which is output 0 of" in str(error)) == transposed
    e = explain(error, cell, state)
    assert (clear(e) if transposed else but_for_what_is_outside(e)) == ["u"]
    assert (i, e.version, e.expected, e.candidates[0].transposed) == (1, 1, 0, transposed)
    assert "state.detach()" in e.text
    assert "If it began" not in flat(e)  # nobody knows at which version an own parameter began


def test_vectors_of_an_own_cell_cannot_be_told_apart() -> None:
    cell = OwnCell()
    error, _, state = failing_loop(carried(cell, series()), [cell.b, cell.gain])
    e = explain(error, cell, state)
    assert e.shape == (H,)
    assert but_for_what_is_outside(e) == ["b", "gain"]
    assert "2 fit equally well" in flat(e)
    assert "What" not in flat(e).partition("let only one of them be written to")[2]


def test_an_input_buffer_of_an_own_weights_shape_is_not_taken_for_it() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(B, H))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.w

    module, x = Scale(), torch.ones(B, H)
    y = module(x)
    x.fill_(2)  # what was modified; the weight, at version 1 too, was not read
    written(module.w)
    e = explain(failure(y.sum().backward), module)
    assert (but_for_what_is_outside(e), e.certain) == (["w"], False)


def test_an_own_cell_without_its_state_is_not_taken_for_recurrent() -> None:
    cell = OwnCell()
    error, _, _ = failing_loop(carried(cell, series()), cell.parameters())
    e = explain(error, cell)
    assert "gain" in but_for_what_is_outside(e)
    assert "window" not in e.text
    assert "a result carried on" in flat(e)


@pytest.mark.parametrize(("cell", "state_name"), [(nn.RNN, "state"), (nn.GRU, "state"), (nn.LSTM, "state[0]")])
def test_a_state_reset_in_place(cell: Any, state_name: str) -> None:
    rnn, x = cell(I, H), series()
    _, state = rnn(x[0])
    state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
    h = state[0] if isinstance(state, tuple) else state
    output, _ = rnn(x[1], state)
    h[:, 2] = 0
    error = failure(output.sum().backward)
    e = explain(error, rnn, state)
    assert clear(e) == [state_name]
    assert (e.version, e.expected, e.shape, e.candidates[0].shape) == (1, 0, (B, H), (1, B, H))
    assert "Usual cause: the state was written to in place (`h[:, done] = 0`" in flat(e)
    assert "the update" not in flat(e)
    assert clear(explain(error, rnn)) == []


def test_an_unbatched_state_and_a_state_of_an_own_cell() -> None:
    rnn, x = nn.RNN(I, H), series()
    h = torch.zeros(1, H)
    output, _ = rnn(x[0, :, 0], h)
    h[:] = 1
    e = explain(failure(output.sum().backward), rnn, h)
    assert (clear(e), e.shape) == (["state"], (1, H))
    cell, h = OwnCell(), torch.zeros(B, H)
    output, _ = cell(x[0], h)
    h[1] = 1
    assert clear(explain(failure(output.sum().backward), cell, [h])) == ["state[0]"]


def test_a_state_with_a_history_written_in_place() -> None:
    rnn, x = nn.LSTM(I, H), series()
    _, (h, c) = rnn(x[0])
    output, _ = rnn(x[1], (h, c))
    h[:, 1] = 0
    error = failure(output.sum().backward)
    assert "which is output 0 of" in str(error)
    assert clear(explain(error, rnn, (h, c))) == ["state[0]"]


def test_buffers_of_a_batch_norm() -> None:
    x = torch.randn(B, K, requires_grad=True)
    norm = nn.BatchNorm1d(K).eval()
    y = norm(x)
    norm.reset_running_stats()
    e = explain(failure(y.sum().backward), norm)
    assert but_for_what_is_outside(e) == ["running_mean", "running_var"]
    assert [(c.name, c.version) for c in e.candidates[2:]] == [("weight", 1), ("bias", 1)]
    assert "If it is a parameter" not in flat(e)
    assert "Usual cause: a buffer" in flat(e)
    assert "window" not in e.text
    y = norm(x)
    written(norm.running_var)
    e = explain(failure(y.sum().backward), norm)
    assert but_for_what_is_outside(e) == ["running_var"]
    assert e.expected == 2


def test_a_frozen_weight_is_shown_transposed_without_a_graph() -> None:
    linear = nn.Linear(H, K).requires_grad_(False)
    y = linear(torch.randn(B, H, requires_grad=True))
    written(linear.weight)
    error = failure(y.sum().backward)
    assert "which is output" not in str(error)
    assert clear(explain(error, linear)) == ["weight"]
    linear.requires_grad_(True)
    e = explain(error, linear)
    assert clear(e) == []
    assert "would be a view in the graph" in e.candidates[0].doubts[0]


def test_what_needs_no_gradient_is_no_view_in_a_graph() -> None:
    model = nn.ModuleList([nn.Linear(H, K), nn.Linear(H, K)])
    y = model[0](torch.randn(B, H, requires_grad=True))
    model[1].requires_grad_(False)
    written(*model.parameters())
    e = explain(failure(y.sum().backward), model)
    assert clear(e) == ["0.weight"]
    assert e.candidates[1].doubts == ("it needs no gradient now, and the array of the message did",)


def test_a_bias_is_only_added() -> None:
    norm = nn.LayerNorm(H)
    y = norm(torch.randn(B, H, requires_grad=True))
    written(*norm.parameters())
    e = explain(failure(y.sum().backward), norm)
    assert but_for_what_is_outside(e) == ["weight"]
    assert [c.name for c in e.candidates] == ["weight", "bias"]
    assert e.candidates[1].doubts == (
        OUTSIDE,
        "a bias is only added: nothing of it is kept",
    )


def test_what_a_users_own_layer_does_with_its_weight_is_not_presumed() -> None:
    class Untransposed(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return x @ self.weight

    layer = Untransposed(H, K)
    y = layer(torch.randn(B, K, requires_grad=True))
    written(layer.weight)
    e = explain(failure(y.sum().backward), layer)
    assert but_for_what_is_outside(e) == ["weight"]
    assert (e.shape, e.candidates[0].transposed) == ((K, H), False)


# Nothing to do with recurrent nets ------------------------------------------------------------------------------------


def test_two_losses_with_an_update_between() -> None:
    net = nn.Sequential(nn.Linear(I, H), nn.Tanh(), nn.Linear(H, K))
    x = torch.randn(B, I)
    first, second = net(x).sum(), net(x).square().sum()
    optimizer = SGD(net.parameters(), lr=0.1)
    first.backward()
    optimizer.step()
    e = explain(failure(second.backward), net)
    assert clear(e) == ["2.weight"]
    text = flat(e)
    assert "window" not in text
    assert "state" not in text
    assert "two losses with an update between their backward passes" in text
    assert "compute it anew after the update" in text


@pytest.mark.parametrize("square", [False, True])
def test_an_activation_fits_no_parameter(square: bool) -> None:
    size = B if square else H  # then it has the shape and the version of the second weight
    net = nn.Sequential(nn.Linear(I, size), nn.Sigmoid(), nn.ReLU(inplace=True), nn.Linear(size, size))
    e = explain(failure(net(torch.randn(B, I)).sum().backward), net)
    assert clear(e) == []
    assert e.candidates == ()
    text = flat(e)
    assert "Of the module's parameters and buffers none fits. It is the result of Sigmoid: an array that" in text
    assert "`ReLU(inplace=True)`" in text
    assert "anomaly" in text
    assert "window" not in text
    assert "state" not in text


def test_an_input_of_a_weights_shape_and_version_is_not_taken_for_the_weight() -> None:
    net, x = nn.Linear(H, H), torch.randn(H, H)
    y = net(x)
    x += 1
    e = explain(failure(y.sum().backward), net)
    assert (e.version, e.expected, net.weight._version) == (1, 0, 1)
    assert clear(e) == []
    assert e.candidates[0].name == "weight"
    assert len(e.candidates[0].doubts) == 2
    assert "If it is none of these, it is an array that the forward was given or made" in flat(e)


def test_other_views_of_parameters_are_admitted_not_guessed() -> None:
    prelu = nn.PReLU()
    y = prelu(torch.randn(B, H, requires_grad=True))
    written(prelu.weight)
    e = explain(failure(y.sum().backward), prelu)
    assert clear(e) == []
    assert "Or it is a slice or another view of a parameter" in flat(e)


def test_an_activation_of_a_recurrent_module_is_not_blamed_on_the_state() -> None:
    rnn, x = nn.RNN(I, H), series()
    y = torch.sigmoid(rnn(x[0])[0])
    y += 1
    e = explain(failure(y.sum().backward), rnn)
    assert clear(e) == []
    assert "the result of Sigmoid" in flat(e)
    assert "window" not in e.text


# Messages of other machines and versions ------------------------------------------------------------------------------

MESSAGE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[{kind} {shape}]{op} is at version {version}; expected version 1 instead. Hint: enable anomaly detection ..."
)


@pytest.mark.parametrize("op", ["AsStrided", "AsStridedBackward", "AsStridedBackward0", "TBackward", "TBackward0"])
def test_spellings_of_the_view(op: str) -> None:
    rnn = nn.GRU(I, H)
    written(*rnn.parameters())
    of = f", which is output 0 of {op},"
    message = MESSAGE.format(kind="torch.FloatTensor", shape=[H, 3 * H], op=of, version=2)
    for text in (message, message.replace(" ", "\n"), RuntimeError(message)):
        assert clear(explain(text, rnn)) == ["weight_hh_l0"]
    wrong = explain(message.replace(op, "ReluBackward0"), rnn)
    assert (clear(wrong), wrong.candidates) == ([], ())


@pytest.mark.parametrize("op", ["", ", which is output 0 of TBackward,"])
def test_a_message_from_the_gpu_explained_on_the_cpu(op: str) -> None:
    gru = nn.GRU(I, H)
    written(*gru.parameters())
    shape = [H, 3 * H] if op else [3 * H, H]
    message = MESSAGE.format(kind="torch.cuda.FloatTensor", shape=shape, op=op, version=2)
    e = explain(message, gru)
    assert clear(e) == []
    (one,) = e.candidates
    assert (one.name, one.transposed) == ("weight_hh_l0", bool(op))
    assert one.doubts == ("it is on the CPU now, and the message speaks of CUDA",)


KINDS = [
    ("torch.FloatTensor", torch.float32),
    ("torch.DoubleTensor", torch.float64),
    ("torch.HalfTensor", torch.float16),
    ("torch.BFloat16Tensor", torch.bfloat16),
    ("CPUBFloat16Type", torch.bfloat16),
    ("CPUComplexFloatType", torch.complex64),
]


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_dtypes_must_agree(kind: str, dtype: torch.dtype) -> None:
    message = MESSAGE.format(kind=kind, shape=[H, K], op=", which is output 0 of T,", version=2)
    for other in {dtype for _, dtype in KINDS}:
        linear = nn.Linear(H, K, dtype=other)
        written(linear.weight)
        e = explain(message, linear)
        assert clear(e) == (["weight"] if other == dtype else [])
        assert bool(e.candidates) == (other == dtype)


def test_bfloat16_for_real() -> None:
    w = nn.Parameter(torch.ones(I, H, dtype=torch.bfloat16))
    y = torch.ones(B, I, dtype=torch.bfloat16, requires_grad=True) @ w
    written(w)
    assert but_for_what_is_outside(explain(failure(y.sum().backward), nn.ParameterList([w]))) == ["0"]


def test_a_number_without_axes() -> None:
    w = nn.Parameter(torch.tensor(2.0))
    y = w * torch.ones(B, requires_grad=True)
    written(w)
    e = explain(failure(y.sum().backward), nn.ParameterDict({"w": w}))
    assert (but_for_what_is_outside(e), e.shape) == (["w"], ())


def test_a_message_without_versions() -> None:
    e = explain(MESSAGE.partition(": [")[0], nn.RNN(I, H))
    assert (e.kind, e.version, e.shape, e.candidates, e.certain) == ("modified in place", None, None, (), False)
    assert "does not say which array" in flat(e)


@pytest.mark.parametrize("version", [0, 1])
def test_versions_that_make_no_sense(version: int) -> None:
    gru = nn.GRU(I, H)
    of = ", which is output 0 of AsStridedBackward0,"
    e = explain(MESSAGE.format(kind="torch.FloatTensor", shape=[H, 3 * H], op=of, version=version), gru)
    assert (clear(e), e.candidates, e.certain) == ([], (), False)
    assert (e.version, e.expected) == (version, 1)
    assert "The message's versions make no sense" in flat(e)
    assert "times since" not in flat(e)


def test_an_error_of_numpy_rnn_explains_itself() -> None:
    for keep, kind in ((True, "modified in place"), (False, "backward a second time")):
        rnn, h = numpy_rnn.RNN(I, H, rng=0), None
        optimizer = numpy_rnn.SGD(rnn.parameters(), lr=0.1)
        x = series()[0].numpy()

        def loop(rnn: Any = rnn, h: Any = h, optimizer: Any = optimizer, x: Any = x, keep: bool = keep) -> None:
            for _ in range(3):
                output, h = rnn(x, h)
                output.backward(np.ones_like(output.data), retain_graph=keep)
                optimizer.step()

        error = failure(loop)
        for module in (rnn, nn.Linear(I, H)):
            e = explain(error, module)  # type: ignore[arg-type]
            assert (e.kind, e.text, e.certain) == (kind, str(error), True)
        if keep:
            assert (e.version, e.expected, e.shape) == (error.version, error.expected, (H, H))  # type: ignore[attr-defined]
            assert [c.name for c in e.candidates] == ["weight_hh_l0"]


def test_what_has_no_version_or_no_shape_is_passed_over() -> None:
    with torch.inference_mode():
        h = torch.zeros(H, K)
    message = MESSAGE.format(kind="torch.FloatTensor", shape=[H, K], op="", version=2)
    assert explain(message, nn.LazyLinear(K), h).candidates == ()


# The other error, and errors that are neither -------------------------------------------------------------------------


def test_a_second_time_through_the_carried_state() -> None:
    rnn, x = nn.RNN(I, H), series()
    output, state = rnn(x[0])
    output.sum().backward()
    output, _ = rnn(x[1], state)
    e = explain(failure(output.sum().backward), rnn, state)
    assert (e.kind, e.certain, e.candidates, e.version) == ("backward a second time", False, (), None)
    text = flat(e)
    assert text.startswith("Trying to backward through the graph a second time.")
    assert "the state carried from one window to the next leads back into a window whose backward has run" in text
    assert "a loss is added up over windows" in text
    assert "carry `state.detach()`" in text
    assert "`retain_graph=True` on the first backward keeps the arrays, but" in text
    assert '"modified by an inplace operation"' in text
    assert e.text.endswith(PAGE)
    assert max(map(len, e.text.splitlines())) <= 100


def test_a_second_time_where_nothing_is_recurrent() -> None:
    net = nn.Sequential(nn.Linear(I, H), nn.Tanh())
    loss = net(torch.randn(B, I)).sum()
    loss.backward()
    e = explain(failure(loss.backward), net)
    assert e.kind == "backward a second time"
    assert "window" not in e.text
    assert "two backward passes through one forward" in flat(e)
    assert "retain_graph" in e.text
    old = "Trying to backward through the graph a second time, but the buffers have already been freed."
    assert explain(old, net) == e


def test_the_trap_is_real() -> None:
    rnn = nn.RNN(I, H)
    step, optimizer = carried(rnn, series()), SGD(rnn.parameters(), lr=0.1)
    kinds = []
    for retain_graph in (False, True):
        loss, state = step(0, None)
        loss.backward(retain_graph=retain_graph)
        optimizer.step()
        kinds.append(explain(failure(step(1, state)[0].backward), rnn, state).kind)
    assert kinds == ["backward a second time", "modified in place"]


def test_neither_of_the_two() -> None:
    linear = nn.Linear(I, H)
    error = failure(lambda: linear(torch.randn(B, K)))
    for one in (error, ValueError("x"), "hello"):
        e = explain(one, linear)
        assert (e.kind, e.certain, e.candidates) == ("other", False, ())
        assert "neither" in e.text
        assert PAGE not in e.text


def test_arguments() -> None:
    with pytest.raises(TypeError, match="error must be an exception or its message, got int"):
        explain(3, nn.Linear(I, H))
    with pytest.raises(TypeError, match=r"module must be a torch\.nn\.Module, got RNN"):
        explain("x", numpy_rnn.RNN(I, H))
    with pytest.raises(TypeError, match=r"state\[1\] must be a tensor, or a tuple or list of tensors, got float"):
        explain("x", nn.Linear(I, H), (torch.zeros(1), 1.0))


def test_the_name_is_the_function_whatever_was_imported_before() -> None:
    import torch_rnn.inplace.explain as home

    assert torch_rnn.explain is home.explain is explain
    assert {"explain", "Explanation"} <= set(torch_rnn.__all__)
