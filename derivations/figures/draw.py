"""Draw the figures of the chapters: ``python -m derivations.figures.draw`` writes the SVG files beside this script.

The same input gives the same bytes. Each figure has a light panel of its own, so it reads on light and dark pages.
"""

from derivations.figures import diagrams, plots

FIGURES = {
    "01-forward": diagrams.forward,
    "02-bptt": diagrams.bptt,
    "02-window": diagrams.window,
    "03-truncated-bptt": diagrams.truncated,
    "03-surface": plots.surface,
    "04-carried": lambda: diagrams.versions(detached=False),
    "04-detached": lambda: diagrams.versions(detached=True),
    "05-layers-directions": diagrams.layers,
    "05-lengths": diagrams.lengths,
    "06-lstm": diagrams.lstm,
    "06-recompute": plots.recomputed,
    "07-gru": diagrams.gru,
    "08-losses": plots.pulls,
    "09-optimizers": plots.optimizers,
    "10-gradients": plots.gradients,
    "10-cliff": plots.cliff,
    "11-rounding": plots.rounding,
}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        draw().save(name)
