"""The usual mistakes in a tape: what is added up, in which order, what is cut, kept and counted."""

import pytest

TAPE, TENSOR, WINDOW = "numpy_rnn.tape", "numpy_rnn.tensor", "numpy_rnn.modules.window"

# Which backward is refused: the check forgotten, late by one, or made where nothing is read.
RULES = [
    pytest.param(TAPE, "Saved.read", [("self._counter.value != self.version", "False")], id="versions-not-checked"),
    pytest.param(
        TAPE,
        "Saved.read",
        [("self._counter.value != self.version", "self._counter.value > self.version + 1")],
        id="versions-checked-late-by-one",
    ),
    pytest.param(
        WINDOW,
        "Part.backward",
        [("self.saved_w_hh.read() if more_steps else None", "self.saved_w_hh.read()")],
        id="w-hh-read-for-nothing",
    ),
    pytest.param(
        WINDOW, "Part.backward", [('if not more_steps and "dh_0" in wanted:', "if False:")], id="w-hh-not-read-for-dh-0"
    ),
    pytest.param(
        WINDOW,
        "Part.backward",
        [('self.saved_w_ih.read() if again or "dx" in wanted else None', "self.saved_w_ih.read()")],
        id="w-ih-read-for-nothing",
    ),
]

# Not tried: the gradients of two leaves exchanged. Of an RNN's only the two biases have one shape, and they have one
# gradient; the GRU's table has it.
MISTAKES = [
    pytest.param(
        TENSOR,
        "Tensor._accumulate",
        [("self.grad.data += gradient", "self.grad.data[...] = gradient")],
        id="grad-assigned-not-added",
    ),
    pytest.param(
        TAPE,
        "Walk.give",
        [
            (
                "self.leaves[to] = gradient if before is None else np.add(before, gradient, out=before)",
                "self.leaves[to] = gradient",
            )
        ],
        id="leaf-assigned-not-added",
    ),
    pytest.param(
        TAPE,
        "Walk.give",
        [
            (
                "slots[output] = gradient if before is None else np.add(before, gradient, out=before)",
                "slots[output] = gradient",
            )
        ],
        id="upstream-assigned-not-added",
    ),
    pytest.param(
        TAPE,
        "Walk.run",
        [("self.give(to, gradient)", "self.give(to, gradient.copy()), self.give(to, gradient)")],
        id="gradient-given-twice",
    ),
    pytest.param(TAPE, "Walk.give", [("(-node.order, node)", "(node.order, node)")], id="oldest-call-first"),
    pytest.param(TENSOR, "_upstream", [("return array.copy()", "return array")], id="callers-upstream-written-into"),
    pytest.param(
        TENSOR,
        "Tensor.__add__",
        [("[d_output, d_output.copy()]", "[d_output, d_output]")],
        id="both-terms-of-a-sum-share-their-gradient",
    ),
    pytest.param(
        TENSOR, "Tensor.__add__", [("[d_output, d_output.copy()]", "[d_output, None]")], id="second-term-of-a-sum-cut"
    ),
    pytest.param(
        TENSOR,
        "Tensor.__getitem__",
        [("np.add.at(d_input, index, d_output)", "d_input[index] = d_output")],
        id="repeated-index-assigned-not-added",
    ),
    pytest.param(
        TENSOR,
        "Tensor.clone",
        [
            (
                '"clone", [self.data.copy()], [self], lambda d_output: [d_output]',
                '"clone", [self.data.copy()], [self], lambda d_output: [None]',
            )
        ],
        id="clone-cuts",
    ),
    pytest.param(TENSOR, "Tensor.detach", [("return self._share(self.data)", "return self")], id="detach-does-not-cut"),
    pytest.param(
        TENSOR, "Tensor._share", [("tensor._counter = self._counter", "pass")], id="detached-alias-counts-alone"
    ),
    pytest.param(TENSOR, "Tensor._bump_version", [("+= 1", "+= 0")], id="writes-not-counted"),
    pytest.param(
        "numpy_rnn.optim.optimizer",
        "Optimizer.step",
        [("range(self._writes + decayed)", "range(0)")],
        id="optimizer-not-counted",
    ),
    pytest.param(TAPE, "Walk.finish", [("if not retain_graph:", "if False:")], id="nothing-freed"),
    pytest.param(TAPE, "Walk.finish", [("if not retain_graph:", "if True:")], id="retain-graph-ignored"),
    pytest.param(
        TAPE,
        "_recording",
        [("mode.recording = mode.recording, value", "mode.recording = mode.recording, True")],
        id="no-grad-records",
    ),
]
