"""The usual mistakes in a hand-written backward of the GRU, as edits of numpy_rnn/cells/gru.py."""

import pytest

LOOP = "for dh_t, da_t, z_t in zip(dhs[::-1], d[::-1], z[::-1], strict=True):"
DA = "da_t *= dh_t"
CARRY = "dh_next += np.dot(w_hh_t, da_t.reshape(3 * H, block.B), out=part)"
DIRECT = "np.multiply(dh_t, z_t, out=dh_next)"
H_PREVIOUS = "h_previous = steps.previous(saved.h_0, h)"
DN = "into_n = (1 - z) * (1 - n * n)"  # what dh is multiplied by to give dn, as the next three give dr, dz and ds
DR = "d[:, 0] = into_n * s * r * (1 - r)"
DZ = "d[:, 1] = (block.columns(h_previous) - n) * z * (1 - z)"
DS = "d[:, 2] = into_n * r"
DW_HH = "dw_hh = steps.product(da, h_previous)"
DB_HH = "db_hh = da.sum(axis=1)"
DW_IH = "dw_ih = steps.product(dz, saved.x.reshape(N, saved.x.shape[-1]))"
DB_IH = "db_ih = dz.sum(axis=1)"

# Edits, and what the worked case of derivations/07-gru.md then gives for some of the gradients that are wrong.
MISTAKES = [
    pytest.param(
        [
            (H_PREVIOUS, f"{H_PREVIOUS}; reset = h_previous.copy()"),
            (DR, "d[:, 0] = block.columns(h_previous) * r * (1 - r)"),
            (DS, "d[:, 2] = into_n; block.columns(reset)[...] *= r"),
            (LOOP, "for dh_t, da_t, z_t, r_t in zip(dhs[::-1], d[::-1], z[::-1], r[::-1], strict=True):"),
            (DA, "da_t[1:] *= dh_t; by_reset = w_hh_t[:, 2 * H :] @ da_t[2]; da_t[0] *= by_reset"),
            (CARRY, "dh_next += w_hh_t[:, : 2 * H] @ da_t[:2].reshape(2 * H, block.B) + r_t * by_reset"),
            (DW_HH, "dw_hh = np.concatenate([da[: 2 * H] @ h_previous, dn_input @ reset])"),
        ],
        {"db_hh": [0.069524452, 0.183189796, 0.594117345], "dh_0": [0.993168850]},
        id="reset-before-the-product",
    ),
    pytest.param(
        [
            (DN, "into_n = z * (1 - n * n)"),
            (DZ, "d[:, 1] = (n - block.columns(h_previous)) * z * (1 - z)"),
            (DIRECT, "np.multiply(dh_t, 1 - z_t, out=dh_next)"),
        ],
        {"dw_hh": [0.077530675, -0.139241310, 0.160913162], "dh_0": [1.106477752]},
        id="z-for-1-minus-z",
    ),
    pytest.param([(DIRECT, "dh_next[...] = 0")], {"dh_0": [0.070354641]}, id="no-direct-path"),
    pytest.param(
        [(DR, DR.replace("* s *", "* block.columns(h_previous) *"))],
        {"dw_hh": [0.048370932, 0.144172652, 0.180372592]},
        id="dr-without-w-hn",
    ),
    pytest.param(
        [(DB_HH, "db_hh = np.concatenate([da[: 2 * H], dn_input]).sum(axis=1)")],
        {"db_hh": [0.124611028, 0.187656365, 0.597852193]},
        id="db-hn-without-r",
    ),
    pytest.param(
        [(DS, "d[:, 2] = into_n")],
        {"dw_hh": [0.070035056, 0.125246381, 0.357894401], "dh_0": [1.160648864]},
        id="one-delta-for-both-sides",
    ),
    pytest.param(
        [(DR, DR.replace("d[:, 0]", "d[:, 1]")), (DZ, DZ.replace("d[:, 1]", "d[:, 0]"))],
        {"dw_hh": [0.137912179, 0.064789749, 0.153299667], "dh_0": [1.094572937]},
        id="gates-in-the-order-z-r-n",
    ),
    pytest.param(
        [(DZ, DZ.replace("h_previous", "h"))],
        {"dw_hh": [0.071647401, 0.096443389, 0.173492202]},
        id="h-t-for-h-t-minus-1",
    ),
    pytest.param(
        [(DS, f"{DS}; d[0] = into_n[0] = 0"), (LOOP, LOOP.replace("[::-1]", "[:0:-1]"))],
        {"dw_hh": [0.052489108, 0.220996474, 0.074338129], "dh_0": [1.181176082]},
        id="step-1-never-visited",
    ),
    pytest.param(
        [
            (DW_HH, "dw_hh = da[:, : steps.B] @ saved.h_0"),
            (DB_HH, "db_hh = da[:, : steps.B].sum(axis=1)"),
            (DW_IH, "dw_ih = dz[:, : steps.B] @ saved.x.reshape(N, saved.x.shape[-1])[: steps.B]"),
            (DB_IH, "db_ih = dz[:, : steps.B].sum(axis=1)"),
        ],
        {"dw_hh": [0.021548331, -0.074756053, 0.107117837], "db_ih": [0.071827768, -0.249186843, 0.520737660]},
        id="assigned-not-added-over-time",
    ),
]

