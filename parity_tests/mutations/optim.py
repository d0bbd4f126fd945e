"""The usual mistakes in hand-written optimizers, as edits of numpy_rnn/optim."""

import pytest


def mistake(name: str, module: str, attribute: str, *edits: tuple[str, str], id: str, **settings: object) -> object:
    """The optimizer that has it and settings under which it shows, then what ``mutated`` takes."""
    return pytest.param(name, settings, (f"numpy_rnn.optim.{module}", attribute, *edits), id=id)


ADAM_SCALE = 'np.sqrt(square) / math.sqrt(filled2) + group["eps"]'
ADAMAX_SIZE = 'np.abs(g) + group["eps"]'
DECAY = 'if decay != 0 and group.get("decoupled_weight_decay"):'

MISTAKES = [
    mistake(
        "SGD",
        "sgd",
        "SGD._update",
        ('(1 - group["dampening"]) * g', "g"),
        id="no-dampening",
        momentum=0.9,
        dampening=0.3,
    ),
    mistake(
        "SGD",
        "sgd",
        "SGD._update",
        ("= g.copy()", '= (1 - group["dampening"]) * g'),
        id="dampening-on-the-first-step",
        momentum=0.9,
        dampening=0.3,
    ),
    mistake(
        "SGD",
        "sgd",
        "SGD._update",
        ("-lr * (g + momentum * buffer)  #", "-lr * (g + momentum * g)  #"),
        id="nesterov-without-buffer",
        momentum=0.9,
        nesterov=True,
    ),
    mistake(
        "SGD",
        "sgd",
        "SGD._update",
        ("buffer *= momentum\n", "buffer *= 1\n"),
        id="momentum-never-forgets",
        momentum=0.9,
    ),
    mistake(
        "SGD",
        "optimizer",
        "Optimizer.step",
        ("np.asarray(-gradient.data) if", "gradient.data if"),
        id="maximize-ignored",
        maximize=True,
    ),
    mistake(
        "SGD",
        "optimizer",
        "Optimizer.step",
        ("np.asarray(g + decay * p)", "np.asarray(g - decay * p)"),
        id="decay-of-the-wrong-sign",
        weight_decay=0.1,
    ),
    mistake(
        "Adadelta",
        "adadelta",
        "Adadelta._update",
        (
            "np.sqrt(acc_delta + eps) / np.sqrt(square_avg + eps)",
            "(np.sqrt(acc_delta) + eps) / (np.sqrt(square_avg) + eps)",
        ),
        id="adadelta-eps-outside",
    ),
    mistake(
        "Adadelta",
        "adadelta",
        "Adadelta._update",
        ("square_avg *= rho", "square_avg *= rho * g * g"),
        id="adadelta-rho-times-g2",
    ),
    mistake(
        "Adadelta",
        "adadelta",
        "Adadelta._update",
        ("acc_delta += (1 - rho) * delta * delta", 'acc_delta += (1 - rho) * (group["lr"] * delta) ** 2'),
        id="adadelta-lr-in-the-accumulator",
        lr=0.5,
    ),
    mistake(
        "Adadelta",
        "adadelta",
        "Adadelta._update",
        ("square_avg += (1 - rho) * g * g", "square_avg += g * g"),
        id="adadelta-sum-for-average",
    ),
    mistake(
        "Adagrad",
        "adagrad",
        "Adagrad._update",
        ('np.sqrt(state["sum"]) + group["eps"]', 'np.sqrt(state["sum"] + group["eps"])'),
        id="adagrad-eps-inside",
    ),
    mistake(
        "Adagrad",
        "adagrad",
        "Adagrad._update",
        ('(state["step"] - 1)', 'state["step"]'),
        id="adagrad-decay-one-step-early",
        lr_decay=0.1,
    ),
    mistake(
        "RMSprop",
        "rmsprop",
        "RMSprop._update",
        ('np.sqrt(variance) + group["eps"]', 'np.sqrt(variance + group["eps"])'),
        id="rmsprop-eps-inside",
    ),
    mistake(
        "RMSprop",
        "rmsprop",
        "RMSprop._update",
        ('lerp(state["grad_avg"], g, 1 - alpha)', 'lerp(state["grad_avg"], g, alpha)'),
        id="rmsprop-centre-moves-too-fast",
        centered=True,
    ),
    mistake(
        "RMSprop",
        "rmsprop",
        "RMSprop._update",
        ("buffer += g / scale", 'buffer += group["lr"] * g / scale'),
        id="rmsprop-lr-twice",
        momentum=0.9,
    ),
    mistake(
        "Adam", "adam", "Adam._update", (ADAM_SCALE, 'np.sqrt(square / filled2 + group["eps"])'), id="adam-eps-inside"
    ),
    mistake(
        "Adam",
        "adam",
        "Adam._update",
        (ADAM_SCALE, '(np.sqrt(square) + group["eps"]) / math.sqrt(filled2)'),
        id="adam-eps-before-the-correction",
    ),
    mistake("Adam", "adam", "Adam._update", ("/ math.sqrt(filled2)", ""), id="adam-second-average-not-corrected"),
    mistake(
        "Adam",
        "adam",
        "Adam._update",
        ('-group["lr"] / filled1', '-group["lr"]'),
        id="adam-first-average-not-corrected",
    ),
    mistake(
        "Adam",
        "moments",
        "MomentOptimizer._moments",
        ('beta1 ** state["step"]', 'beta1 ** (state["step"] - 1 or 1)'),
        id="adam-step-counted-from-0",
    ),
    mistake(
        "Adam",
        "moments",
        "MomentOptimizer._moments",
        ("(1 - beta2) * g * g", "(1 - beta2) * g"),
        id="adam-square-forgotten",
    ),
    mistake(
        "Adam",
        "adam",
        "Adam._update",
        ('state["max_exp_avg_sq"], square, out', 'state["max_exp_avg_sq"], square / filled2, out'),
        id="amsgrad-of-the-corrected",
        amsgrad=True,
    ),
    mistake(
        "Adam",
        "adam",
        "Adam._update",
        ('state["max_exp_avg_sq"], square, out', 'state["max_exp_avg_sq"], g * g, out'),
        id="amsgrad-of-the-gradient",
        amsgrad=True,
    ),
    mistake("AdamW", "optimizer", "Optimizer.step", (DECAY, "if False:"), id="adamw-coupled", weight_decay=0.1),
    mistake("Adam", "optimizer", "Optimizer.step", (DECAY, "if decay != 0:"), id="adam-decoupled", weight_decay=0.1),
    mistake(
        "AdamW",
        "optimizer",
        "Optimizer.step",
        ('1 - group["lr"] * decay', "1 - decay"),
        id="adamw-decay-without-lr",
        weight_decay=0.1,
    ),
    mistake("NAdam", "nadam", "NAdam._update", ("((step + 1) * decay)", "(step * decay)"), id="nadam-no-look-ahead"),
    mistake(
        "NAdam", "nadam", "NAdam._update", ("(1 - product * mu_next)", "(1 - product)"), id="nadam-product-of-this-step"
    ),
    mistake(
        "NAdam",
        "nadam",
        "NAdam._update",
        ("-lr * (1 - mu) / (1 - product) * g", "-lr * (1 - mu) * g"),
        id="nadam-gradient-not-corrected",
    ),
    mistake(
        "RAdam",
        "radam",
        "RAdam._update",
        ("length > 5", "length > 4"),
        id="radam-threshold-of-the-paper",
        betas=(0.9, 0.99),
    ),
    mistake(
        "RAdam", "radam", "RAdam._update", ("        change *= math.sqrt(rectified)\n", ""), id="radam-not-rectified"
    ),
    mistake(
        "RAdam",
        "radam",
        "RAdam._update",
        ('(np.sqrt(state["exp_avg_sq"]) + group["eps"])', 'np.sqrt(state["exp_avg_sq"] + group["eps"])'),
        id="radam-eps-inside",
        eps=1e-3,
    ),
    mistake(
        "Adamax", "adamax", "Adamax._update", (ADAMAX_SIZE, "np.maximum(np.abs(g), 1e-300)"), id="adamax-without-eps"
    ),
    mistake(
        "Adamax",
        "adamax",
        "Adamax._update",
        ('* state["exp_avg"] / state["exp_inf"]', '* state["exp_avg"] / (state["exp_inf"] + group["eps"])'),
        id="adamax-eps-twice",
    ),
    mistake(
        "Adamax", "adamax", "Adamax._update", ('        state["exp_inf"] *= beta2\n', ""), id="adamax-never-forgets"
    ),
    mistake(
        "ASGD",
        "asgd",
        "ASGD._update",
        ('eta, mu = float(state["eta"])', 'eta, mu = group["lr"]'),
        id="asgd-eta-never-falls",
    ),
    mistake("ASGD", "asgd", "ASGD._update", ("lambd * lr * state", "lambd * state"), id="asgd-eta-without-lr"),
    mistake("ASGD", "asgd", "ASGD._update", ("p *= 1 - lambd * eta", "p *= 1 - lambd * lr"), id="asgd-decay-by-lr"),
    mistake("ASGD", "asgd", "ASGD._update", ("if mu == 1", "if True"), id="asgd-no-average", t0=50),
]
