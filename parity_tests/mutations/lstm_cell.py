"""The usual mistakes in a hand-written LSTM, most of them in its backward, as edits of numpy_rnn/cells/lstm.py."""

import pytest

DC = "dc += np.multiply(factor, dm, out=factor)"
DM_TO_DC = "dm_to_dc = (1 - tanh_c * tanh_c) * o"
D_O = "d_o *= tanh_c"
D_I = "d_i *= g"
D_F_FIRST = "d_f[0] *= c_before[:, :B]"
D_F_LATER = "d_f[1:] *= c[:-1]"
D_G = "d_g *= (1 + g) * i"
CARRY_C = "dc *= f_t  #"
F_OF_EACH_STEP = "d.reshape(split)[:, 1:], f))"
CARRY_H = "dh_t += dh_next"
W_BACK = "[w_hh[3 * H :], w_hh[: 3 * H]]"
TO_DZ = "block.within(dz)[:, : 3 * H], block.within(dz)[:, 3 * H :] = d[:, H:], d[:, :H]"
H_PREVIOUS = "steps.previous(saved.h_0, h)"
DB = '(dz.sum(axis=1) if name in wanted else None for name in ("db_ih", "db_hh"))'
UPSTREAM = "else dh.reshape(N, P)"
BIAS = "np.zeros(4 * H, x.dtype))"
STEPS = "arrays = (a[::-1] for a in"
DW_HR = "np.tensordot(dhs, o * tanh_c,"
BEFORE = "before, blocks = [saved.c_0.T, *(c[-1] for c in saved.c)],"
BLOCKS = "in reversed(list(zip(blocks, saved.gates, saved.c, before, strict=False))):"
STATES = "product, ig = h_t[:, : block.B], c_n[:, : block.B],"
DH_ARRIVED, DC_ARRIVED = "dh_waiting[:, :B].copy()", "dc_waiting[:, :B].copy()"
IN_THE_LAST = "(block.rows.stop == N)"
EACH = "for z, z_oif, o, i, f, g, c_next, h_next in"
LOGISTIC_TWICE = "d_i[...] = g * open_gates(-i) * (1 - open_gates(-i))"
G_AND_O_SWAPPED = (
    "block.within(dz)[:, : 2 * H], block.within(dz)[:, 2 * H : 3 * H], block.within(dz)[:, 3 * H :] = "
    "d[:, H : 3 * H], d[:, :H], d[:, 3 * H :]"
)
BIASES_SWAPPED = "(dz[[*range(H, 2 * H), *range(H), *range(2 * H, 4 * H)]].sum(axis=1), dz.sum(axis=1))"

