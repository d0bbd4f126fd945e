"""The charts of the page, as plotly.js takes them: a list of lines and a layout, in plain dicts.

A colour is the name of a CSS variable of the page, which knows whether it is light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy_rnn.typing import Array
from torch_rnn.curves.lines import Lines, lines, loss_name, step_name, with_gaps
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
    bands = [_band(run.losses(side)[:, 1:]) for side in (0, 1)]
    shown = thin(ours, theirs, *(edge for band in bands for edge in band))
    traces, widest = [], 0.0
    for side, name, band in ((1, "torch", bands[1]), (0, "numpy", bands[0])):
        if band:
            traces += _band_traces(drawn.steps[shown], [edge[shown] for edge in band], name)
            with np.errstate(divide="ignore", invalid="ignore"):
                width = (band[1] - band[0]) / np.abs(drawn.losses[:, side])
            widest = max(widest, float(width[np.isfinite(width)].max(initial=0.0)))
    traces += [
        _line(drawn, shown, theirs, "torch.nn", "--torch", 5),
        _line(drawn, shown, ours, "numpy_rnn", "--numpy", 1.4) | _hover(drawn, shown, drawn.losses, "loss"),
    ]
    notes = _thinned(shown, drawn)
    if traces[2:]:
        notes.append(
            f"The bands reach from the lowest to the highest of {run.settings.controls} control runs of each side, "
            f"whose weights are moved by one unit in the last place. The widest is {widest:.1g} of the loss."
        )
    return Chart(
        "losses",
        "Loss",
        f"Loss at each optimizer step. {_said('numpy_rnn', ours)} {_said('torch.nn', theirs)}",
        notes,
        traces,
        _layout(loss_name(run), step_name(run), log=_all_positive(drawn.losses)),
        switch=True,
    )


def _band(controls: Array) -> list[Array]:
    """The lowest and the highest control of each step, up to where one is not finite; nothing without controls."""
    if controls.shape[1] == 0:
        return []
    known = np.logical_and.accumulate(np.isfinite(with_gaps(controls)).all(axis=1))
    return [np.where(known, edge, np.nan) for edge in (controls.min(axis=1), controls.max(axis=1))]


def _band_traces(steps: Array, edges: Sequence[Array], name: str) -> list[dict[str, Any]]:
    known = np.isfinite(edges[0])
    edge = {"x": _plain(steps[known]), "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    low, high = (_plain(values[known]) for values in edges)
    label = {"torch": "controls of torch.nn", "numpy": "controls of numpy_rnn"}[name]
    return [
        {**edge, "y": low, "showlegend": False, "legendgroup": name},
        {**edge, "y": high, "fill": "tonexty", "fillcolor": f"--{name}-band", "name": label, "legendgroup": name},
    ]


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
    dots = {"color": "--numpy", "size": 5}
    traces.append(_points(drawn, shown[~equal], drawn.difference, "difference", dots))
    notes = _thinned(shown, drawn)
    if equal.any():
        ticks = {"color": "--soft", "size": 7, "symbol": "line-ns", "line": {"width": 1.2, "color": "--soft"}}
        traces.append(
            _points(drawn, shown[equal], np.full(len(drawn.steps), drawn.floor), "equal to the last bit", ticks)
        )
        notes.append(f"A difference of 0 is drawn at {drawn.floor:.0e}.")
    if verdict.evidence is None:
        notes.append("There were no control runs, so nothing shows what rounding does.")
    layout = _layout("|difference|", step_name(run), log=True)
    for step, text in ((verdict.shown_at, "not rounding"), (verdict.separate_at, "1 % apart")):
        if step is not None:
            line = {"x0": step, "x1": step, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": "--soft", "width": 1}}
            layout["shapes"].append({"type": "line", **line})
            note = {"x": step, "yref": "paper", "y": 1 - 0.08 * len(layout["annotations"]), "showarrow": False}
            early = step < drawn.steps[0] + 0.6 * (drawn.steps[-1] - drawn.steps[0])
            anchor = {"xanchor": "left" if early else "right", "yanchor": "top", "font": {"color": "--soft"}}
            layout["annotations"].append({**note, **anchor, "text": f" step {step}: {text} "})
    largest = np.nanmax(drawn.difference, initial=0.0)
    label = f"Absolute difference of the losses at each step; the largest is {largest:.1e}"
    label += f", and {np.count_nonzero(drawn.difference == 0)} of {len(drawn.steps)} are 0."
    return Chart("difference", "Difference, and what rounding does", label, notes, traces, layout, switch=False)


def _norms(run: Run, drawn: Lines) -> Chart:
    ours, theirs = drawn.norms.T
    shown = thin(ours, theirs)
    traces = [
        _line(drawn, shown, theirs, "torch.nn", "--torch", 5),
        _line(drawn, shown, ours, "numpy_rnn", "--numpy", 1.4) | _hover(drawn, shown, drawn.norms, "norm"),
    ]
    name = "total norm" + ("" if run.settings.clip is None else " before clipping")
    return Chart(
        "norms",
        "Gradient norms",
        f"Norm of all gradients together at each step. {_said('numpy_rnn', ours)} {_said('torch.nn', theirs)}",
        _thinned(shown, drawn),
        traces,
        _layout(name, step_name(run), log=_all_positive(drawn.norms)),
        switch=True,
    )


def _line(
    drawn: Lines, shown: Array, values: Array, name: str, colour: str, width: float, dash: str = "solid"
) -> dict[str, Any]:
    return {
        "x": _plain(drawn.steps[shown]),
        "y": _plain(values[shown]),
        "name": name,
        "mode": "lines" if len(shown) > 1 else "markers",  # a line needs two points
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


def _layout(name: str, steps: str, log: bool) -> dict[str, Any]:
    axis = {"gridcolor": "--grid", "linecolor": "--soft", "zeroline": False, "automargin": True}
    title = {"standoff": 8, "font": {"size": 13}}
    scale = {"type": "log" if log else "linear", "nticks": 5, "tickformat": "~g"}
    return {
        "xaxis": {**axis, "title": {**title, "text": steps}, "showgrid": False, "showline": True},
        "yaxis": {**axis, "title": {**title, "text": name}, **scale},
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "hovermode": "x",
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
