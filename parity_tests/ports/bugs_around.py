"""Bugs around the cells as edits of ``network``, in rows as those of ``bugs``; and of the optimizer steps."""

from typing import Any

from parity_tests.ports.bugs import GATES


def network_bugs() -> list[Any]:
    forward_turned = ("turned = x[::-1] if direction else x", "turned = x")
    out = ("outputs.append(h[::-1] if direction else h)", "outputs.append(h)")
    upstream = ("upstream = half[::-1] if direction else half", "upstream = half")
    below = ("below.append(dx[::-1] if direction else dx)", "below.append(dx)")
    end = 'end = tuple(given[f"d{s}_n"][place, b] for s in letters)'
    padding = 'sum(np.split(d, D)[direction] for d in given["doutput"][length:, b])'
    rows = [
        (
            "",
            "gradient-buffer-starts-from-the-weights",
            "run",
            [("gradients[name] = np.zeros_like(given[name])", "gradients[name] = given[name].copy()")],
        ),
        (
            "-deep",
            "final-gradients-of-the-top-layer-only",
            "one",
            [(end, end.replace("[place, b]", "[place, b] * (layer == settings['layers'] - 1)"))],
        ),
        (
            "-deep",
            "bias-gradients-zero-above-the-first-layer",
            "one",
            [
                (
                    "part[kind] = np.zeros_like(w[kind]) if sums is None else sums",
                    "part[kind] = np.zeros_like(w[kind]) if sums is None or (layer and kind[0] == 'b') else sums",
                )
            ],
        ),
        (
            "-deep-bidirectional",
            "states-ordered-by-direction",
            "one",
            [
                ("k = layer * D + direction", "k = direction * settings['layers'] + layer"),
                ("place = D * layer + direction", "place = direction * settings['layers'] + layer"),
            ],
        ),
        (
            "-deep-bidirectional",
            "directions-swapped",
            "one",
            [
                ("zip(*outputs, strict=True)", "zip(*outputs[::-1], strict=True)"),
                ("np.split(d, D)[direction]", "np.split(d, D)[::-1][direction]"),
            ],
        ),
        ("-bidirectional", "reverse-runs-forward", "one", [forward_turned, out, upstream, below]),
        ("-bidirectional", "reverse-output-not-turned-back", "one", [out, upstream]),
        ("-deep-bidirectional", "reverse-upstream-not-turned", "one", [upstream]),
        ("-bidirectional", "reverse-dx-not-turned-back", "one", [below]),
        (
            "-bidirectional",
            "dx-of-the-forward-direction-only",
            "one",
            [("if D == 2:", "if D == 3:")],
        ),
        ("-lengths", "lengths-ignored", "run", [('settings["lengths"] or [T] * B', "[T] * B")]),
        ("-lengths", "padding-passes-gradient", "one", [(end, f"{end}; end = (end[0] + {padding}, *end[1:])")]),
        (
            "-lengths",
            "padding-run-first",
            "one",
            [
                ("turned = x[::-1] if direction else x", 'turned = list(given["x"][::-1, b]) if direction else x'),
                (out[0], "outputs.append(h[::-1][:length] if direction else h)"),
                (upstream[0], "upstream = [0 * half[0]] * (len(turned) - length) + half[::-1] if direction else half"),
                (below[0], "below.append(dx[::-1][:length] if direction else dx)"),
            ],
        ),
        ("-windows", "detach-missing", "run", [('cuts = set(accumulate(settings["windows"]))', "cuts = set()")]),
    ]
    return [
        (cell, cell + case, *rest)
        for cell in GATES
        for case, name, f, edits in rows
        for rest in [(name, "network", f, edits)]
    ]


# Optimizer, name, edits of ``network.steps``.
STEPS = [
    (
        "sgd",
        "gradients-not-cleared",
        [
            ("for t in range(1, ", "total = {name: 0 * w for name, w in p.items()}\n        for t in range(1, "),
            ('+ g[f"d{name}"]\n', "+ total[name]\n"),
            (
                "            for name in p:\n",
                "            total = {name: total[name] + g[f'd{name}'] for name in p}\n            for name in p:\n",
            ),
        ],
    ),
    ("sgd", "gradients-not-recomputed", [("g = run({**given, **p}, settings)", "g = run(given, settings)")]),
    ("sgd", "gradient-ascent", [('p[name] - options["lr"] * m[name]', 'p[name] + options["lr"] * m[name]')]),
    (
        "sgd",
        "one-bias-for-two",
        [('p[name] - options["lr"] * m[name]', 'p[name] - (not name.startswith("bias_hh")) * options["lr"] * m[name]')],
    ),
    ("sgd", "momentum-missing", [('options["momentum"] * m', "0 * m")]),
    (
        "sgd",
        "momentum-dampened",
        [('m[name] + g[f"d{name}"]\n', 'm[name] + (1 if t == 1 else 1 - options["momentum"]) * g[f"d{name}"]\n')],
    ),
    (
        "sgd",
        "nesterov",
        [('options["lr"] * m[name]\n', 'options["lr"] * (g[f"d{name}"] + options["momentum"] * m[name])\n')],
    ),
    ("adam", "no-bias-correction", [(" / (1 - beta1**t)", ""), (" / (1 - beta2**t)", "")]),
    ("adam", "first-average-corrected-only", [(" / (1 - beta2**t)", "")]),
    ("adam", "second-average-corrected-only", [(" / (1 - beta1**t)", "")]),
    ("adam", "betas-swapped", [("beta1, beta2 = ", "beta2, beta1 = ")]),
    ("adam", "eps-inside-the-root", [('(np.sqrt(square) + options["eps"])', 'np.sqrt(square + options["eps"])')]),
    (
        "adam",
        "step-counted-from-2",
        [("(1 - beta1**t)", "(1 - beta1 ** (t + 1))"), ("(1 - beta2**t)", "(1 - beta2 ** (t + 1))")],
    ),
]
