"""The usual mistakes in a hand-written backward of the vanilla RNN, as edits of numpy_rnn/cells/rnn.py."""

import pytest

CARRY = "dh_t += up"
UPSTREAM = "else dh.reshape(N, H)"
PREVIOUS = "dz.T @ steps.previous(h_0, h)"
LOCAL = "np.subtract(1, np.square(h[block.rows], out=slope), out=slope)"
DW_IH = "dz.T @ x.reshape(N, x.shape[-1])"
RECURSION = "np.dot(dz_t, w_hh, out=dh_t)"

# Name, edits, and what the scalar case then gives for the gradients that are wrong.
MISTAKES = [
    pytest.param([(CARRY, "dh_t[...] = up")], {"dw_hh": 1.381220589, "dh_0": 0.423732744}, id="nothing-carried"),
    pytest.param(
        [(UPSTREAM, f"{UPSTREAM} * (np.arange(N) >= N - steps.B)[:, None]")],
        {"dw_hh": -0.634332101},
        id="only-the-carry",
    ),
    pytest.param(
        [(PREVIOUS, "dz.T @ steps.previous(h[steps.last], h)")], {"dw_hh": 1.263980842}, id="h-wraps-round-at-t-0"
    ),
    pytest.param([(PREVIOUS, "dz.T @ h")], {"dw_hh": 0.589579372}, id="h-t-for-h-t-minus-1"),
    pytest.param([(PREVIOUS, "dz.T @ steps.previous(0 * h_0, h)")], {"dw_hh": 0.787936107}, id="h-0-taken-as-zero"),
    pytest.param(
        [(LOCAL, f"np.reciprocal({LOCAL}, out=slope)")],
        {"db_ih": 3.248387055, "db_hh": 3.248387055},
        id="1-over-1-h2",
    ),
    pytest.param(
        [(LOCAL, "np.subtract(1, np.square(steps.previous(h_0, h)[block.rows], out=slope), out=slope)")],
        {"dw_ih": 0.245494681},
        id="derivative-at-h-t-minus-1",
    ),
    pytest.param(
        [
            (DW_IH, "dz[: steps.B].T @ x.reshape(N, x.shape[-1])[: steps.B]"),
            (PREVIOUS, "dz[: steps.B].T @ h_0"),
        ],
        {"dw_ih": 1.090290098, "dw_hh": 0.327087029},
        id="assigned-not-added-over-time",
    ),
    pytest.param([(RECURSION, "dh_t[...] = dz_t")], {"dh_0": 1.146574844}, id="carry-without-w-hh"),
]
