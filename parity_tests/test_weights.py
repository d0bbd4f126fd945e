"""State dicts come back from a file as they were, and whatever is no such file is refused by name."""

import io
import os
import pickle
import subprocess
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from numpy.testing import assert_array_equal

import numpy_rnn
from numpy_rnn import DtypeChangeWarning, NonFiniteWeightsWarning, load_weights, save_weights, weights

SUFFIXES = ["npz", "safetensors"]
DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (0,), (2, 3), (3, 0, 2), (2, 3, 4), (1, 1, 5, 2)]

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"weights.{request.param}"


def sample(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    return (
        (100 * rng.normal(size=shape)).astype(dtype) if dtype[0] == "f" else rng.integers(0, 100, shape).astype(dtype)
    )


def assert_same_arrays(got: dict[str, np.ndarray], expected: dict[str, Any]) -> None:
    assert set(got) == set(expected)
    for name, array in got.items():
        wanted = np.asarray(expected[name])
        assert type(array) is np.ndarray
        assert array.shape == wanted.shape, name
        assert array.dtype == wanted.dtype.newbyteorder("="), name
        assert array.dtype.isnative
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.owndata or array.base.flags.owndata
        assert_array_equal(array, wanted, err_msg=name)


# There and back


def test_every_dtype_and_shape_comes_back(path: Path) -> None:
    state = {f"{dtype} {shape}": sample(dtype, shape) for dtype in DTYPES for shape in SHAPES}
    save_weights(state, path)
    assert_same_arrays(load_weights(path), state)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        np.asfortranarray,
        lambda a: np.broadcast_to(a[0], a.shape),
        lambda a: a.astype(">f8"),
        lambda a: a.astype(">f4").T,
        lambda a: a.swapaxes(0, 1)[1:, ::-1],
    ],
)
def test_no_memory_layout_is_stored_wrong(view: Callable[[np.ndarray], np.ndarray], path: Path) -> None:
    array = view(np.arange(20.0).reshape(4, 5))
    save_weights({"W": array}, path)
    assert_same_arrays(load_weights(path), {"W": array})


def test_extreme_values_come_back_bit_for_bit(path: Path) -> None:
    values = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 1 / 3]
    save_weights({"W": np.array(values)}, path)
    assert load_weights(path)["W"].tobytes() == np.array(values).tobytes()


