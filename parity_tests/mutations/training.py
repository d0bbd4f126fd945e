"""The usual mistakes in the training loop's carry, and in modules of single steps."""

import pytest

# The carry, the method or function of numpy_rnn/training.py, and the edits.
CARRY = [
    pytest.param(
        "detach",
        "Loop.enter",
        [("None if group == 0 or self.carry", "None if self.carry")],
        id="state-kept-at-an-epochs-start",
    ),
    pytest.param(
        "detach",
        "_detach",
        [("tuple(_detach(s) for s in state)", "(_detach(state[0]), *state[1:])")],
        id="h-detached-c-not",
    ),
    pytest.param("detach", "Loop.leave", [("return _detach(state)", "return state")], id="state-not-detached"),
    pytest.param("detach", "Loop.enter", [('self.carry == "reset"', "True")], id="detach-taken-as-reset"),
    pytest.param("reset", "Loop.enter", [('self.carry == "reset"', "False")], id="reset-taken-as-detach"),
    pytest.param(
        "full", "Loop.shares", [("[length / sum(lengths)", "[1 / len(lengths)")], id="short-last-window-counts-in-full"
    ),
    pytest.param("full", "Loop.shares", [("[length / sum(lengths)", "[1.0")], id="losses-added-not-averaged"),
    pytest.param(
        "full",
        "Loop.step",
        [("self.call(self.model, input, state,", "self.call(self.model, input, None,")],
        id="each-window-from-zeros",
    ),
    pytest.param(
        "detach", "Loop.step", [("self.optimizer.zero_grad()", "pass")], id="gradients-of-the-window-before-kept"
    ),
]

# The cell, the method of numpy_rnn/modules/step_cells.py, and the edits.
FORWARD = "_StepCell.forward"
GIVEN = "[np.zeros((B, H), self.dtype) if s is None else s.data.reshape(B, H) for s in states]"
STEP_CELLS = [
    pytest.param(
        "rnn", FORWARD, [(GIVEN, "[np.zeros((B, H), self.dtype) for s in states]")], id="state-of-a-step-ignored"
    ),
    pytest.param(
        "rnn-relu",
        "RNNCell._options",
        [('return {"nonlinearity": self.nonlinearity}', "return {}")],
        id="relu-cell-with-tanh",
    ),
    pytest.param(
        "rnn",
        FORWARD,
        [("[None if d is None else d.reshape(s or d.shape)", "[None if d is None else 0 * d.reshape(s or d.shape)")],
        id="nothing-flows-back-to-the-state",
    ),
    pytest.param(
        "lstm",
        FORWARD,
        [("[None if d is None else d.reshape(B, H) for d in d_new]", "[d_new[0], None]")],
        id="dc-of-a-step-dropped",
    ),
    pytest.param(
        "lstm",
        FORWARD,
        [("for d, s in zip(rest, shapes", "for d, s in zip(rest[1::-1], shapes")],
        id="dh-and-dc-exchanged",
    ),
    pytest.param(
        "lstm", FORWARD, [(".copy() for state in new]", ".copy() for state in new[::-1]]")], id="h-and-c-exchanged"
    ),
    pytest.param(
        "gru",
        FORWARD,
        [("*rest[len(shapes) :][:4]]", "*rest[len(shapes) :][:2], *rest[len(shapes) + 2 :][1::-1]]")],
        id="biases-of-a-step-exchanged",
    ),
]
