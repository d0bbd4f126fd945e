"""The story of the article's error, told from runs on both libraries."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from numpy_rnn.tape import PAGE
from torch_rnn.inplace.agreement import differences
from torch_rnn.inplace.experiment import Experiment, Outcome, run, true_gradients
from torch_rnn.inplace.sides import SECOND_TIME, SIDES, FusedTorchSide, TracedTorchSide
from torch_rnn.inplace.variants import ARTICLE, DECISIVE, SILENT, VARIANTS, Variant

WIDTH = 96


@dataclass(frozen=True)
class Result:
    """A variant and what both libraries did."""

    name: str
    variant: Variant
    numpy: Outcome
    torch: Outcome

    @cached_property
    def differences(self) -> list[str]:
        """What the two did differently; nothing where they agree."""
        return differences(self.variant.experiment, self.numpy, self.torch)

    @cached_property
    def errors_of_the_gradient(self) -> list[float]:
        """For each window, how far the gradients of all parameters together are from the true ones, of their norm."""
        found = []
        for i, window in enumerate(self.torch.windows):
            true = true_gradients(self.variant.experiment, self.numpy.windows[: i + 1])
            got = np.concatenate(
                [np.ravel(g) for name, g in window.gradients.items() if name in true and g is not None]
            )
            expected = np.concatenate([np.ravel(gradient) for gradient in true.values()])
            found.append(float(np.linalg.norm(got - expected) / np.linalg.norm(expected)))
        return found


def results(names: Iterable[str]) -> dict[str, Result]:
    """Run the variants of these names on both libraries.

    >>> {name: r.torch.at for name, r in results(["article", "detach"]).items()}
    {'article': 2, 'detach': None}
    """
    found = {}
    for name in names:
        variant = VARIANTS[name]
        numpy, torch = (run(variant.experiment, side) for side in SIDES.values())
        found[name] = Result(name, variant, numpy, torch)
    return found


def tell(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the story of all variants, paragraph by paragraph."""
    article = results["article"]
    yield from _failure(article)
    yield _heading("2. Which array?")
    yield _wrap(
        f"PyTorch says its shape only. numpy_rnn names it: {article.numpy.failure.name}, "  # type: ignore[union-attr]
        "and hooks on PyTorch's saved tensors read the same one last:"
    )
    yield _versions(article)
    yield _heading("3. Two experiments decide")
    yield _table(results[name] for name in DECISIVE)
    yield _wrap(
        "The hidden state is the same tensor in both. What is written decides: optimizer.step() writes weight_hh in "
        "place, and the next backward needs the one that was there before. `h = h_next` copies nothing and writes "
        "nothing; it only keeps the way back into older windows open."
    )
    yield _heading("4. What people try")
    yield _table(r for name, r in results.items() if name not in (*DECISIVE, *SILENT))
    yield _fused_kernel()
    yield _heading("5. Silence is worse than the error")
    yield from _silence([results[name] for name in SILENT])
    yield _heading("6. The cure, and what it costs")
    yield from _cost()


def _failure(article: Result) -> Iterator[str]:
    yield _heading("1. The loop of the article fails")
    yield textwrap.indent(_LOOP, "    ")
    for library, outcome in (("PyTorch", article.torch), ("numpy_rnn", article.numpy)):
        failure = outcome.failure
        if failure is None:
            raise AssertionError(f"the article's loop ran on {library}")
        message = failure.message.partition(" Hint:")[0].splitlines()[0]
        yield _wrap(f"{library}, at i = {outcome.at}: {message}")


_LOOP = """\
rnn = RNN(1, 1); h = zeros; x = 1, 2, 3, 4, 5; y = 2 x
for i in range(5):                         # windows of one step
    optimizer.zero_grad()
    output, h_next = rnn(x[i], h)
    mse_loss(output, y[i]).backward(retain_graph=True)
    optimizer.step()                       # Adadelta, lr 0.01
    h = h_next                             # no detach"""


