"""Bugs of a cell as edits of the ports, and what ``rnn-parity vectors check`` must call each.

``CELL_BUGS`` has rows of: cell, case, name, file, function or None where it is several, edits.
"""

from typing import Any

DIN = "dh = dh + dout[t]"
LOOP = "reversed(range(len(x)))"
EMPTY = "dx: list = [None] * len(x)"
ZEROS = "dx: list = [0 * x_t for x_t in x]"
AFTER = "states[t + 1][0]"
START = "states, cache = [start], []"
# How each port writes what all have, so that one table serves the three.
DELTA = {"rnn": "dz", "lstm": "dz", "gru": "da"}
GATES = {"rnn": 1, "lstm": 4, "gru": 3}
BACK = {
    "rnn": 'dh = w["weight_hh"].T @ dz',
    "lstm": 'dh = w["weight_hh"].T @ dz',
    "gru": 'dh = dh * z + w["weight_hh"].T @ da',
}
FIRST = {"rnn": "dh = dh_n\n", "lstm": "dh, dc = dh_n, dc_n\n", "gru": "dh = dh_n\n"}
RETURN = {"rnn": "return dx, (dh,)", "lstm": "return dx, (dh, dc)", "gru": "return dx, (dh,)"}


def blockwise(cell: str, array: str, vector: str) -> str:
    """The product of a vector and each gate's block, transposed."""
    return f"np.concatenate([m.T @ {vector} for m in np.split({array}, {GATES[cell]})])"


def _shared(cell: str) -> list[Any]:
    d, back = DELTA[cell], BACK[cell]
    direct = "dh * z + " if cell == "gru" else ""
    outer = f'g["weight_hh"] += np.outer({d}, h_before)'
    input_delta = "du" if cell == "gru" else "dz"
    turned = f"sum(m @ v for m, v in zip(np.split(w['weight_hh'], {GATES[cell]}), np.split({d}, {GATES[cell]})))"
    forward_product = ('w["weight_hh"] @ h', blockwise(cell, 'w["weight_hh"]', "h"))
    first = FIRST[cell]
    sums = [
        (
            f'g["weight_ih"] += np.outer({input_delta}, x[t])',
            f'g["weight_ih"] += (t == 0) * np.outer({input_delta}, x[t])',
        ),
        (outer, f'g["weight_hh"] += (t == 0) * np.outer({d}, h_before)'),
        (f'g["bias_ih"] += {input_delta}', f'g["bias_ih"] += (t == 0) * {input_delta}'),
        (f'g["bias_hh"] += {d}', f'g["bias_hh"] += (t == 0) * {d}'),
    ]
    rows = [
        ("nothing-carried", "backward", [("if t in cuts:", "if t:")]),
        ("only-the-carry", "backward", [(DIN, "dh = dh + (dout[t] if t == len(x) - 1 else 0)")]),
        ("w-hh-transposed-in-backward", "backward", [(back, f"dh = {direct}{turned}")]),
        ("w-hh-transposed-in-forward", "forward", [forward_product]),
        ("w-hh-transposed-gradient-too", None, [forward_product, (back, f"dh = {direct}{turned}")]),
        (
            "w-hh-transposed",
            None,
            [
                forward_product,
                (back, f"dh = {direct}{turned}"),
                (
                    outer,
                    f"g['weight_hh'] += np.concatenate([np.outer(h_before, v) for v in np.split({d}, {GATES[cell]})])",
                ),
            ],
        ),
        ("h-for-h-before", "backward", [(outer, outer.replace("h_before", AFTER))]),
        ("h-0-taken-as-zero-in-dw-hh", "backward", [(outer, outer.replace("h_before", "h_before * (t > 0)"))]),
        ("h-wraps-round-at-t-0", "backward", [(outer, outer.replace("h_before", "h_before if t else states[-1][0]"))]),
        ("first-step-skipped", "backward", [(LOOP, "reversed(range(1, len(x)))"), (EMPTY, ZEROS)]),
        ("assigned-not-added-over-time", "backward", sums),
        ("weights-assigned-not-added-over-time", "backward", sums[:2]),
        ("dh-assigned-not-added", "backward", [(DIN, "dh = dout[t]")]),
        ("dh-n-dropped", "backward", [(first, first.replace("dh_n", "0 * dh_n", 1))]),
        ("dh-n-added-at-every-step", "backward", [(DIN, f"{DIN} + (dh_n if t < len(x) - 1 else 0)")]),
        ("dh-0-missing", "backward", [(RETURN[cell], RETURN[cell].replace("(dh", "(0 * dh"))]),
        ("h-0-ignored", "forward", [(START, "states, cache = [(0 * start[0], *start[1:])], []")]),
        ("b-hh-left-out", "forward", [(' + w["bias_hh"]', "")]),
        ("b-ih-taken-twice", "forward", [('w["bias_hh"]', 'w["bias_ih"]')]),
    ]
    skipped = [
        (LOOP, "[t for t in reversed(range(1, len(x))) if t not in cuts]"),
        (EMPTY, ZEROS),
        ("if t in cuts:", "if t - 1 in cuts:"),
    ]
    taken_as_zero = [(outer, outer.replace("h_before", "h_before * (t > 0 and t not in cuts)"))]
    of_windows = [
        ("windows-first-steps-skipped", "backward", skipped),
        ("windows-first-h-taken-as-zero-in-dw-hh", "backward", taken_as_zero),
    ]
    return [
        (cell, cell + case, name, cell, function, edits)
        for case, bugs in (("", rows), ("-windows", of_windows))
        for name, function, edits in bugs
    ]


