"""What PyTorch's two errors about a graph mean for a given module: which array was modified, why, and the cures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from numpy_rnn.tape import PAGE, GraphFreedError, InPlaceModificationError
from torch_rnn.inplace.sides import DETAILS, IN_PLACE, SECOND_TIME

COLUMNS, LISTED = 100, 8  # of the text; so many candidates are printed at most
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"
AGAIN = "Trying to backward through the graph a second time"
DTYPE = re.compile(r"(BFloat16|Half|Float|Double|Complex\w+|Byte|Char|Short|Int|Long|Bool)(?:Tensor|Type)$")
VIEWS = re.compile("AsStrided|(Numpy)?T|Transpose|Permute|(Unsafe)?View|(Un)?[Ss]queeze|Expand|Select|Slice|Split")
LAYERS = (nn.RNNBase, nn.RNNCellBase)
PART = re.compile(r"(?P<sort>weight|bias)_(?P<of>ih|hh|hr)(_l(?P<layer>\d+)(?P<reverse>_reverse)?)?$")
WHOLE, TRANSPOSED = "its own shape", "the shape of its transpose"
ENTRY = "the shape of one entry along its first axis"

SEE = f"Why, and what each cure does to the gradient: {PAGE}"
NEITHER = f'This error is neither "{IN_PLACE}" nor "{SECOND_TIME}": it has another cause, which it names itself.'
INSIDE = "What a forward makes itself cannot be compared."
NO_DETAILS = "The message does not say which array, at which version: nothing can be compared with it."
NO_SENSE = """The message's versions make no sense: a version never falls, and an array still at the version at which it
was saved is no error. Pass the error itself, or its message unchanged."""
OUTSIDE = "an array outside the module, as an input buffer that is filled anew, would give the same message"
DECIDES = """What decides: let only one of them be written to at a time (the optimizer gets just that one); the error
stays for each that this backward reads. `torch.autograd.set_detect_anomaly(True)` names the line of the forward."""
READ_IF = """It reads a weight only if what the weight multiplies needs a gradient: not the weight_ih of a first layer
fed with data."""
IN_ORDER = """Where all were written, the first one is the most likely, because backward reads it first. It reads a
weight only if what the weight multiplies needs a gradient: not the weight_ih of a first layer fed with data, which is
last."""
FUSED = """Such a message comes from a fused kernel, that of a float32 LSTM on the CPU. It reads every weight and bias,
whatever needs a gradient. Where all were written, the first one is the most likely, because backward reads it first."""
FUSED_ELSEWHERE = """Such a message comes from a fused kernel, which reads every weight, whatever needs a gradient."""
CARRIED = """the state carried from one window to the next still leads back into windows that ran before the update.
Usual cures: carry `state.detach()` (of an LSTM both h and c; the gradient then stops at the window's start) and take
`retain_graph=True` out, or run one backward over all windows before the one update (the gradient goes through all of
them; all their graphs are kept)."""
ADDED_UP = """a loss added up over windows, or an output used again, across an update; detaching the state does not help
then. Cures: one backward for each window's own loss, and `loss.item()` for the printed sum (each gradient is that of
its window), or one backward of the whole sum before the one update (the sum of them)."""
KEPT = """Usual cause: what was computed before an update is used again after it: losses added up, two losses with an
update between their backward passes, a result carried on. Usual cures: run every backward before the update (gradients
at the old values), compute it anew after the update (at the new ones), or `.detach()` it (the gradient stops there)."""
NO_CURE = """No cures: `retain_graph=True`, `clone()`, another name. A write that no version counts (`.data`,
`fused=True`) raises nothing, and the gradients are wrong."""
STATE = """Usual cause: the state was written to in place (`h[:, done] = 0`, `h.zero_()`, `h *= mask`) after a forward
had used it. Usual cures: make a new one, `h = h * mask` (the masked rows get no gradient), or write into a copy,
`h = h.detach().clone()`, before the next forward (the gradient stops there)."""
BUFFER = """Usual cause: a buffer, such as the running statistics of a BatchNorm, was set between a forward and its
backward: by a reset, by load_state_dict, by DistributedDataParallel at the next forward. Usual cures: run the backward
first, or DistributedDataParallel(..., broadcast_buffers=False); the gradient is then that of the forward's values."""
ACTIVATION = """an array that the forward was given or made (an activation), written to in place after an operation kept
it: look for `ReLU(inplace=True)`, `relu_()`, `x += ...`, `x[...] = ...`. Cure: make a new array (`inplace=False`,
`x = x + ...`), which changes no gradient. `torch.autograd.set_detect_anomaly(True)` names the line of the forward."""
LEFT_OUT = "Or it is a slice or another view of a parameter, or not of this module: nn.ModuleList([...]) takes several."
AGAIN_WINDOWS = """Usual cause: the state carried from one window to the next leads back into a window whose backward
has run; or a loss is added up over windows, with a backward in each. Usual cures: carry `state.detach()` (of an LSTM
both h and c; the gradient then stops at the window's start) and run each window's own loss backward; or run one
backward over all."""
AGAIN_PLAIN = """Usual cause: two backward passes through one forward: a loss added up from step to step, a part
computed once before the loop, two losses with a part in common. Usual cures: add the losses up and run one backward
(the same gradient); compute the part anew in each step; or `.detach()` it (the gradient stops there)."""
TRAP = """`retain_graph=True` on the first backward keeps the arrays, but if parameters are updated in between, the next
error is "modified by an inplace operation": the way back is still there."""


