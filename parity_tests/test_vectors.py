"""Golden vectors: what is exported, that a formula gives the inputs, and that a port's bug is named."""

import hashlib
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numpy_rnn
from numpy_rnn.diagnosis import replay
from numpy_rnn.diagnosis.bugs import bugs_of
from numpy_rnn.diagnosis.optimizers import BUGS, replay_steps
from numpy_rnn.weights import NonFiniteWeightsWarning
from parity_tests.mutations import mutated
from parity_tests.ports import network
from parity_tests.ports.bugs import CELL_BUGS
from parity_tests.ports.bugs_around import STEPS, network_bugs
from torch_rnn.cli.main import main
from torch_rnn.vectors.cases import CELLS, all_specs
from torch_rnn.vectors.check import Golden, check, load, text
from torch_rnn.vectors.export import NUMPY, TORCH, compute

ALL = [*CELL_BUGS, *network_bugs()]


@pytest.fixture(scope="session")
def golden(tmp_path_factory: Any) -> Path:
    """A directory with exported vectors."""
    directory = tmp_path_factory.mktemp("golden")
    assert main(["vectors", "export", "--out", str(directory)]) == 0
    return directory


@pytest.fixture
def call(capsys: Any, golden: Path, tmp_path: Path) -> Any:
    """Save the results, let the command check them, and return its status and what it prints."""

    def call(theirs: dict, *options: str, suffix: str = ".npz") -> tuple[int, str]:
        file = tmp_path / f"theirs{suffix}"
        numpy_rnn.save_weights(theirs, file)
        capsys.readouterr()
        status = main(["vectors", "check", str(golden), "--theirs", str(file), *options])
        out, err = capsys.readouterr()
        assert err == ""
        return status, out

    return call


@pytest.fixture(scope="session")
def vectors(golden: Path) -> Golden:
    return load(golden)


@pytest.fixture
def judge(vectors: Golden) -> Any:
    """What the command prints and its status, without the files in between."""

    def judge(theirs: dict) -> tuple[int, str]:
        verdict = check(vectors, theirs)
        return 0 if verdict.ok else 1, text(verdict)

    return judge


@cache
def manifest(golden: Path) -> dict[str, Any]:
    return json.loads((golden / "manifest.json").read_text())


def run_port(golden: Path, cases: list[str], dtype: Any = np.float64, steps: bool = False) -> dict[str, np.ndarray]:
    """What the port makes of some cases, from the manifest alone."""
    content, results = manifest(golden), {}
    for name in cases:
        settings = content["cases"][name]
        given = {key: array.astype(dtype) for key, array in inputs(golden, name).items()}
        with np.errstate(all="ignore"):
            found = network.run(given, settings)
            if steps:
                found |= network.steps(given, settings, content["optimizers"])
        results |= {f"{name}/{key}": array for key, array in found.items()}
    return results


@cache
def inputs(golden: Path, name: str) -> dict[str, np.ndarray]:
    """What goes into a case, by the manifest alone; computed once, since the loop over entries is slow."""
    return {key: recomputed(t) for key, t in manifest(golden)["cases"][name]["tensors"].items() if "from" in t}


