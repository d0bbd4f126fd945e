"""The usual mistakes with sequences of different lengths: module, attribute and edits of each."""

import pytest

STEPS, LAYOUT, PACKING = "numpy_rnn.cells.steps", "numpy_rnn.modules.layout", "numpy_rnn.packing"
FLIPPED = "self.starts[self.lengths[b] - 1 - t] + b"
SORTED = "array if self.order is None else array[:, self.order]"
UNSORTED = "unordered[:, self.order] = array"
LAST = "self.starts[self.lengths - 1] + np.arange(self.B)"
BEFORE = "np.concatenate([s + np.arange(b) for s, b in zip(self.starts, sizes[1:], strict=False)])"
PADDED_ORDER = "np.asarray(sequence.sorted_indices)[b]"

# These show with lengths only.
LENGTHS = [
    pytest.param(
        STEPS, "Steps.before", [(BEFORE, "np.arange(self.N - self.B)")], id="rows-before-as-if-all-had-one-length"
    ),
    pytest.param(
        STEPS,
        "Steps.before",
        [(BEFORE, BEFORE.replace("np.arange(b)", "np.arange(b)[::-1]"))],
        id="rows-before-of-other-sequences",
    ),
    pytest.param(
        STEPS, "Steps.last", [(LAST, "np.arange(self.N - self.B, self.N)")], id="final-states-from-the-last-rows"
    ),
    pytest.param(
        STEPS,
        "Steps.last",
        [(LAST, LAST.replace("self.lengths - 1", "np.maximum(self.lengths - 2, 0)"))],
        id="final-states-a-step-early",
    ),
    pytest.param(
        "numpy_rnn.cells.rnn",
        "backward",
        [("dh_waiting[: block.B]", "dh_waiting[-block.B :]")],
        id="gradient-of-the-shortest-goes-on",
    ),
    pytest.param(
        "numpy_rnn.cells.rnn", "forward", [("h_t[: block.B]", "h_t[-block.B :]")], id="state-of-the-shortest-goes-on"
    ),
    pytest.param(LAYOUT, "Layout.states", [(SORTED, "array")], id="h-0-not-sorted"),
    pytest.param(
        LAYOUT,
        "Layout.states",
        [(SORTED, SORTED.replace("[:, self.order]", "[:, np.argsort(self.order)]"))],
        id="h-0-sorted-by-the-inverse",
    ),
    pytest.param(LAYOUT, "Layout.states_back", [(UNSORTED, "unordered[...] = array")], id="h-n-not-unsorted"),
    pytest.param(
        LAYOUT, "Layout.states_back", [(UNSORTED, "unordered[...] = array[:, self.order]")], id="h-n-sorted-twice"
    ),
    pytest.param(LAYOUT, "Padded.back", [("np.zeros((*self", "np.ones((*self")], id="padding-not-zero"),
]

# These show in windows long enough for their products to be added up run by run.
RUNS = [
    pytest.param(STEPS, "Steps.product", [("-k), self.B, 0]", "-k), self.B]")], id="run-of-the-first-step-left-out"),
    pytest.param(
        STEPS,
        "Steps.product",
        [("columns[:, start:stop]", "columns[:, start : stop + 1]"), ("rows[start:stop]", "rows[start : stop + 1]")],
        id="runs-overlap",
    ),
    pytest.param(
        STEPS, "Steps.product", [("range(self.N, ", "range(self.N // k * k, ")], id="rest-of-the-runs-left-out"
    ),
    pytest.param(STEPS, "Steps.product", [("total += np.dot", "total[...] = np.dot")], id="runs-not-added"),
]

# These show with lengths and two directions only.
FLIPS = [
    pytest.param(STEPS, "Steps.flipped", [(f"rows[{FLIPPED}]", "rows[::-1]")], id="all-rows-turned-as-one-sequence"),
    pytest.param(
        STEPS,
        "Steps.flipped",
        [(FLIPPED, "self.starts[np.minimum(self.T - 1 - t, self.lengths[b] - 1)] + b")],
        id="turned-within-the-padded-length",
    ),
    pytest.param(
        STEPS,
        "Steps.flipped",
        [(FLIPPED, FLIPPED.replace("self.lengths[b] - 1 - t", "(self.lengths[b] - t) % self.lengths[b]"))],
        id="turned-and-shifted-by-one",
    ),
]

# These show with a PackedSequence only.
PACKED = [
    pytest.param(PACKING, "places", [("np.argsort(-lengths", "np.argsort(lengths")], id="shortest-first"),
    pytest.param(PACKING, "places", [("Places(t, order[k]", "Places(t, k")], id="rows-packed-unsorted"),
    pytest.param(PACKING, "pad_packed_sequence", [(PADDED_ORDER, "b")], id="not-unsorted"),
    pytest.param(
        PACKING, "pad_packed_sequence", [(PADDED_ORDER, PADDED_ORDER.replace("sorted", "unsorted"))], id="sorted-twice"
    ),
    pytest.param(
        PACKING, "pad_packed_sequence", [("d_output[index]", "d_output[index][::-1]")], id="gradient-packed-in-reverse"
    ),
]

# These show with batch_first only.
BATCH_FIRST = [
    pytest.param(
        LAYOUT,
        "Dense.rows",
        [("array = array.swapaxes(0, 1)", "array = array.reshape(array.shape[1], array.shape[0], -1)")],
        id="input-reshaped-not-transposed",
    ),
    pytest.param(
        LAYOUT,
        "Dense.back",
        [("return array.swapaxes(0, 1)", "return array.reshape(array.shape[1], array.shape[0], -1)")],
        id="output-reshaped-not-transposed",
    ),
]
