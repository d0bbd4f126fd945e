"""The usual mistakes in a hand-written backward of the vanilla RNN, as edits of numpy_rnn/cells/rnn.py."""

import pytest

CARRY = "dh_t += up"
UPSTREAM = "else dh.reshape(N, H)"
PREVIOUS = "steps.product(dz.T, steps.previous(h_0, h))"
LOCAL = "np.subtract(1, np.square(h[block.rows], out=slope), out=slope)"
DW_IH = "steps.product(dz.T, x.reshape(N, x.shape[-1]))"
DH_0 = "dh_0 = dh_waiting if"
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

# The function, and the edits; no chapter works their numbers.
MORE_MISTAKES = [
    pytest.param("backward", [(RECURSION, "np.dot(dz_t, w_hh.T, out=dh_t)")], id="w-hh-transposed"),
    pytest.param(
        "backward",
        [("rows)[::-1] for rows", "rows)[:0:-1] for rows"), (DH_0, f"dz[: steps.B] = 0; {DH_0}")],
        id="first-step-skipped",
    ),
    pytest.param("backward", [("rows)[::-1] for rows", "rows) for rows")], id="first-step-first"),
    pytest.param("backward", [(PREVIOUS, f"w_hh + {PREVIOUS}")], id="sum-starts-from-the-weights"),
    pytest.param(
        "backward", [(LOCAL, LOCAL.replace("np.square(h[block.rows], out=slope)", "h[block.rows]"))], id="1-h"
    ),
    pytest.param(
        "backward",
        [(LOCAL, LOCAL.replace("np.square(h[block.rows], out=slope)", "np.tanh(h[block.rows]) ** 2"))],
        id="tanh-applied-twice",
    ),
    pytest.param("backward", [("dz_t *= dh_t", "dz_t[...] = dh_t")], id="no-derivative-of-tanh"),
    pytest.param("backward", [("else dh_n.astype", "else 0 * dh_n.astype")], id="dh-n-dropped"),
    pytest.param(
        "backward", [(CARRY, f"{CARRY} + (0 if dh_n is None else dh_n[: block.B])")], id="dh-n-added-at-every-step"
    ),
    pytest.param("backward", [(DH_0, "dh_0 = 0 * dh_waiting if")], id="dh-0-zero"),
    pytest.param("backward", [("(dz @ w_ih)", "(dz @ w_ih.T)")], id="w-ih-transposed-in-dx"),
    pytest.param(
        "backward",
        [(f"{DW_IH} if", f"{DW_IH} / steps.T if"), (f"{PREVIOUS} if", f"{PREVIOUS} / steps.T if")],
        id="mean-over-time",
    ),
    pytest.param(
        "backward",
        [(f"{DW_IH} if", f"{DW_IH} / steps.B if"), (f"{PREVIOUS} if", f"{PREVIOUS} / steps.B if")],
        id="mean-over-the-batch",
    ),
    pytest.param(
        "backward", [("db_ih = sum_of(dz)", "db_ih = sum_of(dz[-steps.B :])")], id="bias-of-the-last-step-alone"
    ),
    pytest.param("backward", [("db_hh = sum_of", "db_hh = 0 * sum_of")], id="two-biases-taken-as-one"),
    pytest.param("forward", [("z += b_hh", "pass")], id="b-hh-left-out"),
    pytest.param("forward", [("z += b_hh", "z += b_ih")], id="b-ih-taken-twice"),
    pytest.param("forward", [("np.ascontiguousarray(w_hh.T)", "w_hh")], id="w-hh-transposed-in-the-forward"),
    pytest.param("forward", [("h_t = z_t\n", "h_t = h_0[: block.B]\n")], id="state-not-carried"),
    pytest.param(
        "forward", [("np.tanh(z_t, out=z_t)", "np.tanh(np.tanh(z_t), out=z_t)")], id="tanh-twice-in-the-forward"
    ),
]

# These show with relu only.
RELU_MISTAKES = [
    pytest.param("backward", [("h_t <= 0", "h_t < 0")], id="relu-never-closes"),
    pytest.param("backward", [("np.where(h_t <= 0, 0, dh_t)", "dh_t * h_t")], id="relu-for-its-derivative"),
    pytest.param("forward", [("np.maximum(z_t, 0, out=z_t)", "np.maximum(z_t, 0.01 * z_t, out=z_t)")], id="leaky-relu"),
]
