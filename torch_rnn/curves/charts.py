"""The charts of the page, as plotly.js takes them: a list of lines and a layout, in plain dicts.

A colour is the name of a CSS variable of the page, which knows whether it is light or dark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_rnn.typing import Array
from torch_rnn.curves.lines import Lines, lines, loss_name, step_name, with_gaps
from torch_rnn.curves.logs import counted
from torch_rnn.curves.runs import Run
from torch_rnn.curves.verdict import Verdict

LIMIT = 5000  # points of a line; of longer runs the extremes are drawn


@dataclass(frozen=True)
class Chart:
    """One chart, what stands below it, and what is read out instead of it."""

    name: str
    heading: str
    label: str
    notes: list[str]
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    switch: bool  # whether the reader may switch the axis between linear and logarithmic


def charts(run: Run, verdict: Verdict) -> list[Chart]:
    """Return the charts of a run: losses with their controls, difference, gradient norms."""
    drawn = lines(run, verdict)
    return [_losses(run, drawn), _difference(run, drawn, verdict), _norms(run, drawn)]


def thin(*series: Array, limit: int = LIMIT) -> Array:
    """Return which points to draw: all, or of each stretch the lowest and the highest of every series.

    >>> spike = np.zeros(1000)
    >>> spike[123] = 1
    >>> kept = thin(spike, limit=50)
    >>> len(kept) <= 50, 0 in kept, 123 in kept, 999 in kept
    (True, True, True, True)
    """
    steps = len(series[0])
    if steps <= limit:
        return np.arange(steps)
    kept = {0, steps - 1}
    for stretch in np.array_split(np.arange(steps), (limit - 2) // (2 * len(series))):
        for values in series:
            known = stretch[np.isfinite(values[stretch])]
            if known.size:
                kept |= {int(known[values[known].argmin()]), int(known[values[known].argmax()])}
            kept |= set(stretch[~np.isfinite(values[stretch])][:1].tolist())  # a gap stays a gap
    return np.array(sorted(kept))


def _losses(run: Run, drawn: Lines) -> Chart:
    ours, theirs = drawn.losses.T
    sides = [run.losses(side) for side in (0, 1)]
    bands = [_band(losses) for losses in sides if losses.shape[1] > 1]
    shown = thin(ours, theirs, *(edge for band in bands for edge in band))
    traces: list[dict[str, Any]] = []
    notes, widest = _thinned(shown, drawn), 0.0
    for band, losses, colour in zip(bands, drawn.losses.T, ("--numpy-band", "--torch-band"), strict=False):
        known = shown[np.isfinite(band[0][shown])]
        edge: dict[str, Any] = {
            "x": _plain(drawn.steps[known]),
            "mode": "lines",
            "line": {"width": 0},
            "hoverinfo": "skip",
        }
        edge |= {"name": "controls", "legendgroup": "controls", "legendrank": 1001}
        first = not traces
        traces.append({**edge, "y": _plain(band[0][known]), "showlegend": False})
        traces.append(
            {**edge, "y": _plain(band[1][known]), "fill": "tonexty", "fillcolor": colour, "showlegend": first}
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            width = (band[1] - band[0]) / np.abs(losses)
        widest = max(widest, float(width[np.isfinite(width)].max(initial=0.0)))
    if bands:
        notes.append(
            "The bands reach from the lowest to the highest of a side's run and its "
            f"{counted(run.settings.controls, 'control')}. The widest is {widest:.1g} of the loss."
        )
    label = f"Loss at each optimizer step. {_said('numpy_rnn', ours)} {_said('torch.nn', theirs)}"
    traces += _both(drawn, shown, drawn.losses, "loss")
    layout = _layout(loss_name(run), run, drawn, log=_all_positive(drawn.losses))
    return Chart("losses", "Loss", label, notes, traces, layout, switch=True)


def _band(losses: Array) -> tuple[Array, Array]:
    """The lowest and the highest of a run and its controls, up to where one is not finite."""
    known = np.logical_and.accumulate(np.isfinite(with_gaps(losses)).all(axis=1))
    low, high = (np.where(known, edge, np.nan) for edge in (losses.min(axis=1), losses.max(axis=1)))
    return low, high


def _difference(run: Run, drawn: Lines, verdict: Verdict) -> Chart:
    shown = thin(drawn.difference, drawn.rounding)
    differences = drawn.difference[shown]
    equal = differences == 0
    traces = []
    if np.isfinite(drawn.rounding).any():
        silent = {"hoverinfo": "skip"}
        traces = [
            _line(drawn, shown, drawn.rounding, "rounding alone", "--soft", 1.4) | silent,
            _line(drawn, shown, drawn.allowed, "a bug from here", "--allowed", 1.6, dash="dash") | silent,
        ]
    dots = {"color": "--numpy", "size": 5 if len(shown) < 1000 else 3}
    traces.append(_points(drawn, shown[~equal], drawn.difference, "difference", dots))
    notes = _thinned(shown, drawn)
    if equal.any():
        ticks = {"color": "--soft", "size": 7, "symbol": "line-ns", "line": {"width": 1.2, "color": "--soft"}}
        traces.append(_points(drawn, shown[equal], np.full(len(drawn.steps), drawn.floor), "equal", ticks))
        notes.append(f"Where both losses are equal to the last bit, 0 is drawn at {drawn.floor:.0e}.")
    if verdict.evidence is None:
        notes.append("There were no control runs, so nothing shows what rounding does.")
    layout = _layout("|difference|", run, drawn, log=True)
    layout["yaxis"]["tickformat"] = "~e"
    for step, text in ((verdict.shown_at, "not rounding"), (verdict.separate_at, "1 % apart")):
        if step is not None:
            line = {"color": "--soft", "width": 1}
            layout["shapes"].append(
                {"type": "line", "yref": "paper", "x0": step, "x1": step, "y0": 0, "y1": 1, "line": line}
            )
            side = "left" if 2 * step < drawn.steps[0] + drawn.steps[-1] else "right"
            place = {"x": step, "yref": "paper", "y": 0.55 - 0.15 * len(layout["annotations"]), "xanchor": side}
            layout["annotations"].append(
                {**place, "text": f" step {step}: {text} ", "showarrow": False, "bgcolor": "--page"}
            )
    largest = np.nanmax(drawn.difference, initial=0.0)
    label = f"Absolute difference of the losses at each step; the largest is {largest:.1e}"
    label += f", and {np.count_nonzero(drawn.difference == 0)} of {len(drawn.steps)} are 0."
    return Chart("difference", "Difference, and what rounding does", label, notes, traces, layout, switch=False)


def _norms(run: Run, drawn: Lines) -> Chart:
    ours, theirs = drawn.norms.T
    shown = thin(ours, theirs)
    label = f"Norm of all gradients together at each step. {_said('numpy_rnn', ours)} {_said('torch.nn', theirs)}"
    name = "total norm" + ("" if run.settings.clip is None else " before clipping")
    layout = _layout(name, run, drawn, log=_all_positive(drawn.norms))
    traces = _both(drawn, shown, drawn.norms, "norm")
    return Chart("norms", "Gradient norms", label, _thinned(shown, drawn), traces, layout, switch=True)


def _both(drawn: Lines, shown: Array, pairs: Array, name: str) -> list[dict[str, Any]]:
    """The line of PyTorch, and on it that of NumPy, which says what both are at a step."""
    ours, theirs = pairs.T
    below = _line(drawn, shown, theirs, "torch.nn", "--torch", 5)
    return [below, _line(drawn, shown, ours, "numpy_rnn", "--numpy", 1.4) | _hover(drawn, shown, pairs, name)]


def _line(
    drawn: Lines, shown: Array, values: Array, name: str, colour: str, width: float, dash: str = "solid"
) -> dict[str, Any]:
    return {
        "x": _plain(drawn.steps[shown]),
        "y": _plain(values[shown]),
        "name": name,
        "mode": "lines" if np.isfinite(values).sum() > 1 else "markers",  # a line needs two points
        "line": {"color": colour, "width": width, "dash": dash},
        "marker": {"color": colour, "size": 5 + width},
        "hoverinfo": "skip",
    }


def _points(drawn: Lines, shown: Array, values: Array, name: str, marker: dict[str, Any]) -> dict[str, Any]:
    points = {"x": _plain(drawn.steps[shown]), "y": _plain(values[shown]), "name": name, "mode": "markers"}
    return {**points, "marker": marker, **_hover(drawn, shown, drawn.losses, "loss")}


def _hover(drawn: Lines, shown: Array, pairs: Array, name: str) -> dict[str, Any]:
    """What is shown of a step: where it is, both values, and their difference."""
    data = []
    for epoch, (ours, theirs) in zip(drawn.epochs[shown], pairs[shown], strict=True):
        difference = abs(ours - theirs)
        apart = "none" if difference == 0 else f"{difference:.1e}"
        data.append([int(epoch), f"{ours:.12g}", f"{theirs:.12g}", apart])
    text = (
        f"{name} in NumPy %{{customdata[1]}}<br>{name} in PyTorch %{{customdata[2]}}<br>difference %{{customdata[3]}}"
    )
    template = f"step %{{x}}, epoch %{{customdata[0]}}<br>{text}<extra></extra>"
    return {"customdata": data, "hovertemplate": template, "hoverinfo": "all"}


def _layout(name: str, run: Run, drawn: Lines, log: bool) -> dict[str, Any]:
    axis = {"gridcolor": "--grid", "linecolor": "--soft", "zeroline": False, "automargin": True}
    title = {"standoff": 8, "font": {"size": 13}}
    first, last = int(drawn.steps[0]), int(drawn.steps[-1])
    beside = max(0.5, 0.01 * (last - first))
    limits = {"autorangeoptions": {"minallowed": first - beside, "maxallowed": last + beside}}  # of all charts alike
    steps = {"nticks": 8, **limits} if last - first > 8 else {"dtick": 1, **limits}
    scale = {"type": "log" if log else "linear", "nticks": 3 if log else 6, "tickformat": "~g"}
    return {
        "xaxis": {**axis, "title": {**title, "text": step_name(run)}, "showgrid": False, "showline": True, **steps},
        "yaxis": {**axis, "title": {**title, "text": name}, **scale},
        "margin": {"l": 64, "r": 12, "t": 8, "b": 8},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 11},
        },
        "hovermode": "x",
        "hoverdistance": -1,  # however far the nearest step is
        "hoverlabel": {"bgcolor": "--page", "bordercolor": "--soft", "font": {"color": "--ink"}, "align": "left"},
        "paper_bgcolor": "--page",
        "plot_bgcolor": "--page",
        "font": {"color": "--ink", "size": 12, "family": "system-ui, sans-serif"},
        "shapes": [],
        "annotations": [],
        "uirevision": "kept",
    }


def _thinned(shown: Array, drawn: Lines) -> list[str]:
    if len(shown) == len(drawn.steps):
        return []
    return [f"Of {len(drawn.steps)} steps {len(shown)} are drawn: the extremes of each stretch."]


def _said(name: str, values: Array) -> str:
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return f"{name} has no finite value."
    return f"{name} starts at {values[known[0]]:.4g} and ends at {values[known[-1]]:.4g}."


def _all_positive(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and (known > 0).all())


def _plain(values: Array) -> list[float | int | None]:
    """As JSON has it: None is a gap."""
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in values.tolist()]
