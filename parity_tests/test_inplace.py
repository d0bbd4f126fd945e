"""The article's loop: both libraries fail alike, run alike, and are silently wrong alike."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from parity_tests.helpers import assert_parity
from parity_tests.mutations import mutated
from parity_tests.mutations.tape import RULES
from torch_rnn.inplace import story
from torch_rnn.inplace.agreement import differences
from torch_rnn.inplace.experiment import CARRIES, LOSSES, Experiment, Outcome, Window, run, true_gradients
from torch_rnn.inplace.sides import IN_PLACE, SECOND_TIME, SIDES, Failure, TracedTorchSide
from torch_rnn.inplace.variants import ARTICLE, SILENT, VARIANTS
from torch_rnn.twins import twin

SIZES: dict[str, Any] = {
    "input_size": 2,
    "hidden_size": 3,
    "batch": 4,
    "data": "random",
    "optimizer": "sgd",
    "lr": 0.1,
    "windows": 4,
    "windows_per_step": 2,
}
UPDATES = ("optimizer", "lr 0", "no_grad", "fused", "none")
HEADS = ((False, "output"), (True, "output"), (True, "h_n"))
WRITES = (("", ""), ("", "weight_hh"), ("weight_hh", ""))
# Per choice of carry, losses and update: 4 of the 8 (T, L, D), each with other choices of the rest, in turn.
SHAPES = [
    (1, 1, False),
    (2, 1, False),
    (1, 2, False),
    (2, 2, True),
    (1, 1, True),
    (3, 1, True),
    (1, 3, True),
    (2, 3, False),
]
REST = list(itertools.product((True, False), (False, True), (False, True), HEADS, WRITES, ("float64", "float32")))


def experiments(carry: str, losses: str, update: str) -> list[Experiment]:
    rng = np.random.default_rng([list(CARRIES).index(carry), list(LOSSES).index(losses), UPDATES.index(update)])
    chosen = []
    for shape in SHAPES:
        for k in rng.permutation(len(REST))[:3]:
            retain, learn_state, learn_input, (head, reads), (only, but), dtype = REST[k]
            window, num_layers, bidirectional = shape
            cell = "lstm" if "only" in carry else ("rnn", "lstm", "gru")[k % 3]
            if bidirectional and head and reads == "h_n":
                head = False
            chosen.append(
                Experiment(
                    cell=cell,
                    carry=carry,
                    losses=losses,
                    update=update,
                    retain_graph=retain,
                    learn_state=learn_state,
                    learn_input=learn_input,
                    head=head,
                    loss_reads=reads,
                    updates_only=only,
                    updates_but=but,
                    window=window,
                    num_layers=num_layers,
                    bidirectional=bidirectional,
                    dtype=dtype,
                    **SIZES,
                )
            )
    return chosen


CHOICES = list(itertools.product(CARRIES, LOSSES, UPDATES))


@pytest.mark.parametrize(("carry", "losses", "update"), CHOICES)
def test_both_libraries_do_the_same(carry: str, losses: str, update: str) -> None:
    """Both run with equal gradients, or both raise the matching error in the same window at the same versions."""
    for experiment in experiments(carry, losses, update):
        found = differences(experiment, run(experiment, SIDES["numpy"]), run(experiment, SIDES["torch"]))
        assert not found, (found, experiment)


def test_the_combinations_are_many_and_of_every_kind() -> None:
    chosen = [e for choice in CHOICES for e in experiments(*choice)]
    assert len(set(chosen)) >= 2000
    outcomes = [run(e, SIDES["numpy"]) for e in chosen[::7]]
    kinds = [None if o.failure is None else (o.failure.kind, o.at, o.failure.name) for o in outcomes]
    for kind in (None, IN_PLACE, SECOND_TIME):
        assert sum((k[0] if k else None) == kind for k in kinds) >= 20
    assert {k[1] for k in kinds if k} >= {0, 1, 2, 3}
    names = {k[2] for k in kinds if k and k[2]}
    assert names >= {"weight_hh_l0", "weight_ih_l0", "weight_hh_l0_reverse", "weight_ih_l1", "weight", "input"}


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_both_read_the_same_weights_in_the_same_order(num_layers: int, bidirectional: bool) -> None:
    for window, state, x, (only, but), carry in itertools.product(
        (1, 2), (False, True), (False, True), WRITES, ("name", "clone", "detach")
    ):
        experiment = Experiment(
            window=window,
            num_layers=num_layers,
            bidirectional=bidirectional,
            learn_state=state,
            learn_input=x,
            updates_only=only,
            updates_but=but,
            carry=carry,
            dtype="float64",
            **SIZES,
        )
        ours, theirs = run(experiment, SIDES["numpy"]), run(experiment, TracedTorchSide())
        assert ours.reads == theirs.reads
        assert ours.at == theirs.at


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_of_the_story(name: str) -> None:
    r = story.results([name])[name]
    assert r.differences == []
    expected = {
        "no-retain-graph": (SECOND_TIME, 1, None, None),
        "reset-rows": (IN_PLACE, 0, 1, 0),
        **dict.fromkeys(
            ("two-steps", "two-layers", "learnt-state", "learnt-input", "running-loss"), (IN_PLACE, 1, 2, 1)
        ),
        "lstm-h-only-two": (IN_PLACE, 1, 2, 1),
        **dict.fromkeys(("lstm-detach", "lstm-h-only"), None),
        **dict.fromkeys(("all-but-weight-hh", "detach", "data", "no-step", "one-update", *SILENT), None),
    }.get(name, (IN_PLACE, 2, 3, 2))
    failure = r.torch.failure
    assert (failure and (failure.kind, r.torch.at, failure.version, failure.expected)) == expected
    text = story.detail(r)
    assert text.endswith("Both libraries do the same.")
    assert max(map(len, text.splitlines())) <= 100


def test_the_messages_of_numpy_rnn_name_what_was_written_by_whom_and_what_to_do() -> None:
    failure = run(ARTICLE, SIDES["numpy"]).failure
    assert failure is not None
    assert (failure.name, failure.shape) == ("weight_hh_l0", (1, 1))
    for words in (
        "modified by an inplace operation: weight_hh_l0 [1, 1] is at version 3; expected version 2 instead",
        "call 2 of RNN(1, 1) saved it at version 2",
        "Adadelta.step() has written into it since",
        "state.detach()",
        "one backward over all windows before the one update",
        "derivations/04-inplace-error.md",
    ):
        assert words in failure.message
    second = run(replace(ARTICLE, retain_graph=False), SIDES["numpy"]).failure
    assert second is not None
    for words in ("Trying to backward through the graph a second time", "state.detach()", "call 1 of RNN(1, 1)"):
        assert words in second.message


@pytest.mark.parametrize("update", ["fused", "data", "view"])
def test_silence_is_wrong_alike_and_the_truth_is_known(update: str) -> None:
    """The true gradients are PyTorch's own: of a graph in which each window has weights of its own."""
    experiment = Experiment(update=update, window=2, num_layers=2, dtype="float64", **SIZES)
    ours, theirs = run(experiment, SIDES["numpy"]), run(experiment, SIDES["torch"])
    assert differences(experiment, ours, theirs) == []
    assert ours.failure is None
    assert {v for w in theirs.windows for v in w.versions_after.values()} == {1}
    for i in range(1, 4):
        models = [twin(experiment.model()) for _ in range(i + 1)]
        h: Any = torch.zeros(2, 4, 3, dtype=torch.float64)
        for j, model in enumerate(models):
            for name, parameter in model.named_parameters():
                if name in theirs.windows[j].weights:
                    parameter.data.copy_(torch.from_numpy(theirs.windows[j].weights[name]))
            x, y = experiment.arrays(j)
            output, h = model.rnn(torch.from_numpy(x), h)
            loss = ((output - torch.from_numpy(y)) ** 2).mean()
        loss.backward()
        true = true_gradients(experiment, ours.windows[: i + 1])
        for name, gradient in true.items():
            grads = [dict(model.named_parameters())[name].grad for model in models]
            assert_parity(gradient, sum(g for g in grads if g is not None), f"true d{name} at {i}")
        wrong = ours.windows[i].gradients["rnn.weight_hh_l0"]
        assert wrong is not None
        error = np.abs(wrong - true["rnn.weight_hh_l0"]).max() / np.abs(true["rnn.weight_hh_l0"]).max()
        assert error > 1e-3


