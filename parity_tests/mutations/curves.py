"""Bugs of whole training runs, planted on the NumPy side, and where a replay must find each.

Each is made by a subclass or a wrapper, so that it stands whatever becomes of the source of the right thing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import numpy_rnn
from numpy_rnn.tensor import record
from numpy_rnn.training import NUMPY, Backend, Loop
from torch_rnn.curves.runs import NUMPY_SIDE, TORCH_SIDE, Side


class AdamEpsInside(numpy_rnn.Adam):
    """eps under the root, where it acts like its own root."""

    def _update(self, p: Any, g: Any, state: Any, group: Any) -> None:
        filled1, filled2 = self._filled(state, group)
        self._moments(state["exp_avg"], state["exp_avg_sq"], g, group, np.empty_like(p))
        p += -group["lr"] / filled1 * state["exp_avg"] / np.sqrt(state["exp_avg_sq"] / filled2 + group["eps"])


class AdadeltaEpsOutside(numpy_rnn.Adadelta):
    """eps outside both roots."""

    def _update(self, p: Any, g: Any, state: Any, group: Any) -> None:
        rho, eps, square, acc = group["rho"], group["eps"], state["square_avg"], state["acc_delta"]
        state["step"] += 1
        square[...] = rho * square + (1 - rho) * g * g
        delta = (np.sqrt(acc) + eps) / (np.sqrt(square) + eps) * g
        acc[...] = rho * acc + (1 - rho) * delta * delta
        p += -group["lr"] * delta


class AdamFloat32Averages(numpy_rnn.Adam):
    """Both averages kept in float32."""

    def _start(self, p: Any, group: Any) -> Any:
        return {"step": 0, "exp_avg": np.zeros(p.shape, np.float32), "exp_avg_sq": np.zeros(p.shape, np.float32)}


class AdamUncounted(numpy_rnn.Adam):
    """Writes behind the back of the versions, as into ``.data``."""

    _writes = 0


class NeverReset(Loop):
    def enter(self, group: int) -> Any:
        return self.state


class HiddenDetachedAlone(Loop):
    def leave(self, state: Any) -> Any:
        h, c = state
        return h.detach(), c


class Unweighted(Loop):
    def shares(self, lengths: Sequence[int]) -> list[float]:
        return [1 / len(lengths)] * len(lengths)


class OneBias(Loop):
    """Both biases kept as one: their sum moves by one update instead of two."""

    def __init__(self, model: Any, *args: Any, **options: Any) -> None:
        for name, parameter in model.named_parameters():
            if "bias_hh" in name:
                parameter.requires_grad_(False)
        super().__init__(model, *args, **options)


def clip_each(parameters: Any, max_norm: float) -> float:
    """Clip every gradient by its own norm."""
    parameters = list(parameters)
    total = NUMPY.total_norm(parameters)
    for parameter in parameters:
        numpy_rnn.clip_grad_norm_(parameter, max_norm)
    return total


def mean_over_the_batch_alone(output: Any, target: Any) -> Any:
    """Divide by B alone what should be divided by T B K."""
    loss = numpy_rnn.mse_loss(output, target)
    factor = output.data.size / output.shape[1]
    return record("scaled", [loss.data * factor], [loss], lambda d_output: [d_output * factor])[0]


def retaining(losses: Any, gradients: Any) -> None:
    """Keep the graph, without which a second walk through an undetached c would be refused."""
    numpy_rnn.backward(losses, gradients, retain_graph=True)


def with_optimizer(name: str, wrong: Callable[..., Any]) -> Backend:
    return dataclasses.replace(NUMPY, optimizers={**NUMPY.optimizers, name: wrong})


@dataclass(frozen=True)
class Bug:
    """A wrong NumPy side, settings on which it acts, and what the replay must name."""

    name: str
    side: Side
    settings: dict[str, Any]
    stage: str
    tensor: str  # a part of its name

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.side, TORCH_SIDE


def bug(name: str, stage: str, tensor: str, backend: Backend = NUMPY, loop: type[Loop] = Loop, **settings: Any) -> Bug:
    return Bug(name, dataclasses.replace(NUMPY_SIDE, backend=backend, loop=loop), settings, stage, tensor)


ADAM: dict[str, Any] = {"optimizer": "adam", "lr": 0.01}
EPS = with_optimizer("adam", lambda parameters, lr: numpy_rnn.Adam(parameters, lr=lr, eps=2e-8))

BUGS = [
    bug("Adam's eps inside the root", "update", "change of", with_optimizer("adam", AdamEpsInside), **ADAM),
    bug(
        "Adadelta's eps outside the root",
        "update",
        "",
        with_optimizer("adadelta", AdadeltaEpsOutside),
        optimizer="adadelta",
        lr=1.0,
    ),
    bug("one bias for two", "gradients", "bias_hh", loop=OneBias, **ADAM),
    bug(
        "mean over the wrong axis",
        "loss",
        "loss",
        dataclasses.replace(NUMPY, mse_loss=mean_over_the_batch_alone),
        **ADAM,
    ),
    bug("clip per tensor", "clip", "d ", dataclasses.replace(NUMPY, clip_grad_norm_=clip_each), clip=0.1, **ADAM),
    bug(
        "h detached but not c",
        "state out",
        "c.requires_grad",
        dataclasses.replace(with_optimizer("adam", AdamUncounted), backward=retaining),
        HiddenDetachedAlone,
        cell="lstm",
        **ADAM,
    ),
    bug("state not reset at the epoch", "state in", "h", loop=NeverReset, **ADAM),
    bug("last short window unweighted", "loss", "loss", loop=Unweighted, carry="full", **ADAM),
    bug(
        "float32 accumulators in a float64 run",
        "update",
        "exp_avg",
        with_optimizer("adam", AdamFloat32Averages),
        **ADAM,
    ),
    bug("eps 2e-8 for 1e-8", "update", "change of", EPS, **ADAM),
]
