"""Weights on disk: state dicts to and from ``.npz`` and ``.safetensors`` files, without pickle.

A pickle runs whatever program it holds when it is loaded; neither of these formats can hold one.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike

from numpy_rnn.files import write_aside
from numpy_rnn.typing import Array

# The dtypes of weights, and their names in a .safetensors file.
SAFETENSORS_NAMES = {
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "BOOL": "bool",
}
DTYPES = set(SAFETENSORS_NAMES.values())


class _NoWeights(ValueError):
    """The file is whole, and holds what no weights are."""


class NonFiniteWeightsWarning(UserWarning):
    """Some weights are nan or infinite: the training had diverged, or a cast overflowed.

    >>> issubclass(NonFiniteWeightsWarning, UserWarning)
    True
    """


class DtypeChangeWarning(UserWarning):
    """Weights were cast to the dtype that was asked for, and were stored in another.

    >>> issubclass(DtypeChangeWarning, UserWarning)
    True
    """


def save_weights(state_dict: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a state dict to ``path``, a ``.npz`` or a ``.safetensors`` file.

    >>> import tempfile
    >>> from numpy_rnn import RNN
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save_weights(RNN(3, 5, rng=0).state_dict(), f"{directory}/rnn.npz")
    ...     weights = load_weights(f"{directory}/rnn.npz")
    >>> {name: array.shape for name, array in weights.items()}
    {'weight_ih_l0': (5, 3), 'weight_hh_l0': (5, 5), 'bias_ih_l0': (5,), 'bias_hh_l0': (5,)}

    Arguments: ``state_dict`` maps names to arrays, Tensors or torch tensors of any shape and memory layout, float16, 32
    or 64, integer or bool. ``path`` chooses the format by its suffix: ``.npz`` is NumPy's own, with checksums, so that
    a flipped bit is noticed when it is loaded; ``.safetensors`` is read by many libraries, and needs the package of
    that name. Values are stored in row-major order and little-endian, and the same state dict gives the same file.

    The file appears whole or not at all: what stood at ``path`` stays until all is written. The directory must exist.

    Warns ``NonFiniteWeightsWarning`` where weights are nan or infinite; they are saved as they are.

    Raises ``ValueError`` for another suffix or a name that the format cannot hold, ``TypeError`` for a value of another
    dtype (bfloat16, longdouble, complex, objects) or a name that is no str, ``FileNotFoundError`` for a missing
    directory, ``ImportError`` where the package safetensors is missing. Nothing is written then.
    """
    path = Path(os.path.realpath(path))  # a link stays a link, to the new file
    save, _ = _format(path)
    arrays = as_arrays("state_dict", state_dict)
    for name in arrays:
        _check_name(name, path)
    _warn_non_finite(arrays, path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {path.parent} to save {path.name} in")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory")
    write_aside(path, lambda aside: save(arrays, aside))