# The edits, and what the scalar case then gives for some of the wrong gradients, gates in the order i, f, g, o.
MISTAKES = [
    pytest.param(
        [(DC, DC.replace("+=", "[...] ="))],
        {"dw_hh": [-0.031491989, 0.031047099, 0.063813308, 0.074614811], "dh_0": -0.001452841, "dc_0": 0.200273683},
        id="dc-assigned-not-added",
    ),
    pytest.param(
        [(DC, "dc *= 1")],
        {"dw_hh": [-0.006573652, 0.024766054, 0.074563378, 0.073932649], "dh_0": 0.001904283, "dc_0": 0.189705673},
        id="dc-without-h",
    ),
    pytest.param(
        [(DM_TO_DC, "dm_to_dc = o.copy()")],
        {"dw_hh": [0.002639556, 0.052350826, 0.151324791, 0.072837412], "dh_0": -0.068117132, "dc_0": 0.666667295},
        id="no-derivative-of-tanh-c",
    ),
    pytest.param(
        [(DM_TO_DC, "dm_to_dc = (1 - c * c) * o")],
        {"dw_hh": [-0.010818129, 0.047535136, 0.131426213, 0.07183196], "dh_0": -0.043132686, "dc_0": 0.489056439},
        id="derivative-of-tanh-at-tanh-c",
    ),
    pytest.param(
        [(CARRY_C, "dc *= 1  #")],
        {"dw_hh": [-0.002658749, 0.054271375, 0.155322566, 0.07164002], "dh_0": -0.064244822, "dc_0": 0.954865342},
        id="carry-without-f",
    ),
    pytest.param(
        [(F_OF_EACH_STEP, F_OF_EACH_STEP.replace("f)", "np.concatenate([f[:1], f[:-1]]))"))],
        {"dw_hh": [-0.011735184, 0.047250795, 0.129759285, 0.071876152], "dh_0": -0.042048455, "dc_0": 0.481302531},
        id="carry-with-f-t-minus-1",
    ),
    pytest.param(
        [(CARRY_H, "dh_t += 0")],
        {"dw_hh": [-0.00498094, 0.051168171, 0.145042451, 0.079640791], "dh_0": -0.051578676, "dc_0": 0.580215452},
        id="nothing-carried-to-h",
    ),
    pytest.param(
        [(D_F_FIRST, D_F_FIRST.replace("*=", "=")), (D_F_LATER, D_F_LATER.replace("*=", "="))],
        {"dw_hh": [-0.004955275, 0.287488077, 0.142620546, 0.077914788], "dh_0": 0.029097368, "dc_0": 0.569889968},
        id="forget-gate-without-derivative",
    ),
    pytest.param(
        [(D_F_FIRST, "d_f[0] *= c[0]"), (D_F_LATER, "d_f[1:] *= c[1:]")],
        {"dw_hh": [-0.007026925, 0.051585205, 0.137492775, 0.071425684], "dh_0": -0.030831885, "dc_0": 0.537652306},
        id="c-t-for-c-t-minus-1",
    ),
    pytest.param(
        [(D_I, LOGISTIC_TWICE)],
        {"dw_hh": [-0.002497641, 0.049095653, 0.13806642, 0.072258876], "dh_0": -0.045197436, "dc_0": 0.54165133},
        id="logistic-applied-twice",
    ),
    pytest.param(
        [(D_G, "d_g[...] = (1 - np.tanh(g) ** 2) * i")],
        {"dw_hh": [-0.007283218, 0.048720148, 0.176763599, 0.07047074], "dh_0": -0.101954942, "dc_0": 0.532760713},
        id="tanh-applied-twice",
    ),
    pytest.param(
        [(D_O, "d_o *= c")],
        {"dw_hh": [-0.0067669, 0.049028902, 0.137843951, 0.079720978], "dh_0": -0.045356675, "dc_0": 0.540436735},
        id="c-for-tanh-c",
    ),
    pytest.param(
        [(W_BACK, "[w_hh[2 * H : 3 * H], w_hh[: 2 * H], w_hh[3 * H :]]"), (TO_DZ, G_AND_O_SWAPPED)],
        {"dw_hh": [-0.008014423, 0.051862555, 0.075710196, 0.145199533], "dh_0": 0.08858233, "dc_0": 0.566088099},
        id="gate-order-i-f-o-g",
    ),
    pytest.param(
        [(DB, BIASES_SWAPPED)],
        {"db_ih": [0.149365548, 0.018072397, 0.45862565, 0.125625058]},
        id="biases-of-two-gates-swapped",
    ),
    pytest.param(
        [(H_PREVIOUS, "h")],
        {"dw_hh": [0.0398537, 0.034518704, 0.127615865, 0.031618906]},
        id="h-t-for-h-t-minus-1",
    ),
    pytest.param(
        [(STEPS, "d[0] = 0; arrays = (a[:0:-1] for a in")],
        {"dw_hh": [-0.043282521, 0.027390144, 0.053901548, 0.03203511], "dh_0": -0.143303068, "dc_0": 0.515750927},
        id="first-step-skipped",
    ),
]

# These show with a projection only.
PROJECTION_MISTAKES = [
    pytest.param([(DW_HR, "np.tensordot(block.columns(dh), o * tanh_c,")], id="dw-hr-of-the-loss-alone"),
    pytest.param([(DW_HR, "np.tensordot(dhs, o * c,")], id="dw-hr-with-c-for-tanh-c"),
    pytest.param([(DW_HR, "np.tensordot(dhs, tanh_c,")], id="dw-hr-without-the-output-gate"),
]

# These show in a window of several blocks only: the function, and the edits.
BLOCK_MISTAKES = [
    pytest.param("forward", [(STATES, STATES.replace("= h_t", "= h_0.T"))], id="h-0-in-every-block"),
    pytest.param("forward", [(STATES, STATES.replace("c_n", "c_0.T"))], id="c-0-in-every-block"),
    pytest.param("backward", [(DH_ARRIVED, f"({DH_ARRIVED} * {IN_THE_LAST}).copy()")], id="nothing-carried-to-h"),
    pytest.param("backward", [(DC_ARRIVED, f"({DC_ARRIVED} * {IN_THE_LAST}).copy()")], id="nothing-carried-to-c"),
    pytest.param("backward", [(BEFORE, BEFORE.replace("c[-1] for", "saved.c_0.T for"))], id="c-0-before-every-block"),
    pytest.param("backward", [("dw_hr += np", "dw_hr = np")], id="dw-hr-of-one-block"),
    pytest.param("backward", [(BLOCKS, BLOCKS.replace("reversed(list(", "list(("))], id="first-block-first"),
]