def test_the_figures_of_the_silent_case() -> None:
    """RNN(1, 2) in float64 from PyTorch's seed 0, x = 1 in one-step windows, loss = output.sum(), SGD at 0.1."""
    norms = []
    for write in ("fused", "data", "view"):
        torch.manual_seed(0)
        rnn = torch.nn.RNN(1, 2).double()
        optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1, fused=True)
        h = torch.zeros(1, 1, 2, dtype=torch.float64)
        for _ in range(4):
            optimizer.zero_grad()
            output, h = rnn(torch.ones(1, 1, 1, dtype=torch.float64), h)
            output.sum().backward(retain_graph=True)
            norms.append(float(rnn.weight_hh_l0.grad.norm()))
            if write == "fused":
                optimizer.step()
            for p in rnn.parameters():
                if write == "data":
                    p.data -= 0.1 * p.grad
                if write == "view":
                    p.detach().numpy()[...] -= 0.1 * p.grad.numpy()
    np.testing.assert_allclose(norms[3::4], 0.41085885, rtol=0, atol=5e-9)


def test_the_story_is_whole_and_readable() -> None:
    text = "\n\n".join(story.tell(story.results(VARIANTS)))
    assert "DIFFER" not in text
    assert max(map(len, text.splitlines())) <= 100
    for name in VARIANTS:
        assert f"    {name} " in text
    assert "PyTorch, at i = 2: one of the variables" in text
    flat = " ".join(text.split())
    for name in SILENT:
        row = next(line for line in text.splitlines() if line.startswith(f"    {name} ") and "%" in line)
        assert row.endswith("0.6%, 1.5%, 0.9%")
    assert "20.5% of the norm of dW_hh in the last window" in flat
    if torch.backends.mkldnn.is_available():
        rows = "lstm i=1: 2 for 1, lstm-h-only i=1: 2 for 1, lstm-detach runs."
        assert f"the same three rows are then: {rows}" in flat