@pytest.mark.parametrize(
    "name",
    ["a.b.c", "", "file", "allow_pickle", "a.npy", "rnn/weight", "../up", "/abs", "δ 权", "a b", ".npy", "x" * 9999],
)
def test_names_come_back(name: str, path: Path) -> None:
    state = {name: np.arange(3.0), "other": np.zeros(2)}
    save_weights(state, path)
    assert_same_arrays(load_weights(path), state)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a\0b", "a name that a file cannot hold"),
        ("\ud800", "no valid text"),
        ("x" * 70_000, "a name of 70000 bytes"),
    ],
)
def test_names_that_no_file_holds_are_refused(name: str, message: str, path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        save_weights({name: np.zeros(2)}, path)
    assert not list(path.parent.iterdir())


def test_the_name_that_safetensors_keeps_for_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'__metadata__', which \.safetensors keeps for itself"):
        save_weights({"__metadata__": np.zeros(2)}, tmp_path / "w.safetensors")
    save_weights({"__metadata__": np.zeros(2)}, tmp_path / "w.npz")
    assert list(load_weights(tmp_path / "w.npz")) == ["__metadata__"]


def test_npz_keeps_the_order_of_the_names_and_nothing_is_a_state_dict_too(path: Path) -> None:
    save_weights({}, path)
    assert load_weights(path) == {}
    save_weights({"z": np.zeros(1), "a": np.ones(1)}, path)
    if path.suffix == ".npz":
        assert list(load_weights(path)) == ["z", "a"]


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_a_model_comes_back(cell: str, path: Path) -> None:
    model = numpy_rnn.SequenceModel(cell, 3, 5, 2, num_layers=2, rng=0)
    save_weights(model.state_dict(), str(path))
    other = numpy_rnn.SequenceModel(cell, 3, 5, 2, num_layers=2, rng=1)
    other.load_state_dict(load_weights(str(path)))
    assert_same_arrays(other.state_dict(), model.state_dict())


def test_tensors_torch_tensors_and_numbers_are_saved(path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    state: dict[str, Any] = {
        "tensor": numpy_rnn.Tensor(values),
        "parameter": numpy_rnn.Parameter(values),
        "torch": torch.from_numpy(values).T,
        "list": [1.0, 2.0],
        "number": 3.0,
    }
    save_weights(state, path)
    assert_same_arrays(load_weights(path), state)


def test_a_state_dict_passes_to_torch_and_back_through_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "lstm.safetensors"
    lstm = torch.nn.LSTM(3, 5, bidirectional=True)
    safetensors.torch.save_file(lstm.state_dict(), path)
    assert_same_arrays(load_weights(path), lstm.state_dict())
    save_weights(lstm.state_dict(), path)
    other = torch.nn.LSTM(3, 5, bidirectional=True)
    other.load_state_dict(safetensors.torch.load_file(path))
    for a, b in zip(lstm.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_numpy_reads_our_npz_and_we_read_numpys(tmp_path: Path) -> None:
    state = {"a.b": np.arange(6.0).reshape(2, 3), "c": np.float32(2)}
    save_weights(state, tmp_path / "ours.npz")
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as file:
        assert_same_arrays(dict(file), state)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "theirs.npz", **state | {"F": np.asfortranarray(state["a.b"]), ">": state["a.b"].astype(">f8")})
        assert_same_arrays(load_weights(tmp_path / "theirs.npz"), state | {"F": state["a.b"], ">": state["a.b"]})


def test_equal_weights_are_equal_files_and_suffixes_may_be_capitals(path: Path) -> None:
    state = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros(2)}
    save_weights(state, path)
    capitals = path.with_suffix(path.suffix.upper())
    save_weights(state, capitals)
    assert capitals.read_bytes() == path.read_bytes()
    assert_same_arrays(load_weights(capitals), state)


def test_what_is_loaded_is_not_what_stands_in_the_file(path: Path) -> None:
    save_weights({"a": np.zeros(3)}, path)
    load_weights(path)["a"][:] = 1
    assert_array_equal(load_weights(path)["a"], np.zeros(3))


# What is no state dict


@pytest.mark.parametrize("name", ["weights", "weights.pt", "weights.npy", "weights.npz.bak", "npz"])
def test_another_suffix_is_refused(name: str, tmp_path: Path) -> None:
    for use in (lambda path: save_weights({}, path), load_weights):
        with pytest.raises(ValueError, match=r"path must end in \.npz or \.safetensors, got .*" + name):
            use(tmp_path / name)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([None, 1]), "got object"),
        (None, "got object"),
        ("text", "got <U4"),
        (np.zeros(2, complex), "got complex128"),
        (np.zeros(2, np.longdouble), "got float128|got longdouble"),
        (np.zeros(2, [("a", "f4")]), "got "),
        (np.zeros(2, "M8[s]"), "got datetime64"),
        ([[1.0], [1.0, 2.0]], "cannot be read as an array"),
        (torch.zeros(2, dtype=torch.bfloat16), "cannot be read as an array.*BFloat16"),
        (torch.zeros(2, requires_grad=True), "cannot be read as an array.*requires grad"),
    ],
)
def test_values_that_are_no_weights_are_refused(value: Any, message: str, path: Path) -> None:
    if getattr(getattr(value, "dtype", None), "name", "") == "float64":
        pytest.skip("longdouble is float64 on this machine")
    with pytest.raises(TypeError, match=r"state_dict\['bad'\].*(" + message + ")"):
        save_weights({"good": np.zeros(2), "bad": value}, path)
    assert not list(path.parent.iterdir())


def test_a_state_dict_maps_str(path: Path) -> None:
    with pytest.raises(TypeError, match="must be a mapping of names to arrays, got list"):
        save_weights([np.zeros(2)], path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="names that are str, got 3"):
        save_weights({3: np.zeros(2)}, path)  # type: ignore[dict-item]


# nan, inf, dtype


def test_weights_that_are_not_finite_are_reported_when_saved_and_when_loaded(path: Path) -> None:
    state = {"rnn.good": np.zeros(3), "rnn.bad": np.array([np.nan, 1, np.inf, -np.inf]), "half": np.float16(np.nan)}
    message = (
        r"weights\.\w+: weights are not finite: rnn\.bad \(1 nan, 2 infinite of 4\), half \(1 nan, 0 infinite of 1\)"
    )
    if path.suffix == ".safetensors":
        message = r"(?=.*rnn\.bad \(1 nan, 2 infinite of 4\))(?=.*half \(1 nan, 0 infinite of 1\))"
    with pytest.warns(NonFiniteWeightsWarning, match=message) as caught:
        save_weights(state, path)
    assert caught[0].filename == __file__
    with pytest.warns(NonFiniteWeightsWarning, match=message) as caught:
        loaded = load_weights(path)
    assert caught[0].filename == __file__
    assert_same_arrays(loaded, state)


