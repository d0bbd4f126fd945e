"""The usual mistakes in a hand-written backward of the GRU, as edits of numpy_rnn/cells/gru.py."""

import pytest

CARRY = "dh_t += da[t] @ w_hh"
DIRECT = "dh_t *= z  #"
DN = "dn_input[t] = dh_t * (1 - z) * (1 - n * n)"
DR = "da[t, 0 * H : 1 * H] = dn_input[t] * s[t] * r * (1 - r)"
DZ = "da[t, 1 * H : 2 * H] = dh_t * (h_previous - n) * z * (1 - z)"
DS = "da[t, 2 * H : 3 * H] = dn_input[t] * r"
DW_HH = "dw_hh = da[first].T @ h_0 + da[later].T @ h[steps.before]"
DB_HH = "db_hh = da.sum(axis=0)"
DW_IH = "dw_ih = dz.T @ x.reshape(N, x.shape[-1])"
DB_IH = "db_ih = dz.sum(axis=0)"
EACH = "for t, B, before in reversed(steps.each):"

# Edits, and what the worked case of derivations/07-gru.md then gives for some of the gradients that are wrong.
MISTAKES = [
    pytest.param(
        [
            (DR, "da[t, :H] = (dn_input[t] @ w_hh[2 * H :]) * h_previous * r * (1 - r)"),
            (DS, "da[t, 2 * H :] = dn_input[t]"),
            (CARRY, "dh_t += da[t, : 2 * H] @ w_hh[: 2 * H] + r * (da[t, 2 * H :] @ w_hh[2 * H :])"),
            (
                DW_HH,
                f"{DW_HH}; dw_hh[2 * H :] = dn_input[first].T @ (gates[first, :H] * h_0) "
                "+ dn_input[later].T @ (gates[later, :H] * h[steps.before])",
            ),
        ],
        {"db_hh": [0.069524452, 0.183189796, 0.594117345], "dh_0": [0.993168850]},
        id="reset-before-the-product",
    ),
    pytest.param(
        [
            (DN, "dn_input[t] = dh_t * z * (1 - n * n)"),
            (DZ, "da[t, H : 2 * H] = dh_t * (n - h_previous) * z * (1 - z)"),
            (DIRECT, "dh_t *= 1 - z  #"),
        ],
        {"dw_hh": [0.077530675, -0.139241310, 0.160913162], "dh_0": [1.106477752]},
        id="z-for-1-minus-z",
    ),
    pytest.param([(DIRECT, "dh_t[...] = 0  #")], {"dh_0": [0.070354641]}, id="no-direct-path"),
    pytest.param(
        [(DR, "da[t, :H] = dn_input[t] * h_previous * r * (1 - r)")],
        {"dw_hh": [0.048370932, 0.144172652, 0.180372592]},
        id="dr-without-w-hn",
    ),
    pytest.param(
        [(DB_HH, "db_hh = np.concatenate([da[:, : 2 * H], dn_input], axis=1).sum(axis=0)")],
        {"db_hh": [0.124611028, 0.187656365, 0.597852193]},
        id="db-hn-without-r",
    ),
    pytest.param(
        [(DS, "da[t, 2 * H :] = dn_input[t]")],
        {"dw_hh": [0.070035056, 0.125246381, 0.357894401], "dh_0": [1.160648864]},
        id="one-delta-for-both-sides",
    ),
    pytest.param(
        [(DR, DR.replace("0 * H : 1 * H", "H : 2 * H")), (DZ, DZ.replace("1 * H : 2 * H", ":H"))],
        {"dw_hh": [0.137912179, 0.064789749, 0.153299667], "dh_0": [1.094572937]},
        id="gates-in-the-order-z-r-n",
    ),
    pytest.param(
        [(DZ, DZ.replace("h_previous", "h[t]"))],
        {"dw_hh": [0.071647401, 0.096443389, 0.173492202]},
        id="h-t-for-h-t-minus-1",
    ),
    pytest.param(
        [
            (EACH, "for t, B, before in reversed(steps.each[1:]):"),
            ("da = np.empty_like(gates)", "da = np.zeros_like(gates)"),
            ("dn_input = np.empty_like(s)", "dn_input = np.zeros_like(s)"),
        ],
        {"dw_hh": [0.052489108, 0.220996474, 0.074338129], "dh_0": [1.181176082]},
        id="step-1-never-visited",
    ),
    pytest.param(
        [
            (DW_HH, "dw_hh = da[first].T @ h_0"),
            (DB_HH, "db_hh = da[first].sum(axis=0)"),
            (DW_IH, "dw_ih = dz[first].T @ x.reshape(N, x.shape[-1])[first]"),
            (DB_IH, "db_ih = dz[first].sum(axis=0)"),
        ],
        {"dw_hh": [0.021548331, -0.074756053, 0.107117837], "db_ih": [0.071827768, -0.249186843, 0.520737660]},
        id="assigned-not-added-over-time",
    ),
]
