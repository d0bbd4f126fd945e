"""The picture of a record: a panel for each cell, a row for each shape, the ratios as dots on a log axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullLocator

from torch_rnn.curves.picture import ALLOWED_COLOUR, GREY, NUMPY_COLOUR, TITLE
from torch_rnn.measure.bench import Record
from torch_rnn.measure.report import threads

COLOURS = {"float32": ALLOWED_COLOUR, "float64": NUMPY_COLOUR}
MARK: dict[str, Any] = {"linestyle": "none", "markersize": 6}


def draw(path: Path, record: Record) -> None:
    """Draw forward and backward together: dots with the spread of the rounds, and open marks for the limit."""
    labels = list(dict.fromkeys(row["label"] for row in record["rows"]))
    cells = list(dict.fromkeys(row["cell"] for row in record["rows"]))
    size = 2.6 + 2.8 * max(len(cells), 2), 1.8 + 0.36 * len(labels)
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    FigureCanvasAgg(figure)  # no display, whatever the user's matplotlib is set to
    panels = figure.subplots(1, len(cells), sharex=True, sharey=True, squeeze=False)[0]
    for axes, cell in zip(panels, cells, strict=True):
        _panel(axes, [row for row in record["rows"] if row["cell"] == cell], labels)
        axes.set_title(cell.upper(), **TITLE)
    panels[0].set_yticks(range(len(labels)), labels, fontsize=8.5)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)
    panels[0].set_ylabel("T, B, I, H", color=GREY)
    figure.supxlabel(
        f"PyTorch's time over NumPy's, forward and backward: right of 1 NumPy is faster\n{_where(record)}", fontsize=9
    )
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", frameon=False, ncols=len(names), fontsize=9)
    figure.savefig(path, dpi=150, format="png")


def _panel(axes: Axes, rows: list[dict[str, Any]], labels: list[str]) -> None:
    """Draw one cell: the dtypes a little apart, so that neither covers the other."""
    axes.axvline(1, color=GREY, linewidth=1)
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    for k, dtype in enumerate(dtypes):
        chosen = [row for row in rows if row["dtype"] == dtype]
        y = [labels.index(row["label"]) + (k - (len(dtypes) - 1) / 2) * 0.3 for row in chosen]
        both = [row["ratio"]["both"] for row in chosen]
        colour, middle = COLOURS[dtype], [value["median"] for value in both]
        axes.hlines(y, [v["q1"] for v in both], [v["q3"] for v in both], color=colour, linewidth=2.5, alpha=0.5)
        axes.plot(middle, y, "o", color=colour, label=dtype, **MARK)
        limits = [row["ratio"]["both"]["median"] / row["of_limit"]["both"]["median"] for row in chosen]
        axes.plot(limits, y, "|", color=colour, label=f"{dtype}, products alone", **MARK)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)


def _where(record: Record) -> str:
    machine, versions = record["machine"], record["versions"]
    return (
        f"{machine['processor']}, {threads(record)}, NumPy {versions['numpy']}, "
        f"PyTorch {versions['torch']}, {record['date']}"
    )