# Edits of the forward, which then is that of another cell.
FORWARD_MISTAKES = [
    pytest.param(
        [("n += np.multiply(r, s_t, out=part)", "n += w_hh[2 * H :] @ (r * h_t) + b")], id="reset-before-the-product"
    ),
    pytest.param(
        [("h_t = np.add(n, part, out=h_next)", "h_t = np.subtract(h_t, part, out=h_next)")], id="z-for-1-minus-z"
    ),
    pytest.param([("open_gates(rz)", "np.multiply(r, 2, out=r); open_gates(rz)")], id="sigmoid-of-2x"),
]

# These show in a window of several blocks only: the function, and the edits.
BLOCK_MISTAKES = [
    pytest.param("forward", [("= h_t[:, : block.B], b_hn", "= h_0.T[:, : block.B], b_hn")], id="state-lost"),
    pytest.param(
        "backward", [("dh_waiting[:, : block.B] = dh_next  #", "dh_waiting[:, : block.B] = 0  #")], id="gradient-lost"
    ),
    pytest.param(
        "backward", [("in reversed(list(zip(blocks, saved", "in list((zip(blocks, saved")], id="first-block-first"
    ),
]

# The function, and the edits; no chapter works their numbers.
MORE_MISTAKES = [
    pytest.param(
        "backward",
        [("else dh.reshape(N, H)", "else dh.reshape(N, H) * (np.arange(N) >= N - steps.B)[:, None]")],
        id="only-the-carry",
    ),
    pytest.param(
        "backward", [(H_PREVIOUS, H_PREVIOUS.replace("saved.h_0", "h[steps.last]"))], id="h-wraps-round-at-t-0"
    ),
    pytest.param("backward", [(CARRY, "pass")], id="direct-path-alone"),
    pytest.param("backward", [('w_hh.T.copy("C")', "np.concatenate(np.split(w_hh, 3), axis=1)")], id="w-hh-transposed"),
    pytest.param("backward", [(LOOP, LOOP.replace("[::-1]", ""))], id="first-step-first"),
    pytest.param("backward", [("dh_t += dh_next", "dh_t += 0")], id="nothing-carried"),
    pytest.param("backward", [(DW_HH, DW_HH.replace("=", "= w_hh +"))], id="sum-starts-from-the-weights"),
    pytest.param("backward", [(H_PREVIOUS, H_PREVIOUS.replace("saved.h_0", "0 * saved.h_0"))], id="h-0-taken-as-zero"),
    pytest.param("backward", [("else dh_n.T", "else 0 * dh_n.T")], id="dh-n-dropped"),
    pytest.param("backward", [(DR, DR.replace("r * (1 - r)", "1"))], id="reset-gate-without-derivative"),
    pytest.param("backward", [(DZ, DZ.replace("z * (1 - z)", "z"))], id="z-for-its-derivative"),
    pytest.param("backward", [(DN, DN.replace("n * n", "np.tanh(n) ** 2"))], id="tanh-applied-twice"),
    pytest.param("backward", [(DN, "into_n = 1 - n * n")], id="dn-without-1-minus-z"),
    pytest.param("backward", [(DB_IH, f"{DB_IH} / steps.B")], id="bias-mean-over-the-batch"),
    pytest.param(
        "backward",
        [(DB_IH, "db_ih = dz[[*range(H, 2 * H), *range(2 * H, 3 * H), *range(H)]].sum(axis=1)")],
        id="biases-of-the-gates-exchanged",
    ),
    pytest.param("backward", [("dw_hh, db_ih, db_hh)", "dw_hh, db_hh, db_ih)")], id="two-biases-exchanged"),
    pytest.param(
        "forward", [("h_t = np.add(n, part, out=h_next)", "np.add(n, part, out=h_next)")], id="state-not-carried"
    ),
    pytest.param(
        "forward",
        [("bias[: 2 * H] += b_hh[: 2 * H]", "bias += b_hh"), ("b_hn += b_hh", "b_hn += 0 * b_hh")],
        id="two-biases-of-n-joined",
    ),
    pytest.param(
        "forward",
        [("else b_ih  #", "else b_ih[[*range(H, 2 * H), *range(H), *range(2 * H, 3 * H)]]  #")],
        id="biases-in-the-order-z-r-n",
    ),
    pytest.param("forward", [("+= b_hh[2 * H :, None]", "+= b_hh[H : 2 * H, None]")], id="b-hn-of-another-gate"),
]