def test_json_says_null_for_what_pytorch_does_not_tell() -> None:
    told = story.as_json(story.results(["article"])["article"])
    assert told["numpy"]["reads"] == ["rnn.weight_hh_l0"]
    assert told["torch"]["reads"] is None


def outcome(**changed: Any) -> Outcome:
    """One window that ran, and a failure in the next; ``changed`` names what of them is otherwise."""
    window: dict[str, Any] = {
        "loss": 1.5,
        "gradients": {"w": np.array([[1.0, -2.0]]), "v": np.array([1e-6]), "unused": None},
        "weights": {},
        "versions_before": {"w": 1},
        "versions_after": {"w": 2},
        "shares_memory": True,
    }
    failed: dict[str, Any] = {"kind": IN_PLACE, "message": "", "version": 3, "expected": 2, "shape": (1, 2)}
    window |= {key: value for key, value in changed.items() if key in window}
    failed |= {key: value for key, value in changed.items() if key in failed}
    windows = [Window(**window)] * changed.get("windows", 1)
    return Outcome(windows, None if changed.get("ran") else Failure(**failed))


def gradients(**changed: Any) -> dict[str, Any]:
    return {"gradients": {"w": np.array([[1.0, -2.0]]), "v": np.array([1e-6]), "unused": None} | changed}