RNN = [
    ("carried-without-w-hh", [(BACK["rnn"], "dh = dz")]),
    ("tanh-applied-twice", [("dh * (1 - h * h)", "dh * (1 - np.tanh(h) ** 2)")]),
    ("tanh-derivative-at-z", [("dh * (1 - h * h)", "dh * (1 - cache[t][0] ** 2)")]),
    ("tanh-derivative-inverted", [("dh * (1 - h * h)", "dh / (1 - h * h)")]),
    ("tanh-derivative-missing", [("dh * (1 - h * h)", "dh")]),
    ("tanh-derivative-at-h-before", [("dh * (1 - h * h)", "dh * (1 - h_before**2)")]),
]
DC = "dc = dc + dm * o * (1 - np.tanh(c) ** 2)"
CUT_H, CUT_C = "            dh = np.zeros_like(dh)\n", "            dc = np.zeros_like(dc)\n"
LSTM = [
    ("dc-n-dropped", [("dh, dc = dh_n, dc_n\n", "dh, dc = dh_n, 0 * dc_n\n")]),
    ("dh-n-and-dc-n-dropped", [("dh, dc = dh_n, dc_n\n", "dh, dc = 0 * dh_n, 0 * dc_n\n")]),
    ("dc-0-missing", [("return dx, (dh, dc)", "return dx, (dh, 0 * dc)")]),
    ("h-not-carried-back", [(BACK["lstm"], "dh = w['weight_hh'].T @ dz * (t == 0)")]),
    ("c-not-carried-back", [("dc = dc * f\n", "dc = dc * f * (t == 0)\n")]),
    ("dc-assigned-not-added", [(DC, DC.replace("dc + ", ""))]),
    ("c-gets-nothing-from-h", [(DC, "dc = dc + 0 * dm")]),
    ("no-derivative-of-tanh-c", [(DC, "dc = dc + dm * o")]),
    ("derivative-of-tanh-at-c", [(DC, "dc = dc + dm * o * (1 - c * c)")]),
    ("c-carried-without-f", [("dc = dc * f\n", "dc = dc\n")]),
    *((f"derivative-of-{k}-missing", [(f" * {k} * (1 - {k})\n", "\n")]) for k in "ifo"),
    *(
        (f"sigmoid-applied-twice-in-{k}", [(f"* {k} * (1 - {k})\n", f"* sigmoid({k}) * (1 - sigmoid({k}))\n")])
        for k in "ifo"
    ),
    ("c-carried-with-f-before", [("dc = dc * f\n", "dc = dc * cache[max(t - 1, 0)][1]\n")]),
    ("c-for-c-before", [("dc * c_before * f", "dc * c * f")]),
    ("c-for-tanh-c-in-do", [("dm * np.tanh(c) * o * (1 - o)", "dm * c * o * (1 - o)")]),
    (
        "sigmoid-applied-twice",
        [(f"* {k} * (1 - {k})\n", f"* sigmoid({k}) * (1 - sigmoid({k}))\n") for k in "ifo"],
    ),
    ("gate-derivatives-missing", [(f" * {k} * (1 - {k})\n", "\n") for k in "ifo"]),
    ("tanh-applied-twice", [("(1 - n * n)", "(1 - np.tanh(n) ** 2)")]),
    ("tanh-derivative-missing", [(" * (1 - n * n)", "")]),
    ("deltas-in-the-order-ifog", [("[dz_i, dz_f, dz_g, dz_o]", "[dz_i, dz_f, dz_o, dz_g]")]),
]
LSTM_BOTH = [
    (
        "gates-in-the-order-ifog",
        [
            ("z_i, z_f, z_g, z_o = np", "z_i, z_f, z_o, z_g = np"),
            ("[dz_i, dz_f, dz_g, dz_o]", "[dz_i, dz_f, dz_o, dz_g]"),
        ],
    ),
    (
        "gates-in-the-order-iofg",
        [
            ("z_i, z_f, z_g, z_o = np", "z_i, z_o, z_f, z_g = np"),
            ("[dz_i, dz_f, dz_g, dz_o]", "[dz_i, dz_o, dz_f, dz_g]"),
        ],
    ),
    ("c-0-ignored", [(START, "states, cache = [(start[0], 0 * start[1])], []")]),
    (
        "no-tanh-on-c",
        [("m = o * np.tanh(c)", "m = o * c"), (DC, "dc = dc + dm * o"), ("dm * np.tanh(c) * o", "dm * c * o")],
    ),
    ("sigmoid-of-2x", [("1 / (1 + np.exp(-z))", "1 / (1 + np.exp(-2 * z))")]),
    (
        "h-not-carried",
        [
            ("h, c = states[-1]", "h, c = start"),
            ("(h_before, c_before), (_, c) = states[t]", "(h_before, c_before), (_, c) = states[0]"),
            ("if t in cuts:", "if t:"),
        ],
    ),
]
PROJECTION = 'g["weight_hr"] += np.outer(dh, m)'
GRU = [
    (
        "reset-before-in-backward",
        [
            (
                "d_r = d_n * a_n * r * (1 - r)",
                "p = np.split(w['weight_hh'], 3)[2].T @ d_n; d_r = p * h_before * r * (1 - r)",
            ),
            ("d_z, d_n * r])", "d_z, d_n])"),
            (
                "np.outer(da, h_before)",
                "np.concatenate([np.outer(da[: 2 * len(r)], h_before), np.outer(d_n, r * h_before)])",
            ),
            (BACK["gru"], "dh = dh * z + w['weight_hh'][: 2 * len(r)].T @ da[: 2 * len(r)] + r * p"),
        ],
    ),
    ("db-hn-without-r", [('g["bias_hh"] += da', 'g["bias_hh"] += du')]),
    (
        "z-for-1-minus-z-in-backward",
        [
            ("dh * (1 - z) * (1 - n", "dh * z * (1 - n"),
            ("(h_before - n)", "(n - h_before)"),
            ("dh = dh * z +", "dh = dh * (1 - z) +"),
        ],
    ),
    *((f"derivative-of-{k}-missing", [(f" * {k} * (1 - {k})\n", "\n")]) for k in "rz"),
    *(
        (f"sigmoid-applied-twice-in-{k}", [(f"* {k} * (1 - {k})\n", f"* sigmoid({k}) * (1 - sigmoid({k}))\n")])
        for k in "rz"
    ),
    ("no-direct-path", [("dh = dh * z + ", "dh = ")]),
    ("h-for-h-before-in-dz", [("(h_before - n)", "(states[t + 1][0] - n)")]),
    ("h-for-s-in-dr", [("d_n * a_n * r", "d_n * h_before * r")]),
    ("one-delta-for-both-sides", [("d_z, d_n * r])", "d_z, d_n])")]),
    ("sigmoid-applied-twice", [(f"* {k} * (1 - {k})\n", f"* sigmoid({k}) * (1 - sigmoid({k}))\n") for k in "rz"]),
    ("gate-derivatives-missing", [(f" * {k} * (1 - {k})\n", "\n") for k in "rz"]),
    ("tanh-applied-twice", [("(1 - n * n)", "(1 - np.tanh(n) ** 2)")]),
    (
        "deltas-in-the-order-zrn",
        [
            ("du = np.concatenate([d_r, d_z,", "du = np.concatenate([d_z, d_r,"),
            ("da = np.concatenate([d_r, d_z,", "da = np.concatenate([d_z, d_r,"),
        ],
    ),
]
RESET = [
    (
        "n = np.tanh(u_n + r * a_n)",
        "W, b = np.split(w['weight_hh'], 3)[2], np.split(w['bias_hh'], 3)[2]; n = np.tanh(u_n + W @ (r * h) + b)",
    ),
    *dict(GRU)["reset-before-in-backward"],
]
MERGED = "b = np.split(w['bias_hh'], 3)[2]; a_n = a_n - b"
GRU_BOTH = [
    ("reset-before-the-product", RESET),
    (
        "b-hn-outside-the-reset",
        [
            ("n = np.tanh(u_n + r * a_n)", f"{MERGED}; n = np.tanh(u_n + r * a_n + b)"),
            ('g["bias_hh"] += da', 'g["bias_hh"] += du'),
        ],
    ),
    (
        "z-for-1-minus-z",
        [("((1 - z) * n + z * h,)", "(z * n + (1 - z) * h,)"), *dict(GRU)["z-for-1-minus-z-in-backward"]],
    ),
    (
        "gates-in-the-order-zrn",
        [
            ("u_r, u_z, u_n =", "u_z, u_r, u_n ="),
            ("a_r, a_z, a_n =", "a_z, a_r, a_n ="),
            *dict(GRU)["deltas-in-the-order-zrn"],
        ],
    ),
    ("sigmoid-of-2x", [("1 / (1 + np.exp(-z))", "1 / (1 + np.exp(-2 * z))")]),
]

