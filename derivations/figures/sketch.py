"""What the figures are drawn with: boxes and arrows, and plots in the same colours."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
INK, FORWARD, BACK, CUT, PANEL, BOX = "#1f2933", "#1f6fb2", "#c2410c", "#b91c1c", "#fbfaf7", "#e6eef6"


class Sketch:
    """Boxes and arrows in units of one step's width."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(width, height), facecolor=PANEL)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(0, height)
        self.axes.axis("off")

    def box(self, x: float, y: float, text: str, w: float = 0.9, h: float = 0.52, colour: str = BOX) -> None:
        style = {"facecolor": colour, "edgecolor": INK, "linewidth": 1}
        self.axes.add_patch(matplotlib.patches.FancyBboxPatch((x - w / 2, y - h / 2), w, h, "round,pad=0.03", **style))
        self.text(x, y, text)

    def text(self, x: float, y: float, text: str, colour: str = INK, size: float = 12, **style: str) -> None:
        self.axes.text(x, y, text, color=colour, size=size, **{"ha": "center", "va": "center", **style})

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        style = {
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 1.6,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 13,
        }
        self.axes.add_patch(matplotlib.patches.FancyArrowPatch(start, end, **style))

    def save(self, name: str) -> None:
        with matplotlib.rc_context({"svg.hashsalt": name}):
            self.figure.savefig(HERE / f"{name}.svg", facecolor=PANEL, metadata={"Date": None})


@cache
def page(name: str) -> dict[str, Any]:
    """Run the blocks of a chapter and return its names: a figure then shows the very numbers that the page asserts."""
    text = (HERE.parent / name).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(block, names)
    return names


def plot_on(axes: Axes, position: tuple[float, float, float, float], xlabel: str) -> None:
    """Make a plot with two axes of it."""
    axes.set_position(position)
    axes.axis("on")
    axes.set_facecolor(PANEL)
    axes.tick_params(colors=INK, labelsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(xlabel, color=INK, size=12)