@dataclass(frozen=True)
class Candidate:
    """An array that fits: its own shape and present version, whether the message shows its transpose, the doubts."""

    name: str
    shape: tuple[int, ...]
    version: int
    transposed: bool
    reason: str
    doubts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {list(self.shape)}: {self.reason}" + "".join(f"; but {doubt}" for doubt in self.doubts)


@dataclass(frozen=True)
class Explanation:
    """What an error means; ``str()`` gives the text.

    ``kind`` is "modified in place", "backward a second time" or "other". For the first: the ``version`` found, the one
    ``expected`` and the ``shape`` in the message; ``candidates``, best first; ``certain`` if one alone fits, without
    doubts, and for an error of numpy_rnn, which names its array.
    """

    kind: str
    text: str
    version: int | None = None
    expected: int | None = None
    shape: tuple[int, ...] | None = None
    candidates: tuple[Candidate, ...] = ()
    certain: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Message:
    dtype: str
    device: str
    shape: tuple[int, ...]
    op: str  # what made the array; "" for a leaf, and for what lies in no graph
    version: int
    expected: int


@dataclass(frozen=True)
class _Array:
    name: str
    tensor: torch.Tensor
    owner: nn.Module | None = None  # None for a state

    @property
    def is_torchs(self) -> bool:
        """Whether a layer of torch.nn made it: what that does with it is known."""
        home = type(self.owner).__module__
        return home.startswith("torch.nn.modules.") and not home.endswith(".container")

    @property
    def sort(self) -> str:
        return "state" if self.owner is None else "parameter" if isinstance(self.tensor, nn.Parameter) else "buffer"


