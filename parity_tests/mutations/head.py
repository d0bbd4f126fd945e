"""The usual mistakes in Embedding, Dropout and Linear: module, attribute and edits of each."""

import pytest

EMBEDDING, DROPOUT, LINEAR = (f"numpy_rnn.modules.{name}" for name in ("embedding", "dropout", "linear"))
ADDED = "np.add.at(d_weight, rows, d_output)"

MISTAKES = [
    pytest.param(
        EMBEDDING, "Embedding.forward", [(ADDED, "d_weight[rows] = d_output")], id="repeated-symbol-assigned-not-added"
    ),
    pytest.param(
        EMBEDDING,
        "Embedding.forward",
        [(ADDED, f"{ADDED}; d_weight /= np.maximum(np.bincount(rows.ravel(), minlength=len(d_weight)), 1)[:, None]")],
        id="repeated-symbol-mean-for-sum",
    ),
    pytest.param(
        EMBEDDING, "Embedding.forward", [("d_weight[self.padding_idx] = 0", "pass")], id="padding-symbol-learns"
    ),
    pytest.param(
        EMBEDDING,
        "Embedding.forward",
        [("d_weight[self.padding_idx] = 0", "d_weight[-1] = 0")],
        id="last-symbol-frozen",
    ),
    pytest.param(
        DROPOUT, "Dropout.forward", [("d_output * kept.read()", "d_output * 1")], id="dropout-not-in-the-backward"
    ),
    pytest.param(
        DROPOUT,
        "Dropout.forward",
        [("d_output * kept.read()", "d_output * (kept.read() > 0)")],
        id="dropout-not-scaled-back",
    ),
    pytest.param(LINEAR, "Linear.forward", [("dy.sum(axis=0)", "dy.mean(axis=0)")], id="linear-bias-mean-for-sum"),
    pytest.param(LINEAR, "Linear.forward", [("dy.sum(axis=0)", "dy[-1]")], id="linear-bias-of-the-last-row"),
    pytest.param(LINEAR, "Linear.forward", [("y += self.bias.data", "pass")], id="linear-without-its-bias"),
    pytest.param(
        LINEAR,
        "Linear.forward",
        [("dy.T @ saved_x.read()", "dy.T @ saved_x.read() / len(dy)")],
        id="linear-mean-over-rows",
    ),
    pytest.param(
        LINEAR, "Linear.forward", [("(dy @ saved_weight.read())", "(y @ saved_weight.read())")], id="linear-y-for-dy"
    ),
]