def load_weights(path: str | os.PathLike[str], dtype: DTypeLike | None = None) -> dict[str, Array]:
    """Read the state dict that stands in a ``.npz`` or a ``.safetensors`` file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save_weights({"weight": np.arange(6.0).reshape(2, 3).T}, f"{directory}/linear.safetensors")
    ...     load_weights(f"{directory}/linear.safetensors")
    {'weight': array([[0., 3.],
           [1., 4.],
           [2., 5.]])}

    Arguments: ``path`` of the file; its suffix chooses the format. ``dtype`` that the floating-point weights are wanted
    in: those stored in another are cast and reported. Without it every array comes in the dtype it was stored in, and
    ``load_state_dict`` will cast it silently, as PyTorch's does; hence with a module at hand, write
    ``module.load_state_dict(load_weights(path, dtype=module.dtype))``.

    Returns new, writable, row-major arrays by name; a ``.safetensors`` file does not keep the order of the names.

    Warns ``NonFiniteWeightsWarning`` where weights are nan or infinite, ``DtypeChangeWarning`` where ``dtype`` changed
    some; both name the file and the weights.

    Raises ``FileNotFoundError`` for a missing file; ``ValueError`` for another suffix, for a file that is empty,
    truncated, damaged or of another kind, and for arrays that are no weights: pickled objects, and bfloat16, which
    NumPy does not have; ``TypeError`` for a ``dtype`` that is not floating-point; ``ImportError`` where the package
    safetensors is missing.
    """
    path = Path(path)
    _, load = _format(path)
    wanted = None if dtype is None else np.dtype(dtype)
    if wanted is not None and (wanted.kind != "f" or wanted.name not in DTYPES):
        raise TypeError(f"dtype must be float16, float32 or float64, got {dtype!r}")
    if path.is_dir():
        raise ValueError(f"{path} is a directory, not a {path.suffix} file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty, not a {path.suffix} file")
    arrays = load(path)
    if wanted is not None:
        changed = [f"{n} {a.dtype}" for n, a in arrays.items() if a.dtype.kind == "f" and a.dtype != wanted]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # what overflows is reported as infinite
            arrays = {n: a.astype(wanted) if a.dtype.kind == "f" else a for n, a in arrays.items()}
        if changed:
            message = f"{path}: cast to {wanted}, and stored in another dtype: {', '.join(changed)}"
            warnings.warn(message, DtypeChangeWarning, stacklevel=2)
    _warn_non_finite(arrays, path)
    return arrays


def as_arrays(argument: str, weights: Mapping[str, Any]) -> dict[str, Array]:
    """Return the values as row-major arrays in the machine's byte order, or raise an error that names the value.

    >>> as_arrays("weights", {"bias": [1.0, 2.0]})
    {'bias': array([1., 2.])}

    Raises ``TypeError`` for what is no mapping from str, and for a value that is no array of a dtype of weights.
    """
    if not isinstance(weights, Mapping):
        raise TypeError(f"{argument} must be a mapping of names to arrays, got {type(weights).__name__}")
    arrays = {}
    for name, value in weights.items():
        if not isinstance(name, str):
            raise TypeError(f"{argument} must have names that are str, got {name!r}")
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:  # a ragged list; a torch tensor that NumPy cannot hold
            raise TypeError(f"{argument}[{name!r}] cannot be read as an array: {error}") from None
        if array.dtype.name not in DTYPES:
            raise TypeError(
                f"{argument}[{name!r}] must be float16, float32, float64, integer or bool, got {array.dtype}"
            )
        # A format that copies raw memory would store a transposed array in the wrong order.
        arrays[name] = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
    return arrays