def explain(error: Exception | str, module: nn.Module, state: Any = None) -> Explanation:
    """Say which array a "modified by an inplace operation" of PyTorch is about, or why a graph was walked twice.

    >>> rnn, h = nn.RNN(1, 2), None
    >>> optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
    >>> try:
    ...     for i in range(5):
    ...         output, h = rnn(torch.ones(3, 1, 1), h)
    ...         output.sum().backward(retain_graph=True)
    ...         optimizer.step()
    ... except RuntimeError as error:
    ...     explanation = explain(error, rnn, h)
    >>> explanation.candidates[0].name, explanation.certain, explanation.expected, explanation.version
    ('weight_hh_l0', True, 1, 2)

    ``print(explanation)`` says the cause and the cures. Call it before anything else writes to the parameters: what
    fits is told by shape, dtype and present version. Where several fit, all are named, and what decides.

    Args:
        error: what ``backward()`` raised, or its message. An error of numpy_rnn is its own explanation.
        module: what was trained; ``nn.ModuleList([rnn, head])`` for several modules.
        state: what is carried from window to window, if anything is: a tensor, or a tuple or list of tensors.

    Raises:
        TypeError: if an argument is something else.
    """
    if not isinstance(error, Exception | str):
        raise TypeError(f"error must be an exception or its message, got {type(error).__name__}")
    if isinstance(error, InPlaceModificationError):
        it = Candidate(error.name, error.shape, error.version, False, "the error names it")
        return Explanation(IN_PLACE, str(error), error.version, error.expected, error.shape, (it,), True)
    if isinstance(error, GraphFreedError):
        return Explanation(SECOND_TIME, str(error), certain=True)
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    arrays = [*_states("state", state), *_held(module)]
    recurrent = state is not None or any(isinstance(m, LAYERS) for m in module.modules())
    message = " ".join(str(error).split())
    if found := DETAILS.search(message):
        return _modified(_read(found), arrays, recurrent)
    if "modified by an inplace operation" in message:
        return Explanation(IN_PLACE, _text(f"{MODIFIED}.", NO_DETAILS, KEPT, SEE))
    if AGAIN in message:
        return Explanation(SECOND_TIME, _text(f"{AGAIN}.", AGAIN_WINDOWS if recurrent else AGAIN_PLAIN, TRAP, SEE))
    return Explanation("other", NEITHER)


def _states(name: str, state: Any) -> Iterator[_Array]:
    if isinstance(state, torch.Tensor):
        yield _Array(name, state)
    elif isinstance(state, tuple | list):
        for i, part in enumerate(state):
            yield from _states(f"{name}[{i}]", part)
    elif state is not None:
        raise TypeError(f"{name} must be a tensor, or a tuple or list of tensors, got {type(state).__name__}")


def _held(module: nn.Module) -> Iterator[_Array]:
    for prefix, owner in module.named_modules():
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and not nn.parameter.is_lazy(tensor):
                yield _Array(f"{prefix}.{name}".lstrip("."), tensor, owner)


def _read(found: re.Match[str]) -> _Message:
    kind, shape = found["kind"], tuple(int(n) for n in found["shape"].split(",") if n.strip())
    dtype = DTYPE.search(kind)
    device = DTYPE.sub("", kind).removeprefix("torch").strip(".").lower() or "cpu"  # as in torch.cuda.FloatTensor
    op = re.sub(r"Backward\d*$", "", (found["op"] or "").rpartition(":")[2])
    return _Message(dtype[1] if dtype else kind, device, shape, op, int(found["version"]), int(found["expected"]))


def _fits(message: _Message, arrays: list[_Array]) -> list[tuple[Candidate, _Array]]:
    """Every array that fits: the least doubtful first, those of one recurrent module in the order of its backward.

    A tied parameter is there once, under all its names.
    """
    owners = list(dict.fromkeys(array.owner for array in arrays))
    best: dict[int, tuple[Candidate, _Array]] = {}
    for array in arrays:
        t, names = array.tensor, dict.fromkeys(a.name for a in arrays if a.tensor is array.tensor)
        for way in _ways(message, array):
            doubts = (*_doubts_of_form(message, array, way), *_doubts_of_version(message, array))
            one = Candidate(" = ".join(names), tuple(t.shape), t._version, way == TRANSPOSED, way, doubts)
            if id(t) not in best or len(doubts) < len(best[id(t)][0].doubts):
                best[id(t)] = (one, array)

    def key(fit: tuple[Candidate, _Array]) -> tuple[bool, int, int, tuple[int, ...]]:
        one, array = fit
        return not _is_best(one), len(one.doubts), owners.index(array.owner), _place(message, array)

    return sorted(best.values(), key=key)


def _is_best(one: Candidate) -> bool:
    return not set(one.doubts) - {OUTSIDE}


def _is_fused(message: _Message, array: _Array) -> bool:
    """Whether the message shows a weight of a recurrent layer as it is: only a fused kernel keeps it so."""
    return isinstance(array.owner, nn.RNNBase) and not message.op and tuple(array.tensor.shape) == message.shape