EQUAL: list[dict[str, Any]] = [
    {},
    {"message": "in other words"},
    {"shape": (2, 1)},  # the transpose
    gradients(w=np.array([[1.0, -2.0 - 1e-12]])),
    gradients(v=np.array([1e-6 + 1e-15])),  # 1e-9 of its own scale, 5e-14 of a hundredth of the largest
]
OTHERWISE: list[tuple[dict[str, Any], str]] = [
    (gradients(w=np.array([[1.0, -2.001]])), "window 0: dw differs by"),
    (gradients(w=np.array([[1.0, np.nan]])), "window 0: dw differs by inf"),
    (gradients(v=np.array([1e-6 + 1e-12])), "window 0: dv differs by"),
    (gradients(v=np.array([-1e-6])), "window 0: dv differs by"),
    (gradients(w=None), "window 0: dw is None on one side only"),
    (gradients(unused=np.array([0.0])), "window 0: dunused is None on one side only"),
    (gradients(more=np.array([1.0])), "window 0: dmore is None on one side only"),
    (gradients(w=np.array([1.0, -2.0])), "window 0: dw has the shapes"),
    ({"loss": 1.5001}, "window 0: loss differs by"),
    ({"versions_before": {"w": 0}}, "window 0: versions_before"),
    ({"versions_after": {"w": 3}}, "window 0: versions_after"),
    ({"shares_memory": False}, "window 0: shares_memory"),
    ({"windows": 2}, "numpy: "),
    ({"version": 4}, "numpy: "),
    ({"expected": 1}, "numpy: "),
    ({"shape": (2, 2)}, "numpy: "),
    ({"shape": (1, 1, 2)}, "numpy: "),
    ({"kind": SECOND_TIME}, "numpy: "),
    ({"ran": True}, "numpy: "),
]


@pytest.mark.parametrize("changed", EQUAL)
def test_what_is_equal_is_no_difference(changed: dict[str, Any]) -> None:
    experiment = Experiment(dtype="float64")
    assert differences(experiment, outcome(), outcome(**changed)) == []
    assert differences(experiment, outcome(**changed), outcome()) == []


@pytest.mark.parametrize(("changed", "said"), OTHERWISE)
def test_each_difference_is_reported(changed: dict[str, Any], said: str) -> None:
    experiment = Experiment(dtype="float64")
    for pair in ((outcome(), outcome(**changed)), (outcome(**changed), outcome())):
        (found,) = differences(experiment, *pair)
        assert found.startswith(said)


@pytest.mark.parametrize(("module", "attribute", "edits"), RULES)
def test_a_wrong_rule_is_noticed(module: str, attribute: str, edits: list[tuple[str, str]]) -> None:
    chosen = [replace(e, cell="rnn") for c in ("name", "clone") for e in experiments(c, "window", "optimizer")]

    def found() -> int:
        count = 0
        for e in chosen:
            try:
                count += bool(differences(e, run(e, SIDES["numpy"]), run(e, SIDES["torch"])))
            except (TypeError, ValueError):  # a weight that was not read is None
                count += 1
        return count

    assert found() == 0
    with mutated(module, attribute, *edits):
        assert found() > 0


def test_bad_settings_by_message() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"carry": "keep"}, "carry must be one of name, intermediate, .*, got 'keep'"),
        ({"update": "twice"}, "update must be one of optimizer, lr 0, .*, got 'twice'"),
        ({"carry": "detach h only"}, "carry must be another for cell 'rnn', which has one state"),
        ({"dtype": "float16"}, "dtype must be one of float32, float64, got 'float16'"),
        ({"head": True, "loss_reads": "h_n", "bidirectional": True}, "loss_reads must be 'output' for a head over two"),
    ]
    for settings, message in cases:
        with pytest.raises(ValueError, match=message):
            Experiment(**settings)


@pytest.mark.parametrize("side", SIDES.values(), ids=SIDES)
def test_an_error_of_another_kind_is_not_taken_for_one_of_the_two(side: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^shapes cannot be multiplied$"):
        side.failure(RuntimeError("shapes cannot be multiplied"))
