"""The known bugs of hand-written recurrent networks, by name, each with what to look for.

``replay(case, name)`` computes what each of them gives. Most stood in public code; see the chapters' sections on
mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

from numpy_rnn.diagnosis.replay import Case
from numpy_rnn.diagnosis.steps import LETTERS

# The commoner stand first: where a case cannot tell two apart, both are named, in this order.
SHARED = {
    "w-hh-transposed": "W_hh stands where its transpose belongs, in the forward and in the backward",
    "w-hh-transposed-gradient-too": "W_hh stands where its transpose belongs, in the forward, in the backward, and so "
    "does its gradient",
    "w-hh-transposed-in-forward": "W_hh stands where its transpose belongs in the forward alone",
    "w-hh-transposed-in-backward": "the backward multiplies by W_hh's transpose where the forward asks for W_hh",
    "nothing-carried": "no gradient comes back from step t+1: the state is detached at every step",
    "only-the-carry": "doutput[t] is lost before the last step: what comes back from t+1 stands in its place",
    "dh-assigned-not-added": "dh is assigned doutput[t] and not added to: what t+1 sends back, and dh_n, are lost",
    "carried-without-w-hh": "what comes back from step t+1 is not multiplied by W_hh",
    "h-for-h-before": "dW_hh pairs the delta of step t with the state after it, not with the state before: "
    "one time step off",
    "h-0-taken-as-zero-in-dw-hh": "t=0 is missing in dW_hh: its first term, with h_0, is left out",
    "h-wraps-round-at-t-0": "dW_hh takes h[t-1] at t=0, which is the last state and not h_0",
    "first-step-skipped": "the loop of the backward never visits t=0",
    "windows-first-steps-skipped": "the loop of the backward never visits the first step of a window",
    "windows-first-h-taken-as-zero-in-dw-hh": "the first step of each window is missing in dW_hh: its term, with the "
    "state that the window starts from, is left out",
    "assigned-not-added-over-time": "weight gradients are assigned at each step and not added: only t=0 is left",
    "weights-assigned-not-added-over-time": "the gradients of the weights, not of the biases, are assigned and not "
    "added over time",
    "gradient-buffer-starts-from-the-weights": "the sums of the weight gradients start from the weights, not from zero",
    "dh-n-dropped": "the gradient of the last state, dh_n, is dropped",
    "dh-n-added-at-every-step": "dh_n is added at every step and belongs to the last one only",
    "dh-0-missing": "dh_0 is zero: the gradient stops before the initial state",
    "final-gradients-of-the-top-layer-only": "the final states of the lower layers get no gradient",
    "h-0-ignored": "h_0 is taken as zero",
    "h-not-carried": "every step starts from h_0: the state is not carried past step 1",
    "b-hh-left-out": "b_hh is left out, or one bias stands for two",
    "b-ih-taken-twice": "b_ih is added twice, and b_hh never",
    "bias-gradients-zero-above-the-first-layer": "bias gradients are zero in the layers above the first",
    "states-ordered-by-direction": "states are ordered by direction first; PyTorch has layer 0, layer 0 reverse, ...",
    "directions-swapped": "the reverse direction's half of the output stands first",
    "reverse-runs-forward": "the reverse direction runs forward in time",
    "reverse-output-not-turned-back": "the reverse direction's output is not turned round again",
    "reverse-upstream-not-turned": "the backward of the reverse direction takes doutput in forward order: unflipped",
    "reverse-dx-not-turned-back": "the reverse direction's dx is not turned round again",
    "dx-of-the-forward-direction-only": "dx lacks the part of the reverse direction",
    "padding-run-first": "the reverse direction starts in the padding, not at each sequence's own end",
    "lengths-ignored": "the steps after a sequence's end are run as well",
    "padding-passes-gradient": "doutput after a sequence's end is not ignored",
    "detach-missing": "the state is not detached between the windows",
    "tanh-applied-twice": "tanh is applied once more in its derivative: 1 - tanh(h)^2 for 1 - h^2",
    "tanh-derivative-at-z": "the derivative of tanh is taken at z: 1 - z^2 for 1 - tanh(z)^2",
    "tanh-derivative-inverted": "1/(1 - h^2) stands for 1 - h^2",
    "tanh-derivative-missing": "the derivative of tanh is missing",
    "tanh-derivative-at-h-before": "the derivative of tanh is taken at the state of the step before",
}
GATED = {
    "sigmoid-of-2x": "sigmoid(2x) stands for sigmoid(x)",
    "sigmoid-applied-twice": "the sigmoid is applied once more in its derivative",
    "gate-derivatives-missing": "the derivatives of the sigmoids are missing",
}
OWN = {
    "rnn": {"relu-derivative-missing": "the derivative of the relu is missing"},
    "lstm": GATED
    | {
        "dc-n-dropped": "the gradient of the last cell state, dc_n, is dropped",
        "dh-n-and-dc-n-dropped": "the gradients of the last states, dh_n and dc_n, are dropped",
        "dc-0-missing": "dc_0 is zero: the gradient stops before the initial cell state",
        "c-0-ignored": "c_0 is taken as zero",
        "h-detached-but-not-c": "h is detached between the windows, and c is not",
        "c-detached-but-not-h": "c is detached between the windows, and h is not",
        "h-not-carried-back": "within a window no gradient comes back through h: only c carries",
        "c-not-carried-back": "within a window no gradient comes back through c: only h carries",
        "dc-assigned-not-added": "dc is assigned, not added: what c carries back is lost",
        "c-gets-nothing-from-h": "c gets no gradient from h of its own step",
        "no-derivative-of-tanh-c": "the derivative of tanh(c) is missing on the way from h to c",
        "derivative-of-tanh-at-c": "1 - c^2 stands for 1 - tanh(c)^2",
        "c-carried-without-f": "dc comes back without its factor f",
        "c-carried-with-f-before": "dc comes back with the forget gate of the step before",
        "c-for-c-before": "the forget gate's gradient takes c of its own step, not of the step before",
        "c-for-tanh-c-in-do": "the output gate's gradient takes c for tanh(c)",
        "no-tanh-on-c": "h is o*c, without tanh",
        "dw-hr-of-the-loss-alone": "dW_hr lacks what comes back from step t+1",
        "dw-hr-with-c-for-tanh-c": "dW_hr takes c for tanh(c)",
        "dw-hr-without-o": "dW_hr lacks the output gate",
    },
    "gru": GATED
    | {
        "reset-before-the-product": "the reset gate is applied before the product with W_hn; PyTorch's is after",
        "reset-before-in-backward": "the backward is that of a reset gate before the product; the forward's is after",
        "b-hn-outside-the-reset": "the two biases of n are merged: b_hn must be multiplied by the reset gate",
        "db-hn-without-r": "the two biases of n are merged in the backward: b_hn's gradient lacks the factor r",
        "z-for-1-minus-z": "z and 1 - z are swapped in forward and backward",
        "z-for-1-minus-z-in-backward": "z and 1 - z are swapped in the backward",
        "no-direct-path": "the direct path dh*z to the former state is missing",
        "h-for-h-before-in-dz": "the update gate's gradient takes h of its own step, not of the step before",
        "h-for-s-in-dr": "the reset gate's gradient takes h for W_hn h + b_hn",
        "one-delta-for-both-sides": "one delta serves both sides of n: what goes to W_hn lacks the factor r",
    },
}


# Those that show in the outputs: where these are right, none of them is there.
OF_THE_FORWARD = {
    "w-hh-transposed",
    "w-hh-transposed-gradient-too",
    "w-hh-transposed-in-forward",
    "h-0-ignored",
    "c-0-ignored",
    "h-not-carried",
    "b-hh-left-out",
    "b-ih-taken-twice",
    "states-ordered-by-direction",
    "directions-swapped",
    "reverse-runs-forward",
    "reverse-output-not-turned-back",
    "padding-run-first",
    "lengths-ignored",
    "sigmoid-of-2x",
    "no-tanh-on-c",
    "reset-before-the-product",
    "b-hn-outside-the-reset",
    "z-for-1-minus-z",
}


def possible(case: Case, bugs: Mapping[str, str], outputs_right: bool) -> dict[str, str]:
    """Return the ``bugs`` that can show in the case."""
    absent = ["detach", "windows"] * (len(case.windows) < 2) + ["padding", "lengths"] * (case.lengths is None)
    absent += ["reverse", "directions", "dx-of", "states-ordered"] * (case.directions == 1)
    absent += ["dw-hr"] * ("weight_hr_l0" not in case.arrays)
    forward = {bug for bug in bugs if bug in OF_THE_FORWARD or bug.startswith("gates-in-the-order-")}
    return {
        bug: text
        for bug, text in bugs.items()
        if not bug.startswith(tuple(absent)) and not (outputs_right and bug in forward)
    }


def bugs_of(case: Case) -> dict[str, str]:
    """Return the bugs that the case's cell can have: name to what to look for.

    >>> "reset-before-the-product" in bugs_of(Case("gru", {})), len(bugs_of(Case("rnn", {}))) > 30
    (True, True)
    """
    letters = LETTERS[case.cell]
    orders = ["".join(order) for order in permutations(letters)][1:]
    gates = [letter for letter in letters if letter in "iforz"]
    return {
        **SHARED,
        **OWN[case.cell],
        **{
            f"sigmoid-applied-twice-in-{g}": f"the sigmoid of {g} is applied once more in its derivative" for g in gates
        },
        **{f"derivative-of-{g}-missing": f"the derivative of the sigmoid of {g} is missing" for g in gates},
        **{
            f"gates-in-the-order-{o}": f"the gates are permuted: {', '.join(o)} for {', '.join(letters)}"
            for o in orders
        },
        **{
            f"deltas-in-the-order-{o}": f"the backward has its gates permuted: {', '.join(o)} for {', '.join(letters)}"
            for o in orders
        },
    }