def _place(message: _Message, array: _Array) -> tuple[int, ...]:
    """Where the array stands among those of its module in the order in which PyTorch's backward reads them, (4.7)."""
    part = PART.match(array.name.rpartition(".")[2])
    if part is None or not isinstance(array.owner, LAYERS):
        return ()
    layer, forward = int(part["layer"] or 0), part["reverse"] is None
    if not _is_fused(message, array):
        return part["of"] == "ih" and layer == 0, -layer, forward, ("hr", "hh", "ih").index(part["of"])
    if message.device != "cpu":  # all layers are one call there
        return ()
    return -layer, forward, part["sort"] == "bias", ("ih", "hh", "hr").index(part["of"])


def _ways(message: _Message, array: _Array) -> Iterator[str]:
    """In which ways the array may be the one that was saved, by dtype and shape."""
    t, shape = array.tensor, tuple(array.tensor.shape)
    if t.is_inference() or t.type().rpartition(".")[2] != f"{message.dtype}Tensor":
        return
    if array.owner is None:
        if shape == message.shape:
            yield WHOLE
        elif message.shape in (shape[1:], (1, *shape[1:]), (1, *shape)):  # one layer and direction of it; unbatched
            yield ENTRY
    elif not message.op or VIEWS.fullmatch(message.op):  # a parameter is no operation's result
        if len(shape) == 2 and shape[::-1] == message.shape:
            yield TRANSPOSED
        if shape == message.shape:
            yield WHOLE


def _doubts_of_form(message: _Message, array: _Array, way: str) -> Iterator[str]:
    """PyTorch says "which is output 0 of" for what lies in a graph and is no leaf of it, as a view of a weight."""
    owner, trainable = array.owner, array.tensor.requires_grad
    if message.op and not trainable:
        yield "it needs no gradient now, and the array of the message did"
    if way == TRANSPOSED and trainable and not message.op:
        yield "its transpose would be a view in the graph, and the message names none"
    known = array.is_torchs and isinstance(owner, nn.Linear | nn.RNNBase | nn.RNNCellBase)
    if owner is not None and not message.op and not known:
        yield OUTSIDE
    if not array.is_torchs:
        return
    fused = way == WHOLE and _is_fused(message, array)
    if "bias" in array.name.rpartition(".")[2] and not fused:
        yield "a bias is only added: nothing of it is kept"
    elif way == WHOLE and not fused and isinstance(owner, (nn.Linear, *LAYERS)):
        yield f"nn.{type(owner).__name__} keeps the transpose of its weights"
    elif isinstance(owner, nn.Embedding | nn.EmbeddingBag):
        yield "looking up keeps only the indices: only if it is used elsewhere too, as a tied output weight"
    if fused and message.device == "cpu" and not (isinstance(owner, nn.LSTM) and message.dtype != "Double"):
        yield "on the CPU only nn.LSTM, and not in float64, is fused and keeps its weights untransposed"


def _doubts_of_version(message: _Message, array: _Array) -> Iterator[str]:
    version, device = array.tensor._version, array.tensor.device.type
    if version > message.version:
        yield f"it is at version {version} now: only if it was written to again since the error"
    elif version < message.version:
        yield f"it is at version {version} now, and versions never fall: only if this is a copy, or was made anew"
    if array.is_torchs and message.expected == 0:
        yield "what torch.nn makes begins at version 1: only if the module is a copy (deepcopy begins at 0)"
    if device != message.device:
        yield f"it is on the {device.upper()} now, and the message speaks of {message.device.upper()}"


