"""The likely bug, in the reports of check_backward and check_parity: named where there is one, and only there."""

from typing import Any

import numpy as np
import pytest
import torch

from numpy_rnn.cells import gru, lstm, rnn
from numpy_rnn.diagnosis import Case, diagnose, replay
from numpy_rnn.diagnosis.bugs import bugs_of, possible
from numpy_rnn.diagnosis.recognise import recognise
from numpy_rnn.diagnosis.signatures import signatures
from numpy_rnn.gradcheck import check_backward
from parity_tests.mutations import gru_cell, lstm_cell, mutated, rnn_cell
from parity_tests.ports import network
from torch_rnn import check_parity
from torch_rnn.cli.main import main

T, B, I, H, P = 6, 4, 3, 5, 2  # noqa: E741
MODULES = {"rnn": rnn, "lstm": lstm, "gru": gru}
GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def inputs(cell: str, seed: int = 0) -> dict[str, np.ndarray]:
    rng, rows = np.random.default_rng(seed), GATES[cell] * H
    shapes = {"x": (T, B, I), "h_0": (B, H)} | ({"c_0": (B, H)} if cell == "lstm" else {})
    shapes |= {"w_ih": (rows, I), "w_hh": (rows, H), "b_ih": (rows,), "b_hh": (rows,)}
    return {name: 0.5 * rng.normal(size=shape) for name, shape in shapes.items()}


def case_of(arrays: dict[str, np.ndarray], cell: str, upstream: Any) -> Case:
    names = {"w_ih": "weight_ih_l0", "w_hh": "weight_hh_l0", "b_ih": "bias_ih_l0", "b_hh": "bias_hh_l0"}
    given = {names.get(n, n): a[None] if n in ("h_0", "c_0") else a for n, a in arrays.items()}
    given |= dict(zip(("doutput", "dh_n", "dc_n"), (upstream[0], *(d[None] for d in upstream[1:])), strict=False))
    return Case(cell, given)


def wrong_backward(cell: str, bug: str) -> Any:
    """A hand-written backward with a bug, of the functions of the cells."""

    def backward(upstream: Any, *arguments: np.ndarray) -> Any:
        arrays = dict(zip(inputs(cell), arguments, strict=True))
        found = replay(case_of(arrays, cell, upstream), bug)
        ours = {"w_ih": "weight_ih_l0", "w_hh": "weight_hh_l0", "b_ih": "bias_ih_l0", "b_hh": "bias_hh_l0"}
        return [found[f"d{ours.get(name, name)}"].reshape(arrays[name].shape) for name in arrays]

    return backward


def forward(cell: str) -> Any:
    return lambda *arguments: MODULES[cell].forward(*arguments)[:-1]


BACKWARD = ("h-for-h-before", "nothing-carried", "dh-n-dropped", "w-hh-transposed-in-backward", "only-the-carry")
OWN = {
    "rnn": ("tanh-derivative-at-z", "carried-without-w-hh"),
    "lstm": ("dc-assigned-not-added", "c-not-carried-back", "deltas-in-the-order-ifog"),
    "gru": ("reset-before-in-backward", "db-hn-without-r", "no-direct-path"),
}


@pytest.mark.parametrize("method", ["complex", "central"])
@pytest.mark.parametrize(("cell", "bug"), [(cell, bug) for cell in MODULES for bug in (*BACKWARD, *OWN[cell])])
def test_check_backward_names_the_bug(cell: str, bug: str, method: str) -> None:
    report = check_backward(forward(cell), wrong_backward(cell, bug), inputs(cell), method=method)
    assert not report.ok
    assert report.diagnosis is not None
    assert report.diagnosis.bugs[0] == bug
    assert f"likely bug: {bug}: " in report.table()
    assert check_backward(forward(cell), wrong_backward(cell, ""), inputs(cell), method=method).diagnosis is None


