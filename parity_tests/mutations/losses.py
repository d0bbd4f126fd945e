"""The usual mistakes in hand-written losses, as edits of numpy_rnn/losses/."""

from typing import Any

import pytest

DIFFERENCES, CLASSES, LOGISTIC = (f"numpy_rnn.losses.{name}" for name in ("differences", "classes", "logistic"))
COUNTED = "w[counts].sum()"
BCE = "binary_cross_entropy_with_logits"
SHARE = "share = label_smoothing / logp.shape[1]\n        "


def mistake(id: str, loss: str, module: str, attribute: str, *edits: tuple[str, str]) -> Any:
    return pytest.param(loss, module, attribute, edits, id=id)


# The loss whose parity must break, the module and function that the mistake is made in, and the mistake.
MISTAKES = [
    mistake(
        "mse-gradient-without-1-over-N",
        "mse_loss",
        DIFFERENCES,
        "_record",
        ("* spread(d_loss, reduction, total)", "* spread(d_loss, reduction, 1)"),
    ),
    mistake(
        "mse-mean-over-rows-only",
        "mse_loss",
        DIFFERENCES,
        "_record",
        ("d.dtype), d.size", "d.dtype), len(d) if d.ndim else 1"),
    ),
    mistake("mse-gradient-without-the-2", "mse_loss", DIFFERENCES, "square_slope", ("return 2 * d", "return 1 * d")),
    mistake(
        "mse-gradient-of-the-wrong-sign", "mse_loss", DIFFERENCES, "square_slope", ("return 2 * d", "return -2 * d")
    ),
    mistake("l1-slope-1-at-0", "l1_loss", DIFFERENCES, "sign", ("d > 0", "d >= 0")),
    mistake(
        "huber-line-that-does-not-meet-the-parabola",
        "huber_loss",
        DIFFERENCES,
        "huber",
        ("(size - clipped / 2)", "(size - delta / 2)"),
    ),
    mistake(
        "huber-slope-1-for-delta",
        "huber_loss",
        DIFFERENCES,
        "huber_slope",
        ("np.clip(d, -delta, delta)", "np.clip(d, -1, 1)"),
    ),
    mistake(
        "smooth-l1-gradient-of-huber",
        "smooth_l1_loss",
        DIFFERENCES,
        "smooth_l1_slope",
        ("huber_slope(d, beta) / beta", "huber_slope(d, beta)"),
    ),
    mistake(
        "softmax-without-the-maximum",
        "cross_entropy",
        CLASSES,
        "log_softmax",
        ("z - z.max(axis=1, keepdims=True)", "z"),
    ),
    mistake(
        "softmax-over-the-last-axis",
        "cross_entropy",
        CLASSES,
        "log_softmax",
        ("np.exp(shifted).sum(axis=1, keepdims=True)", "np.exp(shifted).sum(axis=-1, keepdims=True)"),
    ),
    mistake(
        "softmax-taken-for-independent-classes",
        "cross_entropy",
        CLASSES,
        "log_softmax_backward",
        ("np.exp(logp) * d_logp.sum(axis=1, keepdims=True)", "np.exp(logp) * d_logp"),
    ),
    mistake("ignored-targets-in-the-mean", "cross_entropy", CLASSES, "indices_forward", (COUNTED, "w.sum()")),
    mistake("mean-without-the-weights", "cross_entropy", CLASSES, "indices_forward", (COUNTED, "counts.sum()")),
    mistake("ignored-targets-cost", "nll_loss", CLASSES, "indices_forward", ("np.where(counts, losses, 0)", "losses")),
    mistake(
        "ignored-targets-get-a-gradient",
        "nll_loss",
        CLASSES,
        "indices_backward",
        ("d = np.where(counts, d, 0)", "d = d + 0"),
    ),
    mistake(
        "gradient-without-the-weights", "nll_loss", CLASSES, "indices_backward", ("(w * d)[:, None]", "d[:, None]")
    ),
    mistake(
        "gradient-of-the-wrong-sign",
        "nll_loss",
        CLASSES,
        "indices_backward",
        ("- (1 - label_smoothing)", "+ (1 - label_smoothing)"),
    ),
    mistake(
        "smoothing-over-K-minus-1",
        "cross_entropy",
        CLASSES,
        "indices_forward",
        (SHARE + "even", SHARE.replace("logp.shape[1]", "(logp.shape[1] - 1)") + "even"),
    ),
    mistake(
        "smoothing-of-the-gradient-forgotten",
        "cross_entropy",
        CLASSES,
        "indices_backward",
        ("- (1 - label_smoothing)", "- (1 - 0)"),
    ),
    mistake(
        "smoothing-without-the-weights",
        "cross_entropy",
        CLASSES,
        "indices_forward",
        ("(logp * class_weights(weight, logp))", "logp"),
    ),
    mistake(
        "smoothed-probabilities-over-K-minus-1",
        "cross_entropy",
        CLASSES,
        "smooth",
        ("label_smoothing / t.shape[1]", "label_smoothing / (t.shape[1] - 1)"),
    ),
    mistake(
        "probabilities-mean-over-classes-too",
        "cross_entropy",
        CLASSES,
        "_cross_entropy_of_probabilities",
        ("total = losses.size", "total = logp.size"),
    ),
    mistake(
        "pos-weight-on-the-wrong-term",
        BCE,
        LOGISTIC,
        "logistic",
        ("yes * cost_yes + (1 - t)", "t * cost_yes + (1 if p is None else p) * (1 - t)"),
    ),
    mistake("pos-weight-not-in-the-gradient", BCE, LOGISTIC, "logistic_slope", ("- yes * sigmoid", "- t * sigmoid")),
    mistake(
        "logistic-gradient-of-the-wrong-sign",
        BCE,
        LOGISTIC,
        "logistic_slope",
        ("(1 - t) * sigmoid(z) - yes", "(1 - t) * sigmoid(z) + yes"),
    ),
    mistake("logistic-exp-of-plus-z", BCE, LOGISTIC, "costs", ("np.exp(np.minimum(z, -z))", "np.exp(z)")),
    mistake(
        "the-costs-of-yes-and-no-exchanged",
        BCE,
        LOGISTIC,
        "costs",
        ("np.maximum(z, 0) + tail", "np.maximum(-z, 0) + tail"),
    ),
    mistake(
        "probabilities-mean-over-K-for-N",
        "cross_entropy",
        CLASSES,
        "_cross_entropy_of_probabilities",
        ("total = losses.size", "total = logp.shape[1]"),
    ),
]
