"""The usual mistakes in a hand-written backward of the vanilla RNN, as edits of numpy_rnn/cells/rnn.py."""

import pytest

CARRY = "dh_t += dh[t]"
FIRST_STEP = "dz[first].T @ h_0 + "
LATER_STEPS = "dz[later].T @ h[steps.before]"
LOCAL = "dh_t * (1 - h[t] * h[t])"
DW_IH = "dw_ih = dz.T @ x.reshape(N, x.shape[-1])"
RECURSION = "np.matmul(dz[t], w_hh, out=dh_t)"

# Name, edits, and what the scalar case then gives for the gradients that are wrong.
MISTAKES = [
    pytest.param([(CARRY, "dh_t[...] = dh[t]")], {"dw_hh": 1.381220589, "dh_0": 0.423732744}, id="nothing-carried"),
    pytest.param([(CARRY, "dh_t += dh[t] * (t.stop == N)")], {"dw_hh": -0.634332101}, id="only-the-carry"),
    pytest.param([(FIRST_STEP, "dz[first].T @ h[steps.last] + ")], {"dw_hh": 1.263980842}, id="h-wraps-round-at-t-0"),
    pytest.param(
        [(FIRST_STEP, ""), (LATER_STEPS, "dz.T @ h")],
        {"dw_hh": 0.589579372},
        id="h-t-for-h-t-minus-1",
    ),
    pytest.param([(FIRST_STEP, "")], {"dw_hh": 0.787936107}, id="h-0-taken-as-zero"),
    pytest.param([(LOCAL, "dh_t / (1 - h[t] * h[t])")], {"db_ih": 3.248387055, "db_hh": 3.248387055}, id="1-over-1-h2"),
    pytest.param(
        [(LOCAL, "dh_t * (1 - (h_0 if before is None else h[before]) ** 2)")],
        {"dw_ih": 0.245494681},
        id="derivative-at-h-t-minus-1",
    ),
    pytest.param(
        [
            (DW_IH, "dw_ih = dz[first].T @ x.reshape(N, x.shape[-1])[first]"),
            (FIRST_STEP, "dz[first].T @ h_0"),
            (LATER_STEPS, ""),
        ],
        {"dw_ih": 1.090290098, "dw_hh": 0.327087029},
        id="assigned-not-added-over-time",
    ),
    pytest.param([(RECURSION, "dh_t[...] = dz[t]")], {"dh_0": 1.146574844}, id="carry-without-w-hh"),
]