def recomputed(tensor: dict[str, Any]) -> np.ndarray:
    """The formula of the manifest, once more, by its text."""
    shape, source = tensor["shape"], tensor["from"]
    s, count = source["seed"], int(np.prod(shape))
    rows = count // shape[0]
    entries = []
    for k in range(count):
        s = (75 * s) % 65537
        entry = source["scale"] * ((s >> 8) - 128) / 128
        if "offsets" in source:
            block = shape[0] // len(source["offsets"])
            entry += source["offsets"][k // rows // block]
        entries.append(entry)
    return np.array(entries).reshape(shape)


@contextmanager
def planted(file: str, function: str | None, edits: list) -> Iterator[None]:
    """The port with the bug: in one function, or in each that an edit touches."""
    module = importlib.import_module(f"parity_tests.ports.{file}")
    functions = [function] if function else ["sigmoid", "forward", "backward"]
    with ExitStack() as stack:
        for name in functions:
            source = inspect.getsource(getattr(module, name)) if hasattr(module, name) else ""
            if function or any(old in source for old, _ in edits):
                stack.enter_context(mutated(module.__name__, name, *edits))
        yield


def named(out: str) -> list[str]:
    """The bugs that the verdict names, and the alternatives that a case gives."""
    return re.findall(r"^(?:likely bug| +or): (\S+?): ", out, re.MULTILINE)


def test_the_manifest_alone_gives_every_input(golden: Path) -> None:
    arrays, count = numpy_rnn.load_weights(golden / "vectors.npz"), 0
    for name, case in manifest(golden)["cases"].items():
        for key, tensor in case["tensors"].items():
            array = arrays.pop(f"{name}/{key}")
            assert list(array.shape) == tensor["shape"]
            assert array.dtype == np.float64
            if "from" in tensor:
                count += 1
                assert recomputed(tensor).tobytes() == array.tobytes(), f"{name}/{key}"
                assert array.ravel()[:3].tolist() == tensor["first"]
                assert np.array_equal(array.astype(np.float32).astype(np.float64), array)
                if "offsets" not in tensor["from"]:
                    assert np.array_equal(array.astype(np.float16).astype(np.float64), array)
    assert not arrays
    assert count > 400


def test_the_files_hold_the_same_and_their_hashes(golden: Path) -> None:
    npz, safetensors = (numpy_rnn.load_weights(golden / f"vectors.{s}") for s in ("npz", "safetensors"))
    assert set(npz) == set(safetensors)
    assert all(npz[name].tobytes() == safetensors[name].tobytes() for name in npz)
    hashes = manifest(golden)["sha256"]
    assert set(hashes) == {"vectors.npz", "vectors.safetensors"}
    for file, digest in hashes.items():
        assert hashlib.sha256((golden / file).read_bytes()).hexdigest() == digest


def test_the_same_bytes_every_time(golden: Path, tmp_path: Path) -> None:
    assert main(["vectors", "export", "--out", str(tmp_path / "a" / "b")]) == 0
    for file in ("vectors.npz", "vectors.safetensors", "manifest.json"):
        assert (tmp_path / "a" / "b" / file).read_bytes() == (golden / file).read_bytes()


def test_the_manifest_says_what_it_must(golden: Path) -> None:
    content = manifest(golden)
    assert set(content["versions"]) == {"rnn-parity", "numpy", "torch", "safetensors"}
    assert content["tolerances"] == {"float64": 1e-12, "float32": 2e-4}
    assert set(content["equations"]) >= {"rnn", "lstm", "gru", "sgd", "adam", "loss"}
    for case in content["cases"].values():
        assert case["torch"]["worst_error_over_scale"] <= 1e-13  # far from the tolerance that a port is given
        assert case["why"]
    for cell in CELLS:
        mine = [case for case in content["cases"].values() if case["cell"] == cell]
        assert {(c["layers"], c["bidirectional"]) for c in mine} >= {(1, False), (1, True), (2, True), (3, False)}
        assert any(c["T"] == 1 for c in mine)
        assert any(c["T"] == 60 for c in mine)
        assert any(c["B"] == 1 and c["H"] > 1 for c in mine)
        assert any(not c["bias"] for c in mine)
        assert any(c["lengths"] for c in mine)
        assert any(len(c["windows"]) > 1 for c in mine)
    assert any(c["P"] for c in content["cases"].values())
    assert any(c.get("nonlinearity") == "relu" for c in content["cases"].values())


def test_awkward_cases_are_awkward(golden: Path) -> None:
    """Saturated ones saturate; relu has open and closed units, all clear of the kink; padding is not zero."""
    arrays, specs = numpy_rnn.load_weights(golden / "vectors.npz"), all_specs()
    for cell in CELLS:
        given = specs[f"{cell}-saturated"].given()
        z = given["x"] @ given["weight_ih_l0"].T + given["bias_ih_l0"] + given["bias_hh_l0"]
        assert (np.abs(z) > 5).mean() > 0.2
        x = arrays[f"{cell}-lengths/x"]
        assert np.abs(x[4:, 0]).min() > 0
    h = arrays["rnn-relu/output"]
    assert 0.1 < (h == 0).mean() < 0.9
    assert np.abs(h[h != 0]).min() > 1e-3


def test_export_writes_nothing_that_torch_does_not_confirm(monkeypatch: Any, tmp_path: Path, capsys: Any) -> None:
    right = numpy_rnn.SGD._update
    monkeypatch.setattr(numpy_rnn.SGD, "_update", lambda self, p, g, s, group: right(self, p, 1.001 * g, s, group))
    assert main(["vectors", "export", "--out", str(tmp_path / "out")]) == 1
    assert re.search(r"nothing written: rnn/sgd/\S+ differs from torch's by \d", capsys.readouterr().out)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("side", [NUMPY, TORCH], ids=["numpy", "torch"])
def test_float32_is_within_its_tolerance(golden: Path, call: Any, side: Any) -> None:
    theirs = {}
    for name, spec in all_specs().items():
        if "projection" in name and side is TORCH:  # torch warns that this is done without oneDNN
            continue
        given = {key: array.astype(np.float32) for key, array in spec.given().items()}
        theirs |= {f"{name}/{key}": array for key, array in compute(spec, side, given).items()}
    status, out = call(theirs)
    assert (status, "differ" in out) == (0, False), out
    assert "within 2e-04 of their scale (float32)" in out


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_a_right_port_passes(golden: Path, call: Any, suffix: str) -> None:
    cases = list(manifest(golden)["cases"])
    status, out = call(run_port(golden, cases, steps=True), suffix=suffix)
    assert status == 0, out
    assert re.fullmatch(r"all \d+ tensors of 44 cases are within 1e-12 of their scale \(float64\)\n", out), out


def test_a_right_port_in_float32_passes(golden: Path, call: Any) -> None:
    status, out = call(run_port(golden, list(manifest(golden)["cases"]), np.float32, steps=True))
    assert status == 0, out
    assert "float32" in out


@pytest.mark.parametrize("name", all_specs())
def test_what_diagnosis_recomputes_is_right_without_a_bug(vectors: Golden, name: str) -> None:
    case, ours = vectors.case(name), vectors.of_case(name)
    found = replay(case)
    for optimizer, settings in vectors.manifest["optimizers"].items():
        found |= replay_steps(case, optimizer, settings, settings["steps"])
    assert set(found) == set(ours) - vectors.given(name)
    for key, array in found.items():
        assert_allclose(array, ours[key], rtol=0, atol=1e-12 * np.abs(ours[key]).max(), err_msg=key)


@pytest.mark.parametrize(("cell", "case", "bug", "file", "function", "edits"), ALL, ids=[f"{r[1]}-{r[2]}" for r in ALL])
def test_a_planted_bug_is_named(
    golden: Path, judge: Any, cell: str, case: str, bug: str, file: str, function: str | None, edits: list
) -> None:
    with planted(file, function, edits):
        theirs = run_port(golden, [case])
    status, out = judge(theirs)
    assert status == 1
    assert bug in named(out), out
    assert len(set(named(out))) <= 2, out  # two at most that one case cannot tell apart
    assert "no known bug" not in out


@pytest.mark.parametrize(("optimizer", "bug", "edits"), STEPS, ids=[row[1] for row in STEPS])
def test_a_bug_of_the_optimizer_is_named(golden: Path, judge: Any, optimizer: str, bug: str, edits: list) -> None:
    with planted("network", "steps", edits):
        theirs = run_port(golden, ["lstm"], steps=True)
    status, out = judge({key: array for key, array in theirs.items() if f"/{optimizer}/" in key or "/d" in key})
    assert status == 1
    assert named(out)[0] == bug, out
    assert "no known bug" not in out


def test_every_known_bug_is_planted_by_a_test() -> None:
    planted_in = {(row[0], row[2]) for row in ALL}
    known = {bug for cell in CELLS for bug in bugs_of(load_case(cell))}
    orders = {bug for bug in known if "-in-the-order-" in bug}
    assert known - orders == {bug for _, bug in planted_in if "-in-the-order-" not in bug}
    assert {bug for _, bug in planted_in} & orders
    assert {bug for bugs in BUGS.values() for bug in bugs} == {row[1] for row in STEPS}


def load_case(cell: str) -> Any:
    return all_specs()[cell].case({})


FACTORS = {"2": "factor-2", "-1": "factor--1", "1/B": "factor-1/B", "1/T": "factor-1/T", "0.3": "factor-0.3"}


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("cell", CELLS)
def test_scaled_gradients_are_named(golden: Path, judge: Any, cell: str, factor: str) -> None:
    number = {"1/B": 1 / 4, "1/T": 1 / 6}.get(factor) or float(factor)
    theirs = {key: a * number if "/d" in key else a for key, a in run_port(golden, [cell]).items()}
    status, out = judge(theirs)
    assert (status, named(out)[0]) == (1, FACTORS[factor]), out


def test_the_factor_that_explains_all_cases_stands_first(golden: Path, judge: Any) -> None:
    """In a batch of two 1/B is 1/2 as well."""
    cases = ["gru", "gru-one-step", "gru-long"]
    right = run_port(golden, cases)
    sizes = {name: manifest(golden)["cases"][name]["B"] for name in cases}
    theirs = {key: a / sizes[key.split("/")[0]] if "/d" in key else a for key, a in right.items()}
    status, out = judge(theirs)
    assert status == 1
    assert out.endswith("\nlikely bug: factor-1/B: it is the right one times 1/B (3 of 3 cases)"), out


def test_arrays_that_are_turned_are_named(golden: Path, judge: Any) -> None:
    right = run_port(golden, ["lstm"])

    def found(name: str, change: Any) -> str:
        status, out = judge({**right, f"lstm/{name}": change(right[f"lstm/{name}"])})
        assert status == 1
        return named(out)[0] + out

    assert found("dweight_ih_l0", lambda a: a.T).startswith("transposed")
    assert "(3, 20) for (20, 3)" in found("dweight_ih_l0", lambda a: a.T)
    assert found("output", lambda a: a.swapaxes(0, 1)).startswith("transposed")
    assert found("dx", lambda a: a[::-1]).startswith("reversed-along-0")
    assert found("dx", lambda a: np.roll(a, 1, axis=0)).startswith("shifted-along-0")
    assert found("dweight_hh_l0", np.zeros_like).startswith("zero")
    assert "i, f, o, g" in found("dbias_ih_l0", lambda a: a[[*range(10), *range(15, 20), *range(10, 15)]])
    both = right["lstm/dbias_ih_l0"] + right["lstm/dbias_hh_l0"]
    status, out = judge({**right, "lstm/dbias_ih_l0": both, "lstm/dbias_hh_l0": both})
    assert (status, named(out)[0]) == (1, "biases-merged"), out


@pytest.mark.parametrize("size", [1e-9, 1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("cell", CELLS)
def test_a_random_error_has_no_known_signature(golden: Path, judge: Any, cell: str, size: float) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        right = run_port(golden, [cell, f"{cell}-deep-bidirectional", f"{cell}-one-unit"])
        names = sorted(right)
        hit = rng.choice(names, len(names) if seed == 0 else 1, replace=False)
        theirs = {
            **right,
            **{n: right[n] + size * np.abs(right[n]).max() * rng.normal(size=right[n].shape) for n in hit},
        }
        status, out = judge(theirs)
        assert status == 1
        assert named(out) == [], out
        assert "no known bug has this signature" in out


def test_partial_files_are_judged_for_what_they_have(golden: Path, call: Any) -> None:
    right = run_port(golden, ["gru"])
    status, out = call({"gru/output": right["gru/output"], "gru/h_n": right["gru/h_n"]})
    assert status == 0
    assert "gru: dx, dh_0, dweight_ih_l0, dweight_hh_l0 and" in out
    assert "43 whole cases: rnn, " in out
    assert out.endswith("all 2 tensors of 1 cases are within 1e-12 of their scale (float64)\n")


def test_one_tensor_missing_of_all_is_named(vectors: Golden, judge: Any) -> None:
    right = dict(vectors.tensors)
    del right["gru/dx"]
    status, out = judge(right)
    assert status == 0
    assert "gru: dx\n" in out
    assert "whole cases" not in out


def test_inputs_count_only_where_they_are_wrong(golden: Path, tmp_path: Path, call: Any, capsys: Any) -> None:
    x, output = all_specs()["gru"].given()["x"], run_port(golden, ["gru"])["gru/output"]
    status, out = call({"gru/output": output, "gru/x": x})
    assert (status, "all 1 tensors of 1 cases" in out) == (0, True)
    status, out = call({"gru/output": output, "gru/x": x[::-1]})
    assert (status, named(out)[0]) == (1, "reversed-along-0")
    assert "1 of 2 tensors, in 1 of 1 cases, differ" in out
    numpy_rnn.save_weights({"gru/x": x}, tmp_path / "theirs.npz")
    message = "argument --theirs: .* holds only what goes into a case, such as 'gru/x', and no results"
    refused(capsys, message, golden, tmp_path / "theirs.npz")


@pytest.mark.parametrize("narrow", ["x", "output"])
def test_each_tensor_is_judged_by_its_own_dtype(golden: Path, judge: Any, narrow: str) -> None:
    theirs = {"gru/x": all_specs()["gru"].given()["x"], **run_port(golden, ["gru"])}
    theirs[f"gru/{narrow}"] = theirs[f"gru/{narrow}"].astype(np.float32)
    status, out = judge(theirs)
    assert status == 0
    assert ("float32" in out) == (narrow == "output")
    theirs["gru/dweight_hh_l0"] = theirs["gru/dweight_hh_l0"] * (1 + 1e-4)
    status, out = judge(theirs)
    assert status == 1
    assert "gru: 1 of" in out
    assert named(out)[0] == "factor-1.0001", out


def test_nan_is_wrong(golden: Path, call: Any) -> None:
    right = run_port(golden, ["gru"])
    with pytest.warns(NonFiniteWeightsWarning):  # when it is saved, and not when it is checked
        status, out = call({**right, "gru/dx": np.full_like(right["gru/dx"], np.nan)})
    assert status == 1
    assert "gru: 1 of" in out
    assert named(out) == []


def test_the_bug_that_explains_most_cases_stands_in_the_verdict(golden: Path, call: Any) -> None:
    row = next(row for row in ALL if row[1:3] == ("lstm", "dh-n-dropped"))
    with planted(*row[3:]):
        theirs = run_port(golden, ["lstm", "lstm-deep", "lstm-one-step", "lstm-bidirectional"], steps=True)
    status, out = call(theirs)
    assert status == 1
    assert "and 24 of the optimizers' steps, which follow from these" in out
    assert "likely bug: dh-n-dropped: the gradient of the last state, dh_n, is dropped (4 of 4 cases)" in out
    assert all(len(line) <= 120 for line in out.splitlines())


def test_tolerance_and_dtypes(golden: Path, call: Any) -> None:
    right = run_port(golden, ["rnn"])
    half = {key: array.astype(np.float16) for key, array in right.items()}
    assert call(half, "--tolerance", "5e-3")[0] == 0
    assert call(half, "--tolerance", "1e-6")[0] == 1


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (
            {"gru/dW": np.ones(2)},
            r"has the name 'gru/dW', expected CASE/TENSOR as in manifest.json$",
        ),
        ({"gru/banana": np.ones(2)}, r"'gru/banana', expected CASE/TENSOR as in manifest.json$"),
        ({"lstm-projection-deep/nothing": np.ones(2)}, r"nothing', expected CASE/TENSOR as in manifest.json$"),
        ({"gru/dweight_hh_10": np.ones(2)}, "; did you mean 'gru/dweight_hh_l0'[?]"),
        ({"lstm_deep/outputs": np.ones(2)}, "; did you mean 'lstm-deep/output'[?]"),
        ({"gru/dx": np.ones(2, int)}, "'gru/dx' of .* must be of floating-point numbers, got int64"),
        ({"gru/dx": np.ones((6, 4, 3), np.float16)}, "theirs holds float16, for which no tolerance is known: give one"),
        ({}, "holds no arrays"),
    ],
)
def test_bad_files_are_refused(golden: Path, tmp_path: Path, capsys: Any, theirs: dict, message: str) -> None:
    numpy_rnn.save_weights(theirs, tmp_path / "theirs.npz")
    refused(capsys, f"argument --theirs: .*{message}", golden, tmp_path / "theirs.npz")


def test_unreadable_files_are_refused(golden: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK nothing")
    (tmp_path / "a.txt").write_text("x")
    refused(capsys, "argument --theirs: .* is not a whole .npz file", golden, tmp_path / "a.npz")
    refused(capsys, "argument --theirs: path must end in .npz or .safetensors", golden, tmp_path / "a.txt")
    refused(capsys, "argument --theirs: cannot read .*: No such file", golden, tmp_path / "none.npz")
    refused(capsys, "argument DIR: cannot read .*manifest.json: No such file", tmp_path, golden / "vectors.npz")
    (tmp_path / "manifest.json").write_text("{")
    refused(capsys, "argument DIR: .*manifest.json is no JSON", tmp_path, golden / "vectors.npz")
    (tmp_path / "manifest.json").write_text('{"format": "other"}')
    refused(
        capsys, "argument DIR: .* must have the format 'rnn-parity golden vectors, 1'", tmp_path, golden / "vectors.npz"
    )
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    refused(capsys, "argument DIR: .*manifest.json is no JSON", tmp_path, golden / "vectors.npz")
    content = manifest(golden)
    shorter = json.loads(json.dumps(content))
    del shorter["cases"]["gru"]["tensors"]["dx"]
    loose = content | {"tolerances": {"float64": 1.0}}
    for changed in ({"format": content["format"]}, shorter, loose):
        (tmp_path / "manifest.json").write_text(json.dumps(changed))
        refused(capsys, "argument DIR: .*manifest.json is not what was exported", tmp_path, golden / "vectors.npz")
    (tmp_path / "manifest.json").write_bytes((golden / "manifest.json").read_bytes())
    numpy_rnn.save_weights({"rnn/x": np.ones(3)}, tmp_path / "vectors.npz")
    refused(capsys, "argument DIR: .* is not what was exported: its hash differs", tmp_path, golden / "vectors.npz")


def test_export_into_a_file_is_refused(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(SystemExit) as exit:
        main(["vectors", "export", "--out", str(tmp_path / "file")])
    assert exit.value.code == 2
    assert "error: argument --out: expected a directory to write into, got" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "precious"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit:
        main(["vectors", "export", "--out", ""])
    assert exit.value.code == 2
    assert "error: argument --out: expected the name of a directory, got ''" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    with pytest.raises(SystemExit) as exit:
        main(["vectors", "export", "--out", str(tmp_path / "file" / "below")])
    assert exit.value.code == 2
    assert re.search("expected a directory to write into, got .*: Not a directory", capsys.readouterr().err)


def refused(capsys: Any, message: str, directory: Path, theirs: Path) -> None:
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit:
        main(["vectors", "check", str(directory), "--theirs", str(theirs)])
    out, err = capsys.readouterr()
    assert (exit.value.code, out) == (2, "")
    assert re.fullmatch(f"rnn-parity vectors check: error: {message}.*", err.removesuffix("\n")), err


@pytest.mark.parametrize("command", ["export", "check"])
def test_help_says_it_all(capsys: Any, command: str) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["vectors", command, "--help"])
    out = capsys.readouterr().out
    assert exit.value.code == 0
    assert all(word in out for word in ("exit status", "examples:", "Printed:", "ritten"))
    assert out.isascii()
    assert all(len(line) <= 80 for line in out.splitlines())
