"""The optional third side of ``rnn-parity bench``: its equations, run by NumPy in the place of jax."""

import types

import numpy as np
import pytest

from parity_tests.helpers import assert_parity
from torch_rnn.measure import jax_peer, limit
from torch_rnn.measure.bench import measure_row
from torch_rnn.measure.grid import CELLS, DTYPES, Row
from torch_rnn.measure.sides import Data, numpy_module
from torch_rnn.measure.timing import Effort


def scan(step, state, xs):
    """``jax.lax.scan``: the last state, and what each step puts out."""
    outputs = []
    for x in xs:
        state, output = step(state, x)
        outputs.append(output)
    return state, np.stack(outputs)


class Stand:
    """As much of jax as the module uses, on NumPy; ``backwards`` counts the calls of what ``vjp`` returns."""

    def __init__(self):
        self.settings, self.compiled, self.backwards = {}, 0, []
        self.config = types.SimpleNamespace(update=self.settings.__setitem__)
        self.numpy, self.lax = np, types.SimpleNamespace(scan=scan)
        self.nn = types.SimpleNamespace(sigmoid=lambda z: 1 / (1 + np.exp(-z)), tanh=np.tanh)
        self.device_put = self.block_until_ready = lambda value: value

    def jit(self, function):
        self.compiled += 1
        return function

    def vjp(self, function, *arguments):
        return function(*arguments), self.backwards.append


@pytest.fixture
def stand(monkeypatch):
    stand = Stand()
    monkeypatch.setattr(jax_peer, "installed", lambda: True)
    monkeypatch.setattr(jax_peer, "import_module", {"jax": stand}.__getitem__)
    return stand


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_equations_are_those_of_the_cells(stand, cell, dtype):
    row = Row(cell, dtype, T=6, B=4, I=3, H=5)
    module, data = numpy_module(row), Data(row)
    output = jax_peer._run(stand, row, data.x, *(parameter.data for parameter in module.parameters()))
    assert_parity(output, module(data.x)[0].numpy(), "output")


def test_a_work_times_forward_and_both_of_the_same_row(stand):
    row = Row("gru", "float64", T=6, B=4, I=3, H=5)
    seconds = jax_peer.work(row)()
    assert seconds.keys() == {"forward", "both"}
    assert min(seconds.values()) >= 0
    assert stand.settings == {"jax_enable_x64": True}  # else float64 is computed in float32
    assert stand.compiled == 2
    (upstream,) = stand.backwards
    assert upstream.tobytes() == Data(row).upstream.tobytes()


def test_a_row_says_how_the_third_side_compares(stand, monkeypatch):
    instant = Effort(least=2, most=2, seconds=0.0, block=0.0, pause=0.0)
    monkeypatch.setattr(limit, "PROBE", instant)
    record = measure_row(Row("rnn", "float64", T=6, B=4, I=3, H=5), instant)
    ours, theirs = (record["seconds"][side]["both"]["median"] for side in ("numpy", "jax"))
    assert record["jax_ratio"]["median"] == pytest.approx(theirs / ours)


@pytest.mark.parametrize("more", [{"layers": 2}, {"bidirectional": True}, {"lengths": True}], ids=str)
def test_only_plain_rows_are_run(stand, more):
    assert jax_peer.work(Row("rnn", "float32", 6, 4, 3, 5, **more)) is None
    assert stand.compiled == 0


def test_where_jax_is_missing_there_is_no_third_side(monkeypatch):
    monkeypatch.setattr(jax_peer, "find_spec", {"jax": None}.__getitem__)
    assert jax_peer.work(Row("rnn", "float32", 6, 4, 3, 5)) is None