def test_where_that_warning_is_an_error_nothing_is_written(path: Path) -> None:
    with pytest.raises(NonFiniteWeightsWarning):
        save_weights({"W": np.array([np.nan])}, path)
    assert not list(path.parent.iterdir())


def test_a_change_of_dtype_is_reported_where_a_dtype_is_wanted(path: Path) -> None:
    state = {"same": np.ones(2, np.float32), "double": np.full(3, 1 / 3), "half": np.float16(0.5), "steps": np.int64(7)}
    save_weights(state, path)
    message = r"weights\.\w+: cast to float32, and stored in another dtype: .*"
    for part in (r"(?=.*double float64)", r"(?=.*half float16)", r"(?!.*same)(?!.*steps)"):
        with pytest.warns(DtypeChangeWarning, match=part + "(?=.*" + message + ")") as caught:
            loaded = load_weights(path, dtype=np.float32)
    assert caught[0].filename == __file__
    expected = {name: array.astype(np.float32) for name, array in state.items() if name != "steps"}
    assert_same_arrays(loaded, expected | {"steps": state["steps"]})


def test_a_dtype_that_is_stored_is_no_news(path: Path) -> None:
    state = {"W": np.ones(2), "big": np.ones(2, ">f8"), "steps": np.int32(7)}
    save_weights(state, path)
    assert_same_arrays(load_weights(path, dtype="float64"), state)
    assert_same_arrays(load_weights(path), state)


def test_a_cast_that_overflows_is_reported_as_infinite(path: Path) -> None:
    save_weights({"W": np.array([1e300, 1.0])}, path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load_weights(path, dtype=np.float32)
    assert [warning.category for warning in caught] == [DtypeChangeWarning, NonFiniteWeightsWarning]
    assert_array_equal(loaded["W"], np.array([np.inf, 1], np.float32))


@pytest.mark.parametrize("dtype", ["int32", "complex64", "longdouble", "O"])
def test_only_a_dtype_of_weights_can_be_wanted(dtype: str, path: Path) -> None:
    if np.dtype(dtype) == np.float64:
        pytest.skip("longdouble is float64 on this machine")
    save_weights({"W": np.zeros(2)}, path)
    with pytest.raises(TypeError, match="dtype must be float16, float32 or float64, got"):
        load_weights(path, dtype=dtype)


# Whole or not at all


class Stop(Exception):
    """What a test breaks the writing with."""


def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_weights({"W": np.zeros(3)}, path)
    before = path.read_bytes()

    def stop(*_: Any, **__: Any) -> None:
        raise Stop

    def half(file: Any, *_: Any, **__: Any) -> None:
        file.write(b"half an array")
        raise Stop

    def half_of(aside: Path, content: bytes) -> None:
        with aside.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    breaks: list[tuple[Any, str, Any]] = [(os, "replace", stop), (os, "fsync", stop)]
    breaks += [(weights.npy, "write_array", half)] if path.suffix == ".npz" else [(Path, "write_bytes", half_of)]
    for owner, name, broken in breaks:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken)
            with pytest.raises((Stop, OSError)):
                save_weights({"W": np.ones(1000)}, path)
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]
        path.unlink()
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken)
            with pytest.raises((Stop, OSError)):
                save_weights({"W": np.ones(1000)}, path)
        assert not list(path.parent.iterdir())
        path.write_bytes(before)