NAMES = {  # where the mutation's own name is another
    "nothing-carried": "dh-assigned-not-added",
    "nothing-carried-to-h": "dh-assigned-not-added",
    "h-t-for-h-t-minus-1": "h-for-h-before",
    "h-0-taken-as-zero": "h-0-taken-as-zero-in-dw-hh",
    "1-over-1-h2": "tanh-derivative-inverted",
    "derivative-at-h-t-minus-1": "tanh-derivative-at-h-before",
    "rnn-assigned-not-added-over-time": "weights-assigned-not-added-over-time",
    "carry-without-w-hh": "carried-without-w-hh",
    "dc-without-h": "c-gets-nothing-from-h",
    "derivative-of-tanh-at-tanh-c": "derivative-of-tanh-at-c",
    "carry-without-f": "c-carried-without-f",
    "carry-with-f-t-minus-1": "c-carried-with-f-before",
    "forget-gate-without-derivative": "derivative-of-f-missing",
    "c-t-for-c-t-minus-1": "c-for-c-before",
    "logistic-applied-twice": "sigmoid-applied-twice-in-i",
    "c-for-tanh-c": "c-for-tanh-c-in-do",
    "gate-order-i-f-o-g": "deltas-in-the-order-ifog",
    "biases-of-two-gates-swapped": "blocks-1023",
    "reset-before-the-product": "reset-before-in-backward",
    "z-for-1-minus-z": "z-for-1-minus-z-in-backward",
    "dr-without-w-hn": "h-for-s-in-dr",
    "gates-in-the-order-z-r-n": "deltas-in-the-order-zrn",
    "gru-h-t-for-h-t-minus-1": "h-for-h-before-in-dz",
    "step-1-never-visited": "first-step-skipped",
}


@pytest.mark.parametrize(
    ("cell", "mutation"),
    [
        pytest.param(cell, mutation, id=f"{cell}-{mutation.id}")
        for cell, table in (("rnn", rnn_cell), ("lstm", lstm_cell), ("gru", gru_cell))
        for mutation in table.MISTAKES
    ],
)
def test_the_mutations_of_the_cells_are_named(cell: str, mutation: Any) -> None:
    """The bugs that the mutation suite plants in the library's own source."""

    def backward(upstream: Any, *arguments: Any) -> Any:
        *_, saved = MODULES[cell].forward(*arguments)
        weights = arguments[-4:-2]
        return [g for g in MODULES[cell].backward(*upstream, saved, *weights) if g is not None]

    with mutated(MODULES[cell].__name__, "backward", *mutation.values[0]):
        report = check_backward(forward(cell), backward, inputs(cell))
    expected = NAMES.get(f"{cell}-{mutation.id}", NAMES.get(mutation.id, mutation.id))
    assert report.diagnosis is not None
    assert report.diagnosis.bugs[0] == expected
    assert report.diagnosis.unexplained == ()