def _modified(message: _Message, arrays: list[_Array], recurrent: bool) -> Explanation:
    head = f"is at version {message.version}; expected version {message.expected} instead."
    times = message.version - message.expected
    if times < 1:
        nonsense = _text(f"{MODIFIED}: an array {list(message.shape)} {head}", NO_SENSE, SEE)
        return Explanation(IN_PLACE, nonsense, message.version, message.expected, message.shape)
    fits = _fits(message, arrays)
    found = tuple(candidate for candidate, _ in fits)
    best, sure = sum(map(_is_best, found)), sum(not candidate.doubts for candidate in found)
    certain = best == sure == 1
    subject = f"{found[0].name} {list(found[0].shape)}" if certain else f"an array {list(message.shape)}"
    text_of_fits, after = _listing(found, best, certain, any(a.owner is None for a in arrays))
    text = [
        f"{MODIFIED}: {subject} {head}",
        f"A forward saved it at version {message.expected}; it was written to {times} time{'s'[: times != 1]} since: "
        "this backward cannot know the values that the forward used.",
        *text_of_fits,
    ]
    likely = [array for _, array in fits[: best or None]]
    sorts = dict.fromkeys(array.sort for array in likely)
    for sort in sorts:
        text += [f"If it is a {sort}:"] if not sure or len(sorts) > 1 else []
        of_sort = [array for array in likely if array.sort == sort]
        text += {"state": [STATE], "buffer": [BUFFER]}.get(sort) or _updated(of_sort, recurrent, message.expected)
    if not sure:
        made = f"It is the result of {message.op}: " if message.op and not VIEWS.fullmatch(message.op) else ""
        text += [("If it is none of these, it is " if fits else made or "It is then ") + ACTIVATION]
        text += [] if made else [LEFT_OUT]
    text += [_decides(message, likely)] if best > 1 else []
    values = message.version, message.expected, message.shape, found, certain
    return Explanation(IN_PLACE, _text(*text, *after, SEE), *values)


def _listing(found: Sequence[Candidate], best: int, certain: bool, state_given: bool) -> tuple[list[str], list[str]]:
    """Which arrays fit, and how well: what stands before the cures, and what after them."""
    of = "the module's parameters and buffers" + (" and the given state" if state_given else "")
    if best > 1:
        which = f"Of {of}, {best} fit equally well, and the message cannot tell them apart:"
        before = [which, *_items(found[:best])]
    elif certain:
        reason = f"the message shows {found[0].reason}, its dtype and its present version"
        before = [f"Of {of} it alone fits: {reason}. {INSIDE}"]
    else:
        which = f"Of {of} " + ("nothing fits without a doubt. Perhaps:" if found else "none fits.")
        before = [which, *_items(found[: best or None])]
    after = ["Less likely:", *_items(found[best:])] if best and found[best:] else []
    return before, after


def _decides(message: _Message, likely: list[_Array]) -> str:
    """How to tell apart what fits equally well."""
    owners = {array.owner for array in likely}
    if any(_is_fused(message, array) for array in likely):
        rule = FUSED if message.device == "cpu" else FUSED_ELSEWHERE
    else:
        rule = IN_ORDER if len(owners) == 1 and isinstance(likely[0].owner, LAYERS) else READ_IF
    return f"{rule} {DECIDES}"


def _items(found: Sequence[Candidate]) -> list[str]:
    return [f"- {one}" for one in found[:LISTED]] + [f"- and {len(found) - LISTED} more"] * (len(found) > LISTED)


def _updated(arrays: list[_Array], recurrent: bool, expected: int) -> list[str]:
    """Cause and cures where a parameter was written to."""
    if not recurrent:
        return [KEPT, NO_CURE]
    known = all(array.is_torchs for array in arrays)
    causes = [CARRIED, ADDED_UP]
    if known and not any(isinstance(array.owner, LAYERS) for array in arrays):  # a head: the state leads past it
        causes.reverse()
    when = (
        "If it began at version 1 and each step raised it by one (AdamW, NAdam and ASGD: by two), the window that "
        f"saved it ran after {expected - 1} update{'s'[: expected != 2]}."
    )
    return [f"Usual cause: {causes[0]}", f"Another: {causes[1]}", NO_CURE, *([when] if known and expected else [])]


def _text(*paragraphs: str) -> str:
    fill = textwrap.TextWrapper(COLUMNS, break_on_hyphens=False)
    lines = []
    for paragraph in paragraphs:
        fill.subsequent_indent = "  " if paragraph.startswith("- ") else ""
        words = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), " ".join(paragraph.split()))
        lines += fill.wrap(words)  # code is not broken
    return "\n".join(lines).replace("\0", " ")
