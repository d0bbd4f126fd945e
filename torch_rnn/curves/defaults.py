"""What a run is where nobody said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy_rnn.tasks import Task

DEFAULTS: dict[str, Any] = {
    "cell": "rnn",
    "hidden": 16,
    "layers": 1,
    "window": 20,
    "carry": "detach",
    "optimizer": "adadelta",
    "epochs": 30,
    "dtype": "float64",
    "seed": 0,
}
LEARNING_RATES = {
    "adadelta": 1.0,
    "sgd": 0.05,
    "adagrad": 0.05,
    "rmsprop": 0.003,
    "asgd": 0.05,
    **dict.fromkeys(("adam", "adamw", "nadam", "radam", "adamax"), 0.01),
}


def origin(task: Task) -> dict[str, Any]:
    """Return the settings that say where a task's data are from.

    >>> from numpy_rnn.tasks import load
    >>> origin(load("sine"))
    {'task': 'sine'}
    """
    if "task" in task.source:
        return dict(task.source)
    return {"task": None if task.source else task.name, **task.source, "digest": task.digest()}


def complete(given: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Return the settings ``given`` and, for those left out, the task's own default, else the general one.

    >>> from numpy_rnn.tasks import load
    >>> settings = complete({"window": 2}, load("article"))
    >>> settings["window"], settings["hidden"], settings["optimizer"], settings["lr"]
    (2, 1, 'adadelta', 0.01)
    """
    own = dict(task.defaults)
    if given.get("optimizer") not in (None, own.get("optimizer")):
        own.pop("lr", None)  # a learning rate is meant for one optimizer
    settings = {**DEFAULTS, **own, **given}
    return {"lr": LEARNING_RATES.get(settings["optimizer"]), **settings}  # an unknown one is refused later