def test_it_recognises_functions_with_names_and_layouts_of_their_own() -> None:
    """A scalar RNN of x (T,), and one with weights (I, H) whose functions give the last state only."""

    def scalar(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
        h = [h0]
        for t in range(len(x)):
            h.append(np.tanh(Wx * x[t] + Wh * h[-1] + b))
        return np.array(h[1:])

    def scalar_backward(dh: Any, x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
        h, dx, dWx, dWh, db, carried = [h0, *scalar(x, h0, Wx, Wh, b)], 0 * x, 0.0, 0.0, 0.0, 0.0
        for t in reversed(range(len(x))):
            dz = (dh[t] + carried) * (1 - h[t + 1] ** 2)
            dx[t], dWx, db, carried = dz * Wx, dWx + dz * x[t], db + dz, dz * Wh
            dWh += dz * (h[t] if t else h[-1])
        return dx, np.array(carried), np.array(dWx), np.array(dWh), np.array(db)

    values = {"x": np.array([1, -1, 0.5]), "h0": 0.3, "Wx": 0.5, "Wh": 0.8, "b": 0.1}
    report = check_backward(scalar, scalar_backward, {name: np.array(v) for name, v in values.items()})
    assert report.diagnosis is not None
    assert report.diagnosis.bugs == ("h-wraps-round-at-t-0",)

    def last(inputs: Any, h: Any, Wxh: Any, Whh: Any) -> Any:
        for x_t in inputs:
            h = np.tanh(x_t @ Wxh + h @ Whh)
        return h

    rng = np.random.default_rng(0)
    shapes = {"inputs": (T, B, I), "h": (B, H), "Wxh": (I, H), "Whh": (H, H)}
    arrays = {name: 0.5 * rng.normal(size=shape) for name, shape in shapes.items()}
    found = recognise(arrays, [last(*arrays.values())], [np.ones((B, H))])
    assert found is not None
    assert found.outputs == ["h_n"]
    assert found.results("")["Wxh"].shape == (I, H)
    names = list(arrays)

    def back(bug: str) -> Any:
        def backward(d: Any, *a: Any) -> Any:
            results = recognise(dict(zip(names, a, strict=True)), [last(*a)], [d]).results(bug)  # type: ignore[union-attr]
            return [results[name] for name in names]

        return backward

    assert check_backward(last, back(""), arrays).ok
    wrong = check_backward(last, back("tanh-derivative-inverted"), arrays)
    assert wrong.diagnosis is not None
    assert wrong.diagnosis.bugs == ("tanh-derivative-inverted",)


def test_functions_that_are_no_cell_are_not_taken_for_one() -> None:
    arrays = inputs("rnn")
    h, _ = forward("rnn")(*arrays.values())
    assert recognise(arrays, [h], [h]) is not None
    assert recognise(arrays, [h + 1e-6], [h]) is None
    assert recognise({**arrays, "extra": h}, [h], [h]) is None
    assert recognise({"x": h, "w": h}, [h], [h]) is None


@pytest.mark.parametrize("cell", MODULES)
@pytest.mark.parametrize("size", [1e-8, 1e-3, 1.0])
def test_random_errors_are_no_known_bug(cell: str, size: float) -> None:
    right = wrong_backward(cell, "")
    for seed in range(4):
        rng = np.random.default_rng(seed)

        def noisy(upstream: Any, *arguments: Any, rng: Any = rng, seed: int = seed) -> Any:
            gradients = right(upstream, *arguments)
            k = seed % len(gradients)
            gradients[k] = gradients[k] + size * np.abs(gradients[k]).max() * rng.normal(size=gradients[k].shape)
            return gradients

        report = check_backward(forward(cell), noisy, inputs(cell))
        assert report.diagnosis is not None
        assert report.diagnosis.findings == ()
        assert report.table().splitlines()[-1].startswith("no known bug has this signature: ")


def test_two_bugs_in_different_tensors_are_both_named() -> None:
    arrays = inputs("lstm")
    rng = np.random.default_rng(0)
    case = case_of(arrays, "lstm", [rng.normal(size=(T, B, H)), rng.normal(size=(B, H)), rng.normal(size=(B, H))])
    right, wrong = replay(case), replay(case, "h-for-h-before")
    theirs = {**right, "dweight_hh_l0": wrong["dweight_hh_l0"], "dbias_hh_l0": 0.25 * right["dbias_hh_l0"]}
    found = diagnose(theirs, right, case)
    assert set(found.bugs) == {"h-for-h-before", "factor-1/B"}
    noise = rng.normal(size=right["dx"].shape)
    assert diagnose({**theirs, "dx": noise}, right, case).unexplained == ("dx",)


@pytest.mark.parametrize("cell", MODULES)
def test_no_two_bugs_are_the_same_on_the_plain_case(cell: str) -> None:
    """Else one of the two names could never be the right one."""
    arrays, rng = inputs(cell), np.random.default_rng(0)
    upstream = [rng.normal(size=(T, B, H)), *(rng.normal(size=(B, H)) for _ in range(2 if cell == "lstm" else 1))]
    case = case_of(arrays, cell, upstream)
    right = replay(case)
    seen: dict[bytes, str] = {}
    for bug in bugs_of(case):
        if bug.startswith("windows-"):
            continue  # in one window each is its brother of t=0
        found = replay(case, bug)
        if all(np.array_equal(found[name], right[name]) for name in right):
            continue  # of directions, layers, windows or a projection
        key = b"".join(np.round(found[name], 9).tobytes() for name in right)
        assert key not in seen, (bug, seen.get(key))
        seen[key] = bug
        changed = not np.allclose(found["output"], right["output"], rtol=0, atol=1e-9)
        assert changed == (bug not in possible(case, bugs_of(case), outputs_right=True)), bug
        assert bug in possible(case, bugs_of(case), outputs_right=False)
    assert len(seen) > 20


@pytest.mark.parametrize(
    ("entry", "named"),
    [(-3, "factor--1"), (6, "factor-2"), (1.5, "factor-1/2"), (15, "factor-T"), (0, "zero"), (4, None), (3, None)],
)
def test_one_entry_shows_only_zero_and_a_factor_that_has_a_meaning(entry: float, named: str | None) -> None:
    found = signatures("db", np.array([float(entry)]), {"db": np.array([3.0])}, 1e-12, {"T": 5.0})
    assert [name for name, _ in found] == ([] if named is None else [named])


def test_another_shape_is_transposed_or_reshaped() -> None:
    w = np.random.default_rng(0).normal(size=(2, 3))
    for theirs, right, named in ((w.T, w, "transposed"), (w.ravel(), w, "reshaped"), (w[:1, :2], w[0, :2], "reshaped")):
        assert [name for name, _ in signatures("dw", theirs, {"dw": right}, 1e-12)] == [named]


def test_the_values_of_another_gradient_are_recognised_alone_and_added() -> None:
    one, other = np.random.default_rng(0).normal(size=(2, 5))
    for theirs, named in ((other, "has-dh_0"), (one + other, "plus-dh_0"), (one, None)):
        found = [name for name, _ in signatures("dc_0", theirs, {"dc_0": one, "dh_0": other}, 1e-12)]
        assert found == ([] if named is None else [named])


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("mode", ["RNN", "LSTM", "GRU"])
def test_check_parity_names_the_bug_in_either_layout(mode: str, batch_first: bool) -> None:
    module = getattr(torch.nn, mode)(I, H, 2, bidirectional=True, batch_first=batch_first, dtype=torch.float64)
    x = np.random.default_rng(0).normal(size=(B, T, I) if batch_first else (T, B, I))

    def turned(arrays: Any) -> Any:
        three = ("x", "dx", "output", "doutput")
        return {n: a.swapaxes(0, 1) if batch_first and n in three else a for n, a in arrays.items()}

    def port(given: Any) -> Any:
        given = {**given, **{name: np.zeros_like(a) for name, a in given.items() if name in ("dh_n", "dc_n")}}
        return turned(network.run(turned(given), settings(module)))

    bug = "dh-n-and-dc-n-dropped" if mode == "LSTM" else "dh-n-dropped"
    report = check_parity(port, x, torch_module=module)
    assert report.diagnosis is not None
    assert report.diagnosis.bugs == (bug,)
    assert f"likely bug: {bug}" in str(report)


def settings(module: torch.nn.RNNBase, lengths: Any = None) -> dict[str, Any]:
    names = ("bidirectional", "num_layers")
    known = {name: getattr(module, name) for name in names}
    return {**known, "cell": module.mode.lower().partition("_")[0], "layers": module.num_layers, "lengths": lengths,
            "windows": [T], "nonlinearity": getattr(module, "nonlinearity", "tanh")}  # fmt: skip


@pytest.mark.parametrize("lengths", [None, [3, 6, 1, 4]])
@pytest.mark.parametrize("mode", ["RNN", "LSTM", "GRU", "LSTM-P"])
def test_check_parity_takes_a_plain_function(mode: str, lengths: Any) -> None:
    options = {"proj_size": P} if mode == "LSTM-P" else {}
    kind = getattr(torch.nn, mode.removesuffix("-P"))
    module = kind(I, H, 2, bidirectional=True, dtype=torch.float64, **options)
    x = np.random.default_rng(0).normal(size=(T, B, I))

    def port(given: Any) -> Any:
        return network.run(given, settings(module, lengths))

    report = check_parity(port, x, lengths=lengths, torch_module=module)
    assert report.ok, report.table()
    assert len(report.rows) == len(list(module.parameters())) + (6 if mode.startswith("LSTM") else 4)
    assert report.columns == ("port", "torch")

    def wrong(given: Any) -> Any:
        return {name: a / B if name.startswith("dw") else a for name, a in port(given).items()}

    report = check_parity(wrong, x, lengths=lengths, torch_module=module)
    assert report.diagnosis is not None
    assert report.diagnosis.bugs == ("factor-1/B",)
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_plain_function_of_another_module() -> None:
    linear = torch.nn.Linear(3, 2, dtype=torch.float64)
    x = np.random.default_rng(0).normal(size=(5, 3))

    def port(given: Any) -> Any:
        d = given["doutput"]
        return {
            "output": x @ given["weight"].T + given["bias"],
            "dweight": d.T @ x,
            "dbias": d.mean(axis=0),
            "dx": d @ given["weight"],
        }

    report = check_parity(port, x, torch_module=linear)
    assert [row.name for row in report.rows if row.relative > 1e-12] == ["dbias"]


def test_shapes_that_do_not_fit_are_no_cell_and_what_is_turned_or_moved_is_named() -> None:
    arrays = inputs("rnn") | {"h_0": np.ones((B + 1, H))}
    assert recognise(arrays, [np.ones((T, B, H))], [np.ones((T, B, H))]) is None
    rng, right = np.random.default_rng(0), {"dx": np.arange(12.0).reshape(4, 3) ** 2 + 1}
    moved = np.concatenate([right["dx"][1:], rng.normal(size=(1, 3))])
    for theirs, bug in ((right["dx"].reshape(2, 6)[None], "reshaped"), (moved, "shifted-along-0")):
        assert [name for name, _ in signatures("dx", theirs, right, 1e-12)] == [bug]


def test_gates_in_another_order_are_named_without_biases_too() -> None:
    module = torch.nn.GRU(I, H, bias=False, dtype=torch.float64)
    x = np.random.default_rng(0).normal(size=(T, B, I))

    def port(given: Any) -> Any:
        found = replay(Case("gru", given), "gates-in-the-order-zrn")
        return {name: found[name] for name in ("output", "dx", "dweight_hh_l0")}

    report = check_parity(port, x, torch_module=module)
    assert report.diagnosis is not None
    assert report.diagnosis.bugs[0] == "gates-in-the-order-zrn"


def test_bad_ports_are_refused() -> None:
    module, x = torch.nn.RNN(I, H, dtype=torch.float64), np.ones((T, B, I))

    def writes(given: Any) -> Any:
        given["x"][0] = 0

    with pytest.raises(TypeError, match="torch_module must be given where module is a function of arrays"):
        check_parity(lambda given: {}, x)
    with pytest.raises(TypeError, match="module must be a module or a function of arrays, got int"):
        check_parity(3, x, torch_module=module)
    with pytest.raises(ValueError, match=r"module must return some of output, h_n, dx, dh_0, .*, got none"):
        check_parity(lambda given: {}, x, torch_module=module)
    with pytest.raises(ValueError, match=r"module must return some of .*, got dW"):
        check_parity(lambda given: {"dW": x}, x, torch_module=module)
    with pytest.raises(ValueError, match=r"module must not write into its arguments: .*read-only"):
        check_parity(writes, x, torch_module=module)
    for returned, kind in ((None, "NoneType"), ([x], "list"), ((x, x), "tuple"), (x, "ndarray")):
        with pytest.raises(TypeError, match=f"module must return a dict of some of output, h_n, dx, .*, got {kind}"):
            check_parity(lambda given, r=returned: r, x, torch_module=module)
    for dx, got in (
        (1j * x, "complex128"),
        (x.astype(object), "object"),
        (None, "NoneType"),
        ("a", "<U1"),
        ([[1.0], [1.0, 2.0]], "a list of lists of unequal lengths"),
    ):
        with pytest.raises(TypeError, match=f"dx of module must be an array of real numbers, got {got}"):
            check_parity(lambda given, r=dx: {"dx": r}, x, torch_module=module)
    with pytest.raises(TypeError, match="x must be an array of real numbers, got complex128"):
        check_parity(module, 1j * x)
    for seed in (-1, 0.5):
        for port in (module, lambda given: {}):
            with pytest.raises(ValueError, match="seed must be a whole number"):
                check_parity(port, x, torch_module=None if port is module else module, seed=seed)  # type: ignore[arg-type]


def test_a_gradient_in_float32_is_named_and_an_error_of_that_size_is_not() -> None:
    rng = np.random.default_rng(0)
    right = {"dw": rng.normal(size=(5, 3)), "db": rng.normal(size=3)}
    named = "rounded-to-float32"
    report = check_backward(
        lambda x, w: np.tanh(x @ w),
        lambda d, x, w: [
            g.astype(np.float32) for g in (d * (1 - np.tanh(x @ w) ** 2) @ w.T, x.T @ (d * (1 - np.tanh(x @ w) ** 2)))
        ],
        {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=(3, 2))},
    )
    assert report.diagnosis is not None
    assert [(f.bug, f.tensors) for group in report.diagnosis.findings for f in group] == [(named, ("x", "w"))]
    sums = {name: np.float32(3) * a.astype(np.float32) / np.float32(3) for name, a in right.items()}
    assert diagnose(sums, right).bugs == (named,)
    for seed in range(1, 100):
        noise = {n: a + 1e-7 * np.random.default_rng(seed).normal(size=a.shape) for n, a in right.items()}
        assert diagnose(noise, right).unexplained == ("dw", "db")
    far = {name: (a + 1e-3 * rng.normal(size=a.shape)).astype(np.float32) for name, a in right.items()}
    assert diagnose(far, right).unexplained == ("dw", "db")
    whole = {name: a.astype(np.float32) for name, a in right.items()}
    beside = {name: np.nextafter(a, np.float32(9)) for name, a in whole.items()}
    assert diagnose(beside, whole).unexplained == ("dw", "db"), (
        "float32 on both sides: no rounding to it tells them apart"
    )


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_port_with_wrong_shapes_gets_a_row_for_each_and_the_rest_is_compared(batch_first: bool) -> None:
    module = torch.nn.RNN(I, H, batch_first=batch_first, dtype=torch.float64)
    x = np.random.default_rng(0).normal(size=(T, B, I))

    def right(given: Any) -> Any:
        layer = torch.nn.RNN(I, H, batch_first=batch_first, dtype=torch.float64)
        layer.load_state_dict({n: torch.tensor(given[n]) for n in layer.state_dict()})
        inputs = torch.tensor(given["x"], requires_grad=True)
        outputs = layer(inputs, torch.tensor(given["h_0"]))
        torch.autograd.backward(outputs, [torch.tensor(given[n]) for n in ("doutput", "dh_n")])
        found = {"output": outputs[0].detach(), "dx": inputs.grad}
        return found | {f"d{n}": p.grad for n, p in layer.named_parameters()}

    def turned(given: Any) -> Any:
        found = right(given)
        return found | {"dweight_ih_l0": found["dweight_ih_l0"].T, "dx": found["dx"].reshape(-1)}

    assert check_parity(right, x.astype(">f8"), torch_module=module).ok
    report = check_parity(turned, x, torch_module=module)
    assert {row.name for row in report.rows if row.relative > report.tolerance} == {"dx", "dweight_ih_l0"}
    assert "transposed: it is transposed: (3, 5) for (5, 3) (dweight_ih_l0)" in " ".join(report.table().split())
    assert "reshaped: its values are right" in report.table()
    assert all(word in report.table() for word in ("(3, 5) for (5, 3)", "FAIL", "2 of 6 differ"))


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("shape", [(B, I), (I,)])
def test_a_port_of_a_cell_gets_states_of_zeros(kind: str, shape: Any) -> None:
    module = getattr(torch.nn, kind)(I, H, dtype=torch.float64)
    x = np.random.default_rng(0).normal(size=shape)

    def port(given: Any) -> Any:
        states = [torch.tensor(given[n]) for n in ("h_0", "c_0") if n in given]
        assert not any(map(torch.any, states))
        result = module(torch.tensor(given["x"]), tuple(states) if len(states) > 1 else states[0])
        return {"output": (result[0] if len(states) > 1 else result).detach()}

    assert check_parity(port, x, torch_module=module).ok


def test_rnn_parity_gradients_prints_the_likely_bug(monkeypatch: Any, capsys: Any) -> None:
    right = rnn.backward

    def wrong(*arguments: Any, **options: Any) -> Any:
        found = right(*arguments, **options)
        return found._replace(dw_hh=2 * found.dw_hh)

    monkeypatch.setattr(rnn, "backward", wrong)
    assert main(["gradients"]) == 1
    assert "likely bug: factor-2: the gradient is doubled" in capsys.readouterr().out