CELL_BUGS = [
    *(row for cell in GATES for row in _shared(cell)),
    *(("rnn", "rnn", name, "rnn", "backward", edits) for name, edits in RNN),
    ("rnn", "rnn-relu", "relu-derivative-missing", "rnn", "backward", [("dh * (h > 0)", "dh")]),
    (
        "rnn",
        "rnn",
        "h-not-carried",
        "rnn",
        None,
        [
            ("(h,) = states[-1]", "(h,) = start"),
            ("(h_before,), (h,) = states[t]", "(h_before,), (h,) = states[0]"),
            ("if t in cuts:", "if t:"),
        ],
    ),
    *(("lstm", "lstm", name, "lstm", "backward", edits) for name, edits in LSTM),
    *(("lstm", "lstm", name, "lstm", None, edits) for name, edits in LSTM_BOTH),
    ("lstm", "lstm-windows", "h-detached-but-not-c", "lstm", "backward", [(CUT_C, "")]),
    ("lstm", "lstm-windows", "c-detached-but-not-h", "lstm", "backward", [(CUT_H, "")]),
    (
        "lstm",
        "lstm-projection",
        "dw-hr-of-the-loss-alone",
        "lstm",
        "backward",
        [(PROJECTION, PROJECTION.replace("dh,", "dout[t] + (dh_n if t == len(x) - 1 else 0),"))],
    ),
    (
        "lstm",
        "lstm-projection",
        "dw-hr-with-c-for-tanh-c",
        "lstm",
        "backward",
        [(PROJECTION, PROJECTION.replace("m)", "o * c)"))],
    ),
    (
        "lstm",
        "lstm-projection",
        "dw-hr-without-o",
        "lstm",
        "backward",
        [(PROJECTION, PROJECTION.replace("m)", "np.tanh(c))"))],
    ),
    *(("gru", "gru", name, "gru", "backward", edits) for name, edits in GRU),
    *(("gru", "gru", name, "gru", None, edits) for name, edits in GRU_BOTH),
]