# Edits of the forward, which then is that of another cell.
FORWARD_MISTAKES = [
    pytest.param([("open_gates(z_oif)", "open_gates(np.negative(z_oif, out=z_oif))")], id="open-for-shut"),
    pytest.param([(EACH, EACH.replace("i, f", "f, i"))], id="i-and-f-exchanged"),
    pytest.param([("np.tanh(c_t, out=ig)", "c_t")], id="no-tanh-of-c"),
    pytest.param([("np.multiply(i, g, out=ig)", "np.multiply(1 - f, g, out=ig)")], id="one-minus-f-for-i"),
]

# The function, and the edits; no chapter works their numbers.
MORE_MISTAKES = [
    pytest.param(
        "backward",
        [(UPSTREAM, f"{UPSTREAM} * (np.arange(N) >= N - steps.B)[:, None]")],
        id="only-the-carry",
    ),
    pytest.param(
        "backward", [(H_PREVIOUS, H_PREVIOUS.replace("saved.h_0", "h[steps.last]"))], id="h-wraps-round-at-t-0"
    ),
    pytest.param(
        "backward",
        [
            (
                f"= {DB}",
                f"= {DB.replace('dz.sum', 'dz[GATES].sum')}".replace(
                    "GATES", "[*range(H), *range(H), *range(2 * H, 3 * H), *range(H)]"
                ),
            )
        ],
        id="biases-of-two-gates-from-a-third",
    ),
    pytest.param(
        "backward",
        [(f"np.concatenate({W_BACK}).T", f"np.concatenate(np.split(np.concatenate({W_BACK}), 4), axis=1)")],
        id="w-hh-transposed",
    ),
    pytest.param("backward", [(STEPS, "arrays = (a for a in")], id="first-step-first"),
    pytest.param("backward", [("dw_hh = ", "dw_hh = w_hh + ")], id="sum-starts-from-the-weights"),
    pytest.param("backward", [(H_PREVIOUS, H_PREVIOUS.replace("saved.h_0", "0 * saved.h_0"))], id="h-0-taken-as-zero"),
    pytest.param("backward", [(D_F_FIRST, D_F_FIRST.replace("*=", "*= 0 *"))], id="c-0-taken-as-zero"),
    pytest.param("backward", [("else dh_n.T", "else 0 * dh_n.T")], id="dh-n-dropped"),
    pytest.param("backward", [("else dc_n.T", "else 0 * dc_n.T")], id="dc-n-dropped"),
    pytest.param("backward", [("dc_waiting.T if", "0 * dc_waiting.T if")], id="dc-0-zero"),
    pytest.param("backward", [("d[:, : 3 * H] *= gates[:, : 3 * H]", "pass")], id="1-minus-gate-for-its-derivative"),
    pytest.param("backward", [(D_G, "d_g *= i")], id="1-minus-g-for-its-derivative"),
    pytest.param("backward", [(D_G, "d_g *= (1 + g) * g")], id="g-for-i"),
    pytest.param("backward", [("d_o_t *= dm", "d_o_t *= dc")], id="output-gate-from-dc"),
    pytest.param("backward", [(f"= {DB}", f"= {DB.replace('(dz', '((dz / steps.B)')}")], id="bias-mean-over-the-batch"),
    pytest.param("backward", [(f"= {DB}", "= (dz.sum(axis=1), 0 * dz.sum(axis=1))")], id="two-biases-taken-as-one"),
    pytest.param("forward", [("h_t = m if", "_ = m if")], id="state-not-carried"),
    pytest.param(
        "forward",
        [("c_t = np.multiply(f, c_t, out=c_next)", "c_t = np.multiply(f, c_n[:, : block.B], out=c_next)")],
        id="cell-state-not-carried",
    ),
    pytest.param(
        "forward", [("open_gates(z_oif)", "open_gates(np.multiply(z_oif, 2, out=z_oif))")], id="sigmoid-of-2x"
    ),
    pytest.param(
        "forward", [("open_gates(z_oif)", "z_oif[2 * H :] -= 1; open_gates(z_oif)")], id="1-added-to-the-forget-gate"
    ),
    pytest.param("forward", [("for b in (b_ih, b_hh)", "for b in (b_ih,)")], id="b-hh-left-out"),
    pytest.param(
        "forward",
        [(BIAS, f"{BIAS}; bias = bias[[*range(2 * H), *range(3 * H, 4 * H), *range(2 * H, 3 * H)]]")],
        id="biases-in-the-order-i-f-o-g",
    ),
]