def _versions(article: Result) -> str:
    """The version of every parameter at every window, and who reads what."""
    traced = run(ARTICLE, TracedTorchSide())
    if traced.reads[-1:] != article.numpy.reads[-1:] or traced.at != article.torch.at:
        raise AssertionError(f"the hooks read {traced.reads} at {traced.at}, numpy_rnn {article.numpy.reads}")
    name = traced.reads[-1]
    lines = [f"    {'i':>3}   {name + ' at version':<28}what then happens to it"]
    for i, window in enumerate(article.torch.windows):
        before, after = window.versions_before[name], window.versions_after[name]
        lines.append(f"    {i:>3}   {before:<28}window {i} saves it; step() writes it: version {after}")
    failure, at = article.numpy.failure, article.numpy.at
    assert failure is not None
    assert at is not None
    lines.append(f"    {at:>3}   {failure.version:<28}window {at} saves it; backward goes on into window {at - 1},")
    lines.append(f"    {'':>3}   {'':<28}which saved version {failure.expected} and finds {failure.version}: the error")
    return (
        "\n".join(lines)
        + "\n\n"
        + _wrap(
            "Window 0 starts from a state outside the graph and has one step, so its backward never reads weight_hh: "
            "that is why i = 1 goes through."
        )
    )


def _fused_kernel() -> str:
    """Where PyTorch's two LSTMs part."""
    outcomes = [run(VARIANTS[name].experiment, FusedTorchSide()) for name in ("lstm", "lstm-h-only", "lstm-detach")]
    return _wrap(
        "The LSTM rows are PyTorch's native kernel. As it comes, a float32 LSTM on the CPU runs in oneDNN's fused "
        "kernel, which reads every weight and bias; the same three rows are then: lstm "
        f"{_short(outcomes[0])}, lstm-h-only {_short(outcomes[1])}, lstm-detach {_short(outcomes[2])}."
    )


def _silence(silent: Iterable[Result]) -> Iterator[str]:
    yield _wrap(
        "A write that the version counter does not see raises nothing: backward then multiplies old states by new "
        "weights. PyTorch's own optimizers do this on the CPU with fused=True (SGD, Adam, AdamW, Adagrad). "
        "Whoever made the error go away like that has wrong gradients:"
    )
    lines = [f"    {'variant':<12}{'the write':<49}{'error of the gradient, i = 2, 3, 4':>35}"]
    for r in silent:
        errors = ", ".join(f"{error:.1%}" for error in r.errors_of_the_gradient[2:])
        lines.append(f"    {r.name:<12}{r.variant.change:<49}{errors:>35}{_mark(r)}")
    yield "\n".join(lines)
    yield _wrap(
        "Against the true gradient, each window with the weights that it was computed with; RNN(1, 3), random series. "
        "Both libraries are wrong by the same numbers."
    )


def _cost() -> Iterator[str]:
    settings = {"hidden_size": 16, "batch": 4, "data": "random", "dtype": "float64", "window": 5, "update": "none"}
    full, cut = (run(replace(ARTICLE, carry=carry, **settings), SIDES["numpy"]) for carry in ("name", "detach"))  # type: ignore[arg-type]
    lost = []
    for a, b in zip(full.windows, cut.windows, strict=True):
        whole, part = a.gradients["rnn.weight_hh_l0"], b.gradients["rnn.weight_hh_l0"]
        if whole is None or part is None:
            raise AssertionError("weight_hh has no gradient")
        lost.append(float(np.linalg.norm(whole - part) / np.linalg.norm(whole)))
    yield textwrap.indent("h = h_next.detach()                        # for an LSTM: of both h and c", "    ")
    yield _wrap(
        "The value goes on, the gradient stops at the window's start. What it would have brought from older windows "
        f"is lost: for RNN(1, 16) in windows of 5 steps and equal weights, {lost[-1]:.1%} of the norm of dW_hh in the "
        "last window. Longer windows lose less. To lose nothing, run one backward over all windows before one step "
        "(the row one-update)."
    )
    yield _wrap(f"Why, step by step: {PAGE}")