def _format(path: Path) -> tuple[Callable[[dict[str, Array], Path], None], Callable[[Path], dict[str, Array]]]:
    """How to save and to load a file of this suffix."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _save_npz, read_npz
    if suffix == ".safetensors":
        try:
            import safetensors  # noqa: F401
        except ImportError:
            raise ImportError(
                f"{path.name}: .safetensors files need the package safetensors (pip install safetensors); .npz does not"
            ) from None
        return _save_safetensors, _load_safetensors
    raise ValueError(f"path must end in .npz or .safetensors, got {str(path)!r}")


def _check_name(name: str, path: Path) -> None:
    """Raise for a name that would not come back as it was."""
    if "\0" in name or (os.sep != "/" and os.sep in name):
        raise ValueError(f"state_dict has a name that a file cannot hold: {name!r}")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"state_dict has a name that is no valid text: {name!r}") from None
    if length > 60_000:
        raise ValueError(f"state_dict has a name of {length} bytes, and a file holds 60000: {name[:40]!r}...")
    if name == "__metadata__" and path.suffix.lower() == ".safetensors":
        raise ValueError("state_dict has the name '__metadata__', which .safetensors keeps for itself")


def _warn_non_finite(arrays: dict[str, Array], path: Path) -> None:
    found = []
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            nans, infinities = int(np.isnan(array).sum()), int(np.isinf(array).sum())
            found.append(f"{name} ({nans} nan, {infinities} infinite of {array.size})")
    if found:
        warnings.warn(f"{path}: weights are not finite: {', '.join(found)}", NonFiniteWeightsWarning, stacklevel=3)


def _save_npz(arrays: dict[str, Array], path: Path) -> None:
    # Not np.savez: it takes the names as its own keyword arguments, and cannot save a weight named "file".
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980: equal weights are equal files
            with archive.open(member, "w", force_zip64=True) as file:
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                npy.write_array(file, little, allow_pickle=False)


def read_npz(path: Path, only: Sequence[str] | None = None) -> dict[str, Array]:
    """Return the arrays of a ``.npz`` file by name, all or ``only`` some.

    Raises ``ValueError`` for pickled objects, which are never loaded, and for a damaged file.
    """
    arrays: dict[str, Array] = {}
    content = path.read_bytes()
    errors = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError, struct.error)
    with _blame(path, *errors), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        (count,) = struct.unpack_from("<H", content, content.rindex(b"PK\5\6") + 10)  # a damaged directory lists fewer
        if count not in (len(members), 0xFFFF):
            raise ValueError(f"it should hold {count} arrays, and lists {len(members)}")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise ValueError(f"it holds {name!r}, which is no .npy array")
            if only is not None and name not in only:
                continue
            if name in arrays:
                raise ValueError(f"it holds {name!r} twice")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _NoWeights(f"{name!r} is compressed in a way that NumPy does not use")
            arrays[name] = _array_of_npy(name, archive.read(member))  # read to its end, which checks its checksum
    return arrays


def _array_of_npy(name: str, content: bytes) -> Array:
    """Read one array. NumPy's own reader allocates what the header claims before it looks at what there is."""
    file = io.BytesIO(content)
    try:
        version = npy.read_magic(file)
        if version == (1, 0):
            shape, fortran_order, dtype = npy.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, fortran_order, dtype = npy.read_array_header_2_0(file)
        else:
            raise ValueError(f"version {version} of the .npy format, which no array of weights needs")
    except Exception as error:  # NumPy parses the header as Python, and what it raises depends on what stands there
        raise ValueError(f"{name!r} is no .npy array: {error}") from None
    if dtype.hasobject:
        raise _NoWeights(f"{name!r} holds pickled objects, which are never loaded")
    return _array(name, dtype, shape, content[file.tell() :], "F" if fortran_order else "C")


def _save_safetensors(arrays: dict[str, Array], path: Path) -> None:
    from safetensors.numpy import save

    path.write_bytes(save(arrays))


def _load_safetensors(path: Path) -> dict[str, Array]:
    from safetensors import SafetensorError, deserialize

    arrays = {}
    content = path.read_bytes()
    with _blame(path, SafetensorError, ValueError):
        for name, entry in deserialize(content):  # type: ignore[no-untyped-call]
            if entry["dtype"] not in SAFETENSORS_NAMES:
                kind = {"BF16": "bfloat16"}.get(entry["dtype"], entry["dtype"])
                raise _NoWeights(f"{name!r} is {kind}, which NumPy does not have: store it as float32")
            dtype = np.dtype(SAFETENSORS_NAMES[entry["dtype"]]).newbyteorder("<")
            arrays[name] = _array(name, dtype, tuple(entry["shape"]), entry["data"])
    return arrays


def _array(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], data: bytes, order: Any = "C") -> Array:
    """Return a new array of this raw memory."""
    if dtype.name not in DTYPES:
        raise _NoWeights(f"{name!r} is {dtype}, expected float16, float32, float64, integer or bool")
    expected = dtype.itemsize
    for length in shape:  # Python's integers, which do not overflow
        expected *= length
    if min(shape, default=0) < 0 or len(data) != expected:
        raise ValueError(f"{name!r} {dtype} {shape} needs {expected} bytes, and there are {len(data)}")
    array = np.ndarray(shape, dtype, data, order=order)
    return np.array(array, dtype=dtype.newbyteorder("="), order="C")


@contextlib.contextmanager
def _blame(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Turn what a damaged or foreign file makes a library raise into a ValueError that names the file."""
    try:
        yield
    except _NoWeights as error:
        raise ValueError(f"{path} is whole, but {error}") from None
    except errors as error:
        raise ValueError(f"{path} is not a whole {path.suffix} file: {error}") from None
