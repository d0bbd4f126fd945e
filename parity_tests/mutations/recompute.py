"""The usual mistakes where states are computed again during the backward: edits of numpy_rnn/modules/recompute.py."""

import pytest

STARTS = "starts.append([state[: part.B].copy() for state in now])"
ADDED = "[_sum(*pair) for pair in zip(rest, new_rest, strict=True)] if rest else new_rest"

# Not tried: the gradients of the final states not copied before they are written over. They are the tape's own copies,
# so that no caller can tell.
MISTAKES = [
    pytest.param("forward", [(STARTS, STARTS.replace(".copy()", ""))], id="starts-not-copied"),
    pytest.param(
        "forward",
        [(STARTS, STARTS.replace("in now", "in states_and_weights[: self.count]"))],
        id="every-segment-starts-from-h-0",
    ),
    pytest.param(
        "backward", [("(x[rows], *start,", "(x[rows], *starts[0],")], id="every-segment-computed-again-from-h-0"
    ),
    pytest.param("backward", [("reversed(list(zip(self", "list((zip(self")], id="first-segment-first"),
    pytest.param("backward", [(ADDED, "new_rest")], id="gradients-of-one-segment"),
    pytest.param("backward", [("d[: part.B] = new", "pass")], id="nothing-carried-between-segments"),
    pytest.param(
        "backward",
        [("w_hh, *biases, *w_hr, steps", "w_hh, None, None, *w_hr, steps")],
        id="computed-again-without-biases",
    ),
    pytest.param(
        "backward",
        [("dx[rows] = dx_part", "dx[rows][: part.B] = dx_part[: part.B]")],
        id="dx-of-each-segments-first-step",
    ),
    pytest.param(
        "segments",
        [
            (
                "yield Segment(slice(start, start + part.N), part)",
                "yield Segment(slice(max(start - 1, 0), max(start - 1, 0) + part.N), part)",
            )
        ],
        id="segments-a-row-early",
    ),
]
