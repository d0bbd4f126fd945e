"""RNN, LSTM and GRU against torch.nn over random configurations: one body for all."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import numpy_rnn
from numpy_rnn.cells.steps import Steps
from numpy_rnn.modules.sequence_model import CELLS
from torch_rnn import check_parity
from torch_rnn.parity import call, dropout_masks
from torch_rnn.tolerances import PARITY
from torch_rnn.twins import twin

EXAMPLES = int(os.environ.get("FAMILY_EXAMPLES", "300"))


@dataclass(frozen=True)
class Configuration:
    """One network, its input, what learns, and what the loss reads."""

    cell: str
    T: int
    B: int
    I: int  # noqa: E741
    H: int
    L: int
    bidirectional: bool
    P: int
    bias: bool
    dtype: str
    layout: str
    ragged: bool
    dropout: float
    given_state: bool
    learn_x: bool
    learn_state: bool
    frozen: int  # bits: which parameters are frozen
    reads: int  # bits: which of the outputs the loss reads
    onednn: bool
    seed: int


sizes = st.integers(1, 9)
configurations = st.builds(
    Configuration,
    cell=st.sampled_from(list(CELLS)),
    T=sizes,
    B=sizes,
    I=sizes,
    H=sizes,
    L=st.integers(1, 3),
    bidirectional=st.booleans(),
    P=st.integers(0, 8),
    bias=st.booleans(),
    dtype=st.sampled_from(["float64", "float64", "float32"]),
    layout=st.sampled_from(["time-major", "batch_first", "unbatched"]),
    ragged=st.booleans(),
    dropout=st.sampled_from([0.0, 0.0, 0.4, 1.0]),
    given_state=st.booleans(),
    learn_x=st.booleans(),
    learn_state=st.booleans(),
    frozen=st.integers(0, 2**30 - 1) | st.just(0),
    reads=st.integers(1, 7),
    onednn=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


def build(c: Configuration) -> numpy_rnn.Module:
    extra = {"proj_size": c.P} if c.cell == "lstm" and c.P < c.H else {}
    module = CELLS[c.cell](
        c.I,
        c.H,
        c.L,
        bias=c.bias,
        batch_first=c.layout == "batch_first",
        dropout=c.dropout if c.L > 1 else 0.0,
        bidirectional=c.bidirectional,
        dtype=c.dtype,
        rng=c.seed,
        **extra,
    )
    # Weights for moderate z. With one unit and z = 5 the tensor's only entry is 1 - tanh²(z) = 2e-4, which keeps 1e-12
    # of itself in neither library: the slope is taken from the output, and 1 - h² cancels.
    rng, scale = np.random.default_rng(c.seed), 1 / np.sqrt(c.I + c.H)
    module.load_state_dict({name: scale * rng.normal(size=p.shape) for name, p in module.named_parameters()})
    for i, parameter in enumerate(module.parameters()):
        parameter.requires_grad = not c.frozen >> i & 1
    return module


def flat(outputs: Any) -> list[Any]:
    output, state = outputs
    return [output, *(state if isinstance(state, tuple) else (state,))]


def check(c: Configuration) -> float:
    """Compare everything, and return the largest error over its tensor's scale."""
    rng = np.random.default_rng(c.seed)
    module = build(c)
    theirs = twin(module)
    shape = {"time-major": (c.T, c.B, c.I), "batch_first": (c.B, c.T, c.I), "unbatched": (c.T, c.I)}[c.layout]
    x = rng.normal(size=shape).astype(c.dtype)
    batched = c.layout != "unbatched"
    lengths = rng.integers(1, c.T + 1, c.B) if c.ragged and batched else None
    states = []
    if c.given_state:
        parts = c.L * (2 if c.bidirectional else 1)
        for size in (theirs.proj_size or c.H, c.H)[: 2 if c.cell == "lstm" else 1]:
            states.append(rng.normal(size=(parts, c.B, size) if batched else (parts, size)).astype(c.dtype))

    leaves = [
        numpy_rnn.Tensor(a.copy(), requires_grad=g)
        for a, g in zip([x, *states], [c.learn_x, *[c.learn_state] * 2], strict=False)
    ]
    torch_leaves = [torch.from_numpy(a.data.copy()).requires_grad_(a.requires_grad) for a in leaves]
    torch.manual_seed(c.seed)
    options: dict[str, Any] = {} if lengths is None else {"lengths": lengths}
    if masks := dropout_masks(theirs, x.shape, lengths):
        options["dropout_masks"] = masks
    pack = (lambda s: s[0]) if len(states) == 1 else tuple
    outputs = flat(module(leaves[0], *([pack(leaves[1:])] if states else []), **options))
    torch_outputs = flat(call(theirs, [torch_leaves[0], *([pack(torch_leaves[1:])] if states else [])], lengths))
    pairs = {f"output {i}": pair for i, pair in enumerate(zip(outputs, torch_outputs, strict=True))}

    read = [i for i in range(len(outputs)) if c.reads >> i & 1] or [0]
    if outputs[0].requires_grad:
        upstream = [rng.normal(size=outputs[i].shape).astype(c.dtype) for i in read]
        numpy_rnn.backward([outputs[i] for i in read], upstream)
        torch.autograd.backward([torch_outputs[i] for i in read], [torch.from_numpy(d) for d in upstream])
        pairs |= {f"d input {i}": (a.grad, b.grad) for i, (a, b) in enumerate(zip(leaves, torch_leaves, strict=True))}
        named = zip(module.named_parameters(), theirs.parameters(), strict=True)
        pairs |= {f"d {name}": (a.grad, b.grad) for (name, a), b in named}
    else:
        assert not torch_outputs[0].requires_grad

    present = {}
    for name, (got, expected) in pairs.items():
        assert (got is None) == (expected is None), f"{name} is None on one side only, {c}"
        if got is not None:
            present[name] = np.asarray(got), expected.detach().numpy()
    # A gradient of one entry can be a sum of large terms that nearly cancel, and then keeps no digits of itself. What
    # was added up is of the size of the other gradients: a tensor counts as at least a hundredth of the largest.
    scales = {name: np.abs(expected).max(initial=0) for name, (_, expected) in present.items()}
    floor = max((scale for name, scale in scales.items() if name.startswith("d ")), default=0) / 100
    worst = 0.0
    for name, (got, expected) in present.items():
        assert got.dtype == expected.dtype
        scale = max(scales[name], floor) if name.startswith("d ") else scales[name]
        np.testing.assert_allclose(got, expected, rtol=0, atol=PARITY[got.dtype] * scale, err_msg=f"{name}, {c}")
        if scale:
            worst = max(worst, float(np.abs(got - expected).max() / scale))
    return worst


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(configurations)
def test_random_configurations(c: Configuration) -> None:
    if c.cell == "rnn-relu" and c.dtype == "float32":
        return  # within rounding of 0 a relu may be open in one library and closed in the other
    torch._C._set_mkldnn_enabled(c.onednn)  # PyTorch's fused float32 LSTM, or its native one
    try:
        check(c)
    finally:
        torch._C._set_mkldnn_enabled(True)


@pytest.mark.parametrize("B", [1, 2])
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("LSTM", 4), ("GRU", 3)])
def test_blocks_of_hundreds_of_steps(kind: str, gates: int, B: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks show no mistake that only a long one makes."""
    row = gates * 4 * 8
    monkeypatch.setattr("numpy_rnn.cells.steps.CACHE", 220 * B * row)
    assert [block.k for block in Steps([B] * 300).blocks(row)] == [220, 80]
    module = getattr(numpy_rnn, kind)(3, 4, dtype="float64", rng=0)
    x, h_0, c_0 = map(np.random.default_rng(0).normal, (0, 0, 0), (1, 1, 1), ((300, B, 3), (1, B, 4), (1, B, 4)))
    report = check_parity(module, x, (h_0, c_0) if kind == "LSTM" else h_0)
    assert report.ok, report
