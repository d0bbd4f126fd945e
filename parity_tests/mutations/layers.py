"""The usual mistakes around the cells: layers, directions and dropout, as edits of numpy_rnn/modules/window.py."""

import pytest

FORWARD, BACKWARD, PART, PART_BACKWARD = "Window.forward", "Window.backward", "Part.forward", "Part.backward"
OWN = "rest[len(d_states) : len(d_states) + len(part.parameters)]"
PARAMETERS = f"{OWN} + d_parameters"
BELOW = "dy = dx  #"
STATES = "[a[k] for a in h_0]"
LAST = "[None if d is None else d[k] for d in d_final]"
MASKED = "x = x * masks[layer]"
MASK_KEPT = "Saved(masks[layer], None"
MASK_READ = "self.saved_masks[layer - 1].read()"
FIRST_MASK = "np.tile(masks[layer][: layout.steps.B], (layout.steps.T, 1))"

# What may go wrong between layers.
LAYERS = [
    pytest.param(
        BACKWARD,
        [(PARAMETERS, f"[g * 0 if layer and 0 < i - 1 < 3 else g for i, g in enumerate({OWN})] + d_parameters")],
        id="bias-gradients-zero-above-layer-0",
    ),
    pytest.param(BACKWARD, [(PARAMETERS, f"d_parameters + {OWN}")], id="gradients-of-the-layers-exchanged"),
    pytest.param(
        BACKWARD,
        [(BELOW, "dy = dx if layer in (0, len(self.layers) - 1) else 0 * dx  #")],
        id="upstream-overwritten-in-the-middle-layer",
    ),
    pytest.param(BACKWARD, [(BELOW, "dy = None  #")], id="nothing-reaches-the-layer-below"),
    pytest.param(
        BACKWARD,
        [(LAST, LAST.replace("d is None", "d is None or layer < len(self.layers) - 1"))],
        id="final-state-of-the-top-layer-alone",
    ),
    pytest.param(BACKWARD, [(LAST, LAST.replace("d[k]", "d[0]"))], id="final-state-of-layer-0-for-all"),
    pytest.param(BACKWARD, [("d_state[k] = got", "d_state[0] = got")], id="dh-0-of-all-layers-in-one"),
    pytest.param(FORWARD, [(STATES, STATES.replace("a[k]", "a[0]"))], id="h-0-of-layer-0-for-all"),
    pytest.param(FORWARD, [("final[k] = state", "final[-1 - k] = state")], id="final-states-in-reverse-order"),
]

# These show with two directions only.
DIRECTIONS = [
    pytest.param(PART_BACKWARD, [("dx=self.steps.flipped(gradients.dx)", "dx=gradients.dx")], id="dx-not-turned-back"),
    pytest.param(
        PART_BACKWARD, [("dh = None if dh is None else self.steps.flipped(dh)", "dh = dh")], id="dh-not-turned"
    ),
    pytest.param(
        PART_BACKWARD, [("x = None if x is None else self.steps.flipped(x)", "x = x")], id="x-not-turned-for-dw-ih"
    ),
    pytest.param(PART, [("return steps.flipped(h) if self.reverse else h", "return h")], id="output-not-turned-back"),
    pytest.param(PART, [("turned = steps.flipped(x) if self.reverse else x", "turned = x")], id="x-not-turned"),
    pytest.param(
        PART,
        [
            (
                "return steps.flipped(h) if self.reverse else h, final",
                "turned = steps.flipped(h) if self.reverse else h; return turned, [turned[steps.last], *final[1:]]",
            )
        ],
        id="final-state-of-the-reverse-direction-at-the-end",
    ),
    pytest.param(
        FORWARD,
        [("np.concatenate(outputs, axis=1)", "np.concatenate(outputs[::-1], axis=1)")],
        id="directions-concatenated-in-the-other-order",
    ),
    pytest.param(
        FORWARD,
        [("np.concatenate(outputs, axis=1)", "np.stack(outputs, axis=2).reshape(len(x), -1)")],
        id="directions-interleaved",
    ),
    pytest.param(
        BACKWARD, [("dy[:, d * P : (d + 1) * P]", "dy[:, (1 - d) * P : (2 - d) * P]")], id="dh-of-the-other-direction"
    ),
    pytest.param(
        BACKWARD, [("dx = dx_part if dx is None else dx + dx_part", "dx = dx_part")], id="dx-of-one-direction-alone"
    ),
    pytest.param(
        "Window",
        [
            ("k = part.names.k\n", "k = part.names.d * len(self.layers) + layer\n"),
            ("k, d = part.names.k, part.names.d", "k, d = part.names.d * len(self.layers) + layer, part.names.d"),
        ],
        id="states-in-the-order-direction-layer",
    ),
]

# These show with dropout only; some with three layers only.
DROPOUT = [
    pytest.param(
        FORWARD, [(MASKED, "x = x * masks[0]"), (MASK_KEPT, "Saved(masks[0], None")], id="mask-of-layer-0-for-all"
    ),
    pytest.param(
        BACKWARD, [(MASK_READ, MASK_READ.replace("layer - 1", "0"))], id="mask-of-layer-0-for-all-in-the-backward"
    ),
    pytest.param(
        BACKWARD, [(MASK_READ, MASK_READ.replace("layer - 1", "-layer"))], id="masks-in-reverse-order-in-the-backward"
    ),
    pytest.param(
        FORWARD,
        [(MASKED, f"x = x * {FIRST_MASK}"), (MASK_KEPT, f"Saved({FIRST_MASK}, None")],
        id="mask-of-step-0-for-all",
    ),
    pytest.param(BACKWARD, [(MASK_READ, "1")], id="mask-not-in-the-backward"),
    pytest.param(BACKWARD, [(MASK_READ, f"({MASK_READ} > 0)")], id="mask-not-scaled-in-the-backward"),
    pytest.param(
        FORWARD, [(MASKED, f"{MASKED} ** 2"), (MASK_KEPT, "Saved(masks[layer] ** 2, None")], id="scaled-twice"
    ),
    pytest.param(FORWARD, [(MASKED, "x = x + 0")], id="mask-in-the-backward-alone"),
]