def _table(results: Iterable[Result]) -> str:
    lines = [f"    {'variant':<19}{'what is changed':<49}{'NumPy':<14}{'PyTorch'}"]
    for r in results:
        change = textwrap.wrap(r.variant.change, 47)
        lines.append(f"    {r.name:<19}{change[0]:<49}{_short(r.numpy):<14}{_short(r.torch)}{_mark(r)}")
        lines += [f"    {'':<19}{more}" for more in change[1:]]
    return "\n".join(lines)


def _short(outcome: Outcome) -> str:
    """ "runs", "i=2: 3 for 2" (found version 3, expected 2) or "i=1: twice"."""
    failure = outcome.failure
    if failure is None:
        return "runs"
    if failure.kind == SECOND_TIME:
        return f"i={outcome.at}: 2nd time"
    return f"i={outcome.at}: {failure.version} for {failure.expected}"


def _mark(r: Result) -> str:
    return "  <- DIFFER" if r.differences else ""


def detail(r: Result) -> str:
    """Return one variant at length."""
    parts = [f"{r.name}: {r.variant.change}", _settings(r.variant.experiment)]
    for library, outcome in (("numpy_rnn", r.numpy), ("PyTorch", r.torch)):
        if outcome.failure is None:
            parts.append(f"{library} runs through all {len(outcome.windows)} windows.")
        else:
            parts.append(f"{library} fails at i = {outcome.at}:")
            parts.append("\n".join(_wrap(line) for line in outcome.failure.message.splitlines()))
    lines = [f"    {'i':>3}{'loss':>14}{'norm of all gradients':>24}   versions before -> after the update"]
    for i, window in enumerate(r.numpy.windows):
        gradients = [np.ravel(g) for g in window.gradients.values() if g is not None]
        norm = f"{np.linalg.norm(np.concatenate(gradients)):.6g}" if gradients else "no backward"
        versions = sorted({f"{window.versions_before[n]} -> {window.versions_after[n]}" for n in window.weights})
        lines.append(f"    {i:>3}{window.loss:>14.6g}{norm:>24}   {', '.join(versions)}")
    parts.append("\n".join(lines))
    if r.numpy.windows:
        shares = "shares" if r.numpy.windows[0].shares_memory else "does not share"
        parts.append(f"The state carried on {shares} its memory with h_next.")
    if r.numpy.reads:
        parts.append(_wrap(f"Weights that the last backward read, in order: {', '.join(r.numpy.reads)}."))
    if r.name in SILENT:
        errors = ", ".join(f"{error:.2%}" for error in r.errors_of_the_gradient)
        parts.append(_wrap(f"Error of the gradient against the true one, i = 0 to 4: {errors}."))
    parts.append("Both libraries do the same." if not r.differences else "THEY DIFFER: " + "; ".join(r.differences))
    return "\n\n".join(parts)


def _settings(experiment: Experiment) -> str:
    default = asdict(Experiment())
    given = {name: value for name, value in asdict(experiment).items() if value != default[name]}
    return _wrap(f"Settings that are not the article's: {given or 'none'}")


def as_json(r: Result) -> dict[str, Any]:
    """Return everything about one variant in plain types."""

    def outcome(o: Outcome, reads: list[str] | None) -> dict[str, Any]:
        return {
            "failure": None if o.failure is None else asdict(o.failure),
            "at": o.at,
            "reads": reads,
            "windows": [
                {
                    "loss": w.loss,
                    "gradients": {n: None if g is None else g.tolist() for n, g in w.gradients.items()},
                    "versions_before": w.versions_before,
                    "versions_after": w.versions_after,
                    "shares_memory": w.shares_memory,
                }
                for w in o.windows
            ],
        }

    told: dict[str, Any] = {
        "change": r.variant.change,
        "settings": asdict(r.variant.experiment),
        "numpy": outcome(r.numpy, r.numpy.reads),
        "torch": outcome(r.torch, None),  # PyTorch does not tell what it reads
        "differences": r.differences,
    }
    if r.name in SILENT:
        told["errors_of_the_gradient"] = r.errors_of_the_gradient
    return told


def _heading(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _wrap(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
