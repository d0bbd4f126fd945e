"""The article's loop, and the ways people change it, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch_rnn.inplace.experiment import Experiment

ARTICLE = Experiment()


@dataclass(frozen=True)
class Variant:
    """One row of the story: what is changed in the article's loop, in the words of the loop itself."""

    change: str
    experiment: Experiment


def _changed(change: str, **settings: object) -> Variant:
    return Variant(change, replace(ARTICLE, **settings))  # type: ignore[arg-type]


VARIANTS: dict[str, Variant] = {
    "article": Variant("the loop as it stands", ARTICLE),
    # The decisive experiments.
    "all-but-weight-hh": _changed("the update writes all parameters but weight_hh", updates_but="weight_hh"),
    "only-weight-hh": _changed("the update writes weight_hh only", updates_only="weight_hh"),
    # What people do to the state.
    "intermediate": _changed("mid = h_next; h = mid", carry="intermediate"),
    "clone": _changed("h = h_next.clone()", carry="clone"),
    "detach-dropped": _changed("h_next.detach() on a line of its own", carry="detach dropped"),
    "detach": _changed("h = h_next.detach()", carry="detach"),
    "data": _changed("h = h_next.data", carry="data"),
    "reset-rows": _changed(
        "detach, then h[:, 0] = 0 before a backward that reads h_next",
        carry="reset rows",
        head=True,
        loss_reads="h_n",
        hidden_size=2,
        batch=3,
    ),
    # What people do to the loop.
    "no-retain-graph": _changed("no retain_graph=True", retain_graph=False),
    "no-step": _changed("no optimizer.step()", update="none"),
    "lr-0": _changed("lr = 0", update="lr 0"),
    "no-grad-write": _changed("p.add_(p.grad, alpha=-lr) inside no_grad()", update="no_grad"),
    "running-loss": _changed(
        "total = total + loss; total.backward(); and detach", losses="running", carry="detach", head=True
    ),
    "one-update": _changed("one backward and one step after all five windows", losses="total", windows_per_step=5),
    # What moves the failure.
    "two-steps": _changed("windows of two steps", window=2),
    "two-layers": _changed("two layers", num_layers=2),
    "two-directions": _changed("two directions", bidirectional=True),
    "learnt-state": _changed("h_0 requires a gradient", learn_state=True),
    "learnt-input": _changed("x requires a gradient", learn_input=True),
    "sgd": _changed("SGD for Adadelta", optimizer="sgd"),
    # The other cells. An LSTM carries two states.
    "gru": _changed("a GRU", cell="gru"),
    "lstm": _changed("an LSTM", cell="lstm"),
    "lstm-detach": _changed("an LSTM, both h and c detached", cell="lstm", carry="detach"),
    "lstm-h-only": _changed("an LSTM, h detached but not c", cell="lstm", carry="detach h only"),
    "lstm-h-only-two": _changed(
        "an LSTM, h detached but not c, windows of two", cell="lstm", carry="detach h only", window=2
    ),
    "lstm-c-only": _changed("an LSTM, c detached but not h", cell="lstm", carry="detach c only"),
    # What makes it silent. The network is larger, so that the gradients are not all in saturation.
    **{
        name: _changed(change, update=update, hidden_size=3, batch=2, data="random", dtype="float64", lr=0.1)
        for name, change, update in (
            ("fused", "SGD(..., fused=True)", "fused"),
            ("data-write", "p.data -= lr * p.grad", "data"),
            ("view-write", "p.detach().numpy()[...] -= lr * p.grad.numpy()", "view"),
        )
    },
}
SILENT = ("fused", "data-write", "view-write")
DECISIVE = ("all-but-weight-hh", "only-weight-hh")