def test_a_process_that_is_killed_while_writing_leaves_the_old_file(path: Path) -> None:
    save_weights({"W": np.zeros(3)}, path)
    program = f"""
import os
import numpy as np, numpy_rnn
os.replace = lambda *_: os._exit(9)
numpy_rnn.save_weights({{"W": np.ones(3)}}, {str(path)!r})
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert_same_arrays(load_weights(path), {"W": np.zeros(3)})


def test_readers_never_see_half_a_file(path: Path) -> None:
    states = [{"W": np.full(20_000, float(i))} for i in range(2)]
    save_weights(states[0], path)
    done = threading.Event()
    seen, failures = set(), []

    def read() -> None:
        while not done.is_set():
            try:
                values = np.unique(load_weights(path)["W"])
                seen.add(values.item())
            except Exception as error:
                failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(40):
        save_weights(states[i % 2], path)
    done.set()
    reader.join()
    assert not failures
    assert seen <= {0.0, 1.0}


def test_the_file_has_the_permissions_of_any_new_file_and_a_link_stays_one(path: Path) -> None:
    save_weights({"W": np.zeros(3)}, path)
    plain = path.with_name("plain")
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode
    link = path.with_name("latest" + path.suffix)
    link.symlink_to(path)
    save_weights({"W": np.ones(3)}, link)
    assert link.is_symlink()
    assert_same_arrays(load_weights(path), {"W": np.ones(3)})


def test_a_place_where_no_file_can_be_is_named(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no directory .*missing to save weights"):
        save_weights({"W": np.zeros(2)}, path.parent / "missing" / path.name)
    path.mkdir()
    with pytest.raises(IsADirectoryError, match=f"{path.name} is a directory"):
        save_weights({"W": np.zeros(2)}, path)
    with pytest.raises(ValueError, match=f"{path.name} is a directory, not a"):
        load_weights(path)


# Files that are no weights


def assert_refused(path: Path, reason: str = "") -> None:
    with pytest.raises(ValueError, match=r"^.*weights\.\w+ is .*" + reason) as caught:
        load_weights(path)
    assert caught.value.__cause__ is None  # what a library said inside is in the message, not a second traceback
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=path.name):
        load_weights(path)


def test_a_file_truncated_anywhere_is_refused(path: Path) -> None:
    save_weights({"rnn.weight": np.arange(6.0).reshape(2, 3), "rnn.bias": np.ones(2, np.float32)}, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert_refused(path, "empty" if length == 0 else "not a whole")


def test_a_flipped_bit_is_noticed_or_changes_what_has_no_meaning(path: Path) -> None:
    """.npz has a checksum of every array; .safetensors has none, so there only its header is looked at."""
    state = {"rnn.weight": np.arange(6.0).reshape(2, 3), "rnn.bias": np.ones(2, np.float32)}
    save_weights(state, path)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little") if path.suffix == ".safetensors" else len(whole)
    refused = 0
    for position in range(header):
        for bit in (1, 64):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ bit]) + whole[position + 1 :])
            try:
                loaded = load_weights(path)
            except ValueError as error:
                assert str(path) in str(error)  # noqa: PT017
                refused += 1
                continue
            if path.suffix == ".npz":
                assert_same_arrays(loaded, state)
    assert refused > header


def test_a_damaged_compressed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    state = {"W": np.arange(60.0)}
    np.savez_compressed(path, **state)
    whole = path.read_bytes()
    for position in range(30, len(whole) - 80):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 32]) + whole[position + 1 :])
        try:
            loaded = load_weights(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert_same_arrays(loaded, state)


def test_a_damaged_directory_does_not_swallow_an_array(tmp_path: Path) -> None:
    """A bit in the length of a member's comment, and the member that follows is taken for the comment."""
    path = tmp_path / "weights.npz"
    save_weights({"rnn.weight": np.zeros(6), "rnn.bias": np.zeros(2)}, path)
    whole = bytearray(path.read_bytes())
    entry = whole.index(b"PK\x01\x02")
    whole[entry + 32 : entry + 34] = (46 + len("rnn.bias.npy")).to_bytes(2, "little")
    path.write_bytes(whole)
    assert_refused(path, "it should hold 2 arrays, and lists 1")


def test_random_bytes_and_trailing_ones_are_refused(path: Path) -> None:
    rng = np.random.default_rng(0)
    for length in (1, 7, 8, 9, 30, 100, 1000):
        path.write_bytes(rng.bytes(length))
        assert_refused(path, "not a whole")
    save_weights({"W": np.zeros(3)}, path)
    path.write_bytes(path.read_bytes() + b"more than a comment" * 10_000)
    assert_refused(path, "not a whole")


