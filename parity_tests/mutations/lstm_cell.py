"""The usual mistakes in a hand-written backward of the LSTM, as edits of numpy_rnn/cells/lstm.py."""

import pytest

DC = "dc_t += dm * o * (1 - tanh_c * tanh_c)"
DZ_I = "dz[t, 0 * H : 1 * H] = dc_t * g * i * (1 - i)"
DZ_F = "dz[t, 1 * H : 2 * H] = dc_t * c_previous * f * (1 - f)"
DZ_G = "dz[t, 2 * H : 3 * H] = dc_t * i * (1 - g * g)"
DZ_O = "dz[t, 3 * H : 4 * H] = dm * tanh_c * o * (1 - o)"
CARRY_C = "dc_t *= f  #"
CARRY_H = "dh_t += dh[t]"
BACK_H = "np.matmul(dz[t], w_hh, out=dh_t)"
FIRST_STEP = "dz[first].T @ h_0 + "
LATER_STEPS = "dz[later].T @ h[steps.before]"
DB_IH = "db_ih = dz.sum(axis=0)"
STEPS = "in reversed(steps.each):"
EMPTY = "dz, dh_all = np.empty_like(gates), np.empty_like(h)"
DH_ALL = "dh_all[t] = dh_t\n"
DW_HR = "dh_all.T @ (gates[:, 3 * H :] * np.tanh(c))"
BIASES_SWAPPED = "db_ih = np.concatenate([dz[:, H : 2 * H], dz[:, :H], dz[:, 2 * H :]], axis=1).sum(axis=0)"

# The edits, and what the scalar case then gives for some of the wrong gradients, gates in the order i, f, g, o.
MISTAKES = [
    pytest.param(
        [(DC, DC.replace("+=", "[...] ="))],
        {"dw_hh": [-0.031491989, 0.031047099, 0.063813308, 0.074614811], "dh_0": -0.001452841, "dc_0": 0.200273683},
        id="dc-assigned-not-added",
    ),
    pytest.param(
        [(DC, "dc_t *= 1")],
        {"dw_hh": [-0.006573652, 0.024766054, 0.074563378, 0.073932649], "dh_0": 0.001904283, "dc_0": 0.189705673},
        id="dc-without-h",
    ),
    pytest.param(
        [(DC, "dc_t += dm * o")],
        {"dw_hh": [0.002639556, 0.052350826, 0.151324791, 0.072837412], "dh_0": -0.068117132, "dc_0": 0.666667295},
        id="no-derivative-of-tanh-c",
    ),
    pytest.param(
        [(DC, "dc_t += dm * o * (1 - c[t] * c[t])")],
        {"dw_hh": [-0.010818129, 0.047535136, 0.131426213, 0.07183196], "dh_0": -0.043132686, "dc_0": 0.489056439},
        id="derivative-of-tanh-at-tanh-c",
    ),
    pytest.param(
        [(CARRY_C, "dc_t *= 1  #")],
        {"dw_hh": [-0.002658749, 0.054271375, 0.155322566, 0.07164002], "dh_0": -0.064244822, "dc_0": 0.954865342},
        id="carry-without-f",
    ),
    pytest.param(
        [(CARRY_C, "dc_t *= f if before is None else gates[before, H : 2 * H]  #")],
        {"dw_hh": [-0.011735184, 0.047250795, 0.129759285, 0.071876152], "dh_0": -0.042048455, "dc_0": 0.481302531},
        id="carry-with-f-t-minus-1",
    ),
    pytest.param(
        [(CARRY_H, "dh_t[...] = dh[t]")],
        {"dw_hh": [-0.00498094, 0.051168171, 0.145042451, 0.079640791], "dh_0": -0.051578676, "dc_0": 0.580215452},
        id="nothing-carried-to-h",
    ),
    pytest.param(
        [(DZ_F, DZ_F.replace(" * f * (1 - f)", ""))],
        {"dw_hh": [-0.004955275, 0.287488077, 0.142620546, 0.077914788], "dh_0": 0.029097368, "dc_0": 0.569889968},
        id="forget-gate-without-derivative",
    ),
    pytest.param(
        [(DZ_F, DZ_F.replace("c_previous", "c[t]"))],
        {"dw_hh": [-0.007026925, 0.051585205, 0.137492775, 0.071425684], "dh_0": -0.030831885, "dc_0": 0.537652306},
        id="c-t-for-c-t-minus-1",
    ),
    pytest.param(
        [(DZ_I, DZ_I.replace("i * (1 - i)", "sigmoid(i) * (1 - sigmoid(i))"))],
        {"dw_hh": [-0.002497641, 0.049095653, 0.13806642, 0.072258876], "dh_0": -0.045197436, "dc_0": 0.54165133},
        id="logistic-applied-twice",
    ),
    pytest.param(
        [(DZ_G, DZ_G.replace("g * g", "np.tanh(g) ** 2"))],
        {"dw_hh": [-0.007283218, 0.048720148, 0.176763599, 0.07047074], "dh_0": -0.101954942, "dc_0": 0.532760713},
        id="tanh-applied-twice",
    ),
    pytest.param(
        [(DZ_O, DZ_O.replace("tanh_c", "c[t]"))],
        {"dw_hh": [-0.0067669, 0.049028902, 0.137843951, 0.079720978], "dh_0": -0.045356675, "dc_0": 0.540436735},
        id="c-for-tanh-c",
    ),
    pytest.param(
        [
            (DZ_G, DZ_G.replace("2 * H : 3 * H", "3 * H : 4 * H")),
            (DZ_O, DZ_O.replace("3 * H : 4 * H", "2 * H : 3 * H")),
        ],
        {"dw_hh": [-0.008014423, 0.051862555, 0.075710196, 0.145199533], "dh_0": 0.08858233, "dc_0": 0.566088099},
        id="gate-order-i-f-o-g",
    ),
    pytest.param(
        [(DB_IH, BIASES_SWAPPED)],
        {"db_ih": [0.149365548, 0.018072397, 0.45862565, 0.125625058]},
        id="biases-of-two-gates-swapped",
    ),
    pytest.param(
        [(FIRST_STEP, ""), (LATER_STEPS, "dz.T @ h")],
        {"dw_hh": [0.0398537, 0.034518704, 0.127615865, 0.031618906]},
        id="h-t-for-h-t-minus-1",
    ),
    pytest.param(
        [(STEPS, "in reversed(steps.each[1:]):"), (EMPTY, EMPTY.replace("empty", "zeros"))],
        {"dw_hh": [-0.043282521, 0.027390144, 0.053901548, 0.03203511], "dh_0": -0.143303068, "dc_0": 0.515750927},
        id="first-step-skipped",
    ),
]

# These show with a projection only.
PROJECTION_MISTAKES = [
    pytest.param([(DH_ALL, "dh_all[t] = 0 if dh is None else dh[t]\n")], id="dw-hr-of-the-loss-alone"),
    pytest.param([(DW_HR, "dh_all.T @ (gates[:, 3 * H :] * c)")], id="dw-hr-with-c-for-tanh-c"),
    pytest.param([(DW_HR, "dh_all.T @ np.tanh(c)")], id="dw-hr-without-the-output-gate"),
]
