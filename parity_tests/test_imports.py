"""numpy_rnn stands on NumPy alone; the package safetensors is imported only when such a file is saved or loaded."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import numpy_rnn

ALLOWED = {"numpy", "numpy_rnn", *sys.stdlib_module_names}
WHEN_USED = {"weights.py": {"safetensors"}}
SOURCES = sorted(Path(numpy_rnn.__file__).parent.rglob("*.py"))


def test_it_imports_and_learns_where_nothing_else_can_be_imported() -> None:
    program = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {ALLOWED!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import pkgutil, importlib, numpy as np, numpy_rnn
for module in pkgutil.walk_packages(numpy_rnn.__path__, "numpy_rnn."):
    importlib.import_module(module.name)
model = numpy_rnn.SequenceModel("rnn", 1, 2, 1, rng=0)
output, _ = model(np.ones((3, 1, 1), np.float32))
numpy_rnn.mse_loss(output, np.ones((3, 1, 1), np.float32)).backward()
numpy_rnn.SGD(model.parameters()).step()
import tempfile
with tempfile.TemporaryDirectory() as directory:
    numpy_rnn.save_weights(model.state_dict(), directory + "/model.npz")
    model.load_state_dict(numpy_rnn.load_weights(directory + "/model.npz"))
for use in (lambda: numpy_rnn.save_weights({{}}, "a.safetensors"), lambda: numpy_rnn.load_weights("a.safetensors")):
    try:
        use()
    except ImportError as error:
        assert "a.safetensors: .safetensors files need the package safetensors" in str(error), error
    else:
        raise AssertionError
assert "torch" not in sys.modules
try:
    import torch_rnn
except ImportError:
    print("as expected")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("as expected\n", "")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_source_file_names_another_package(source: Path) -> None:
    tree = ast.parse(source.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        allowed = ALLOWED | (WHEN_USED.get(source.name, set()) if id(node) in inside else set())
        assert {name.partition(".")[0] for name in names} <= allowed


def test_what_is_rarely_used_is_loaded_at_first_use() -> None:
    program = """
import sys, numpy_rnn
late = {"numpy_rnn.conventions", "numpy_rnn.gradcheck", "numpy_rnn.weights", "numpy.random", "zipfile"}
assert not late & set(sys.modules), late & set(sys.modules)
assert set(numpy_rnn.__all__) <= set(dir(numpy_rnn))
assert numpy_rnn.gradcheck.check_backward and numpy_rnn.weights.load_weights is numpy_rnn.load_weights
from numpy_rnn import *
assert set(numpy_rnn.__all__) <= set(globals())
print("as expected")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("as expected\n", "")


def test_each_public_name_is_the_one_that_type_checkers_see() -> None:
    tree = ast.parse(Path(numpy_rnn.__file__).read_text(encoding="utf-8"))
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("numpy_rnn")]
    named = {alias.name: node.module for node in imports for alias in node.names}
    assert set(named) == set(numpy_rnn.__all__)
    for name, home in named.items():
        assert getattr(numpy_rnn, name) is getattr(importlib.import_module(str(home)), name)
    with pytest.raises(AttributeError, match="module 'numpy_rnn' has no attribute 'LSTMM'"):
        numpy_rnn.LSTMM  # noqa: B018