def foreign(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "pickle":
        pickle.dump({"W": np.zeros(3)}, file)
    elif kind == "npy":
        np.save(file, np.zeros(3))
    elif kind == "torch":
        torch.save({"W": torch.zeros(3)}, file)
    elif kind == "text":
        file.write(b"weight,bias\n1,2\n" * 100)
    elif kind == "npz":
        np.savez(file, W=np.zeros(3))
    elif kind == "safetensors":
        file.write(safetensors.numpy.save({"W": np.zeros(3)}))
    return file.getvalue()


@pytest.mark.parametrize("kind", ["pickle", "npy", "torch", "text", "npz", "safetensors"])
def test_a_file_of_another_kind_is_refused(kind: str, path: Path) -> None:
    if kind != path.suffix[1:]:
        path.write_bytes(foreign(kind))
        assert_refused(path, "not a whole")


def write_npz(path: Path, members: dict[str, bytes], **options: Any) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", **options) as archive:
        warnings.simplefilter("ignore")
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array: np.ndarray, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


class Bomb:
    """Unpickled, it would leave a trace."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch exploded",))


def test_nothing_is_ever_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "weights.npz"
    np.savez(path, W=np.array([Bomb()], dtype=object))
    assert_refused(path, "'W' holds pickled objects, which are never loaded")
    path.write_bytes(pickle.dumps(Bomb()))
    assert_refused(path)
    write_npz(path, {"W.npy": pickle.dumps(Bomb())})
    assert_refused(path, "'W' is no .npy array")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"W.npy": b"\x93NUMPY\x02\x00" + npy(np.zeros(3))[8:]}, "'W' is no .npy array"),
        ({"W.npy": npy(np.zeros(3))[:-1]}, r"'W' float64 \(3,\) needs 24 bytes, and there are 23"),
        ({"W.npy": npy(np.zeros(3)) + b"x"}, "needs 24 bytes, and there are 25"),
        ({"W.npy": npy(np.zeros(3)).replace(b"(3,)", b"(-3)")}, "'W' is no .npy array|needs"),
        ({"W.npy": npy(np.zeros(3)).replace(b"(3,), ", b"(-3,),")}, "needs -24 bytes"),
        ({"W.npy": npy(np.zeros(3)).replace(b"(3,), }         ", b"(9999999999,), }")}, "needs 79999999992 bytes"),
        ({"W.npy": npy(np.zeros(3)).replace(b"'<f8'", b"import")}, "'W' is no .npy array"),
        (
            {"W.npy": npy(np.zeros(3)).replace(b"'<f8'", b"'<c8'")},
            "whole, but 'W' is complex64, expected float16, float32, float64, integer or bool",
        ),
        ({"W.npy": npy(np.array(["text"]))}, "'W' is <U4, expected float16"),
        ({"W.npy": npy(np.zeros(3, np.clongdouble))}, "whole, but 'W' is complex"),
        ({"W.npy": b"\x93NUMPY\x03\x00" + npy(np.zeros(3))[8:]}, "version .3, 0. of the .npy format"),
        ({"W.npy": b"\x93NUMPY\x09\x00" + npy(np.zeros(3))[8:]}, "'W' is no .npy array"),
        ({"W.npy": b""}, "'W' is no .npy array"),
        ({"W": npy(np.zeros(3))}, "it holds 'W', which is no .npy array"),
        ({"W.npy": npy(np.zeros(3)), "README": b"hello"}, "it holds 'README', which is no .npy array"),
    ],
)
def test_an_archive_of_something_else_is_refused(members: dict[str, bytes], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    write_npz(path, members)
    assert_refused(path, f".*({reason})")


def test_a_name_that_stands_twice_and_a_rare_compression_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("W.npy", npy(np.zeros(3)))
        archive.writestr("W.npy", npy(np.ones(3)))
    assert_refused(path, "it holds 'W' twice")
    write_npz(path, {"W.npy": npy(np.zeros(3))}, compression=zipfile.ZIP_BZIP2)
    assert_refused(path, "compressed in a way that NumPy does not use")


def test_a_scrambled_header_is_refused_whatever_numpys_parser_raises(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    whole, rng = npy(np.zeros(3)), np.random.default_rng(0)
    alphabet = np.frombuffer(b"(){}[]'\",:=<>f8 \n\t\\\x00\xff-9eL", np.uint8)
    for _ in range(500):
        changed = np.frombuffer(whole, np.uint8).copy()
        where = rng.integers(10, 70, rng.integers(1, 6))
        changed[where] = rng.choice(alphabet, len(where))
        write_npz(path, {"W.npy": changed.tobytes()})
        try:
            loaded = load_weights(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert loaded["W"].nbytes == 24


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        (torch.bfloat16, "'W' is bfloat16, which NumPy does not have"),
        (torch.float8_e4m3fn, "'W' is F8_E4M3, which NumPy"),
    ],
)
def test_a_dtype_that_numpy_does_not_have_is_refused_by_name(dtype: torch.dtype, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    safetensors.torch.save_file({"W": torch.zeros(3).to(dtype)}, path)
    assert_refused(path, reason)
