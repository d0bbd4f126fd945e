"""The usual mistakes in clipping and in schedules; those in optimizers are in ``optim``."""

import pytest


def inverse(step: int) -> float:
    return 1 / (1 + step)


CLIP, SCHEDULE = "numpy_rnn.optim.clip", "numpy_rnn.optim.lr_scheduler"

WRITTEN = 'gradient._bump_version("clip_grad_norm_")'
CLIPPING = [
    pytest.param(
        "clip_grad_norm_",
        [("coefficient = 1.0 if coefficient > 1 else coefficient", "pass")],
        id="small-gradients-scaled-up",
    ),
    pytest.param("clip_grad_norm_", [("(total + 1e-6)", "max(total, 1e-300)")], id="without-1e-6"),
    pytest.param(
        "clip_grad_norm_",
        [
            (
                "gradient.data *= coefficient",
                "gradient.data *= min(1.0, max_norm / (get_total_norm([gradient], norm_type) + 1e-6))",
            )
        ],
        id="each-tensor-by-its-own-norm",
    ),
    pytest.param(
        "clip_grad_norm_",
        [("get_total_norm(gradients, norm_type,", "get_total_norm(gradients, 2.0,")],
        id="always-the-2-norm",
    ),
    pytest.param(
        "clip_grad_norm_",
        [(f"{WRITTEN}\n    return total", f"{WRITTEN}\n    return min(total, max_norm)")],
        id="the-norm-after-returned",
    ),
    pytest.param(
        "get_total_norm", [("float(np.linalg.norm(norms, p)) if norms", "float(sum(norms)) if norms")], id="norms-added"
    ),
    pytest.param(
        "get_total_norm",
        [("float(np.linalg.norm(norms, p)) if norms", "float(max(norms)) if norms")],
        id="largest-norm-for-the-total",
    ),
    pytest.param(
        "clip_grad_value_",
        [("np.clip(gradient.data, -clip_value,", "np.clip(gradient.data, None,")],
        id="clipped-from-above-alone",
    ),
]

# The schedule, its settings, the method and the edits.
STEP = {"step_size": 3, "gamma": 0.5}
COSINE = {"T_max": 7, "eta_min": 0.001}
PLATEAU = {"patience": 2, "factor": 0.5, "cooldown": 1, "threshold": 0.1}
FIRST = "if self._step_count == 1:\n            return self._rates()\n        return "
SCHEDULES = [
    pytest.param(
        "StepLR",
        STEP,
        "get_lr",
        [("self.last_epoch % self.step_size", "(self.last_epoch + 1) % self.step_size")],
        id="a-step-early",
    ),
    pytest.param(
        "StepLR",
        STEP,
        "get_lr",
        [("self.last_epoch == 0 or self.last_epoch % self.step_size != 0", "self.last_epoch % self.step_size != 0")],
        id="lowered-at-the-start",
    ),
    pytest.param(
        "ExponentialLR",
        {"gamma": 0.9},
        "get_lr",
        [(f"{FIRST}[lr * self.gamma for lr", f"{FIRST.replace('== 1', '== 0')}[lr * self.gamma for lr")],
        id="lowered-at-the-start",
    ),
    pytest.param(
        "ExponentialLR",
        {"gamma": 0.9},
        "get_lr",
        [
            (
                "return [lr * self.gamma for lr in self._rates()]  # (9.34)",
                "return [lr * self.gamma**self.last_epoch for lr in self._rates()]  # (9.34)",
            )
        ],
        id="power-of-the-last-rate",
    ),
    pytest.param(
        "CosineAnnealingLR",
        COSINE,
        "get_lr",
        [("ratio * (lr - low) + low for", "ratio * lr for")],
        id="eta-min-ignored",
    ),
    pytest.param(
        "CosineAnnealingLR",
        COSINE,
        "get_lr",
        [("math.cos(math.pi * step / half)", "math.cos(math.pi * (step + 1) / half)")],
        id="a-step-early",
    ),
    pytest.param(
        "CosineAnnealingLR",
        COSINE,
        "get_lr",
        [("if (step - 1 - half) % (2 * half) == 0:", "if False:")],
        id="stays-at-eta-min",
    ),
    pytest.param(
        "LambdaLR",
        {"lr_lambda": inverse},
        "get_lr",
        [
            ("base * factor(self.last_epoch)", "group_lr * factor(self.last_epoch)"),
            (
                "for factor, base in zip(self.lr_lambdas, self.base_lrs, strict=True)",
                "for factor, group_lr in zip(self.lr_lambdas, self._rates(), strict=True)",
            ),
        ],
        id="factor-times-the-last-rate",
    ),
    pytest.param(
        "ReduceLROnPlateau",
        PLATEAU,
        "step",
        [("self.num_bad_epochs > self.patience", "self.num_bad_epochs >= self.patience")],
        id="patience-one-short",
    ),
    pytest.param(
        "ReduceLROnPlateau",
        PLATEAU,
        "step",
        [("self.best, self.num_bad_epochs = current, 0", "self.best = current")],
        id="bad-epochs-never-forgotten",
    ),
    pytest.param("ReduceLROnPlateau", PLATEAU, "step", [("self.cooldown_counter > 0", "False")], id="no-cooldown"),
    pytest.param(
        "ReduceLROnPlateau",
        PLATEAU,
        "_is_better",
        [("self.best * (1 + sign", "self.best * (1 - sign")],
        id="threshold-of-the-wrong-sign",
    ),
]
