"""The page ``report.html``: all that is known of a run, in one file that opens without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from torch_rnn.curves.charts import Chart, charts
from torch_rnn.curves.lines import subtitle, title
from torch_rnn.curves.runs import Run
from torch_rnn.curves.stages import Row, replay
from torch_rnn.curves.verdict import BUG, OPEN, ROUNDING, Verdict
from torch_rnn.tolerances import STAGE

MARKS = {ROUNDING: ("good", "\N{CHECK MARK}"), BUG: ("bad", "\N{MULTIPLICATION X}"), OPEN: ("open", "?")}
MEASURES = {"average relative variance": "squared error over the variance of the series"}


def page(run: Run, verdict: Verdict, figures: dict[str, Any], command: str) -> str:
    """Return the page.

    ``figures`` are those of ``report.summary``, ``command`` is what made the run. The last step with finite losses is
    made again, and so are all before it, to compare its tensors from equal weights.
    """
    drawn = charts(run, verdict)
    content = [{"name": c.name, "data": c.traces, "layout": c.layout} for c in drawn]
    sections = [
        _verdict(verdict),
        *map(_figure, drawn),
        _scores(figures),
        *_fault(run, verdict),
        _parity(run),
        _command(command),
        _facts("Settings", {name.replace("_", "-"): value for name, value in figures["settings"].items()}),
        _facts("Versions", figures["versions"]),
    ]
    script, plotly = _file("page.js"), get_plotlyjs()
    return Template(_file("page.html")).substitute(
        policy=_policy(script, plotly),
        title=escape(title(run)),
        subtitle=escape(subtitle(run)),
        style=_file("page.css"),
        body="\n".join(sections),
        charts=json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=plotly,
        script=script,
    )


@cache
def _file(name: str) -> str:
    return (files(__package__) / "html" / name).read_text(encoding="utf-8")


@cache
def _policy(*scripts: str) -> str:
    """Allow these scripts, styles, and pictures made on the spot; no other script, and no request at all."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _verdict(verdict: Verdict) -> str:
    word, _, rest = verdict.sentence().partition(": ")
    kind, mark = MARKS[verdict.outcome]
    return (
        f'<section class="verdict {kind}" aria-label="verdict"><p><strong><span aria-hidden="true">{mark}</span> '
        f"{escape(word)}</strong>: {escape(rest)}</p></section>"
    )


def _figure(chart: Chart) -> str:
    pressed = str(chart.layout["yaxis"]["type"] == "log").lower()
    buttons = '<button type="button" class="zoom" aria-pressed="false">zoom</button>'
    if chart.switch:
        buttons += f'<button type="button" class="log" aria-pressed="{pressed}">log axis</button>'
    notes = "".join(f"<p>{escape(note)}</p>" for note in chart.notes)
    return (
        f'<section aria-labelledby="{chart.name}-heading"><div class="head">'
        f'<h2 id="{chart.name}-heading">{escape(chart.heading)}</h2><div>{buttons}</div></div>'
        f'<figure><div class="chart" id="{chart.name}" tabindex="0" role="img" aria-label="{escape(chart.label)}">'
        f"</div><figcaption>{notes}</figcaption></figure></section>"
    )


def _scores(figures: dict[str, Any]) -> str:
    if not figures["scores"]:
        return _section("Test error", "<p>The task has no test span.</p>")
    goals = any(score["target"] is not None for score in figures["scores"])
    head = ["", "NumPy", "PyTorch", figures["baseline"], *(["target"] if goals else [])]
    rows = []
    for score in figures["scores"]:
        rows.append([score["span"], *(_number(score[side]) for side in ("numpy", "torch", "baseline"))])
        if goals:
            rows[-1].append("" if score["target"] is None else f"< {score['target']:g}")
    measure = figures["measure"] + "".join(f": {MEASURES[name]}" for name in [figures["measure"]] if name in MEASURES)
    return _section("Test error", _table(head, rows, caption=measure))


def _fault(run: Run, verdict: Verdict) -> Iterable[str]:
    """The stages of the step at which the sides differ, with what rounding explains."""
    fault = verdict.fault
    if fault is None:
        return
    (rows,) = replay(run, fault.step, fault.step)
    caption = (
        f"Step {fault.step}, made on both sides from the same weights. The stage {fault.stage} is the first in which "
    )
    caption += f"a tensor differs by more than rounding explains, and there {fault.tensor} the most. {_units(run)}"
    yield _section("Where the sides differ", _stages(rows, caption, fault))


def _parity(run: Run) -> str:
    """Every tensor of the first step and of the last with finite losses."""
    finite = [ours.step for ours, theirs in run.pairs if math.isfinite(ours.loss + theirs.loss)]
    tables = []
    for step in dict.fromkeys((1, *finite[-1:])):
        (rows,) = replay(run, step, step, controls=0)
        worst = max(rows, key=lambda row: row.ulps)
        summary = f"Step {step}: {len(rows)} tensors, "
        if worst.ulps:
            summary += f"largest difference in ulps: {_number(worst.ulps)}, of {worst.tensor} ({worst.stage})"
        else:
            summary += "all equal to the last bit"
        table = _stages(rows, f"Step {step}. {_units(run)}")
        tables.append(f"<details><summary>{escape(summary)}</summary>{table}</details>")
    intro = "<p>Every tensor of a step, when both sides make it from the same weights, optimizer state and carry:</p>"
    return _section("Parity at the first and the last step", intro + "".join(tables))


def _units(run: Run) -> str:
    return (
        "The difference is a tensor's largest; relative to its largest entry; in ulps, units in the last place of "
        f"that entry in {run.settings.coarser} (of a change: of the weight that it is added to)."
    )


def _stages(rows: Sequence[Row], caption: str, fault: Row | None = None) -> str:
    head = ["stage", "tensor", "difference", "relative", "ulps"]
    cells, marked = [], None
    for i, row in enumerate(rows):
        relative = row.difference / row.scale if row.scale > 0 else 0.0
        name = row.tensor + (f" (not on the {row.missing_on} side)" if row.missing_on else "")
        cells.append([row.stage, name, _small(row.difference), _small(relative), _number(row.ulps)])
        if fault is not None:
            most = (row.stage, row.tensor) == (fault.stage, fault.tensor)
            marked = i if most else marked
            said = "the fault" if most else "differs" if row.excess > STAGE else ""
            cells[-1] += [_small(row.rounding), said]
    if fault is not None:
        head += ["rounding explains", ""]
    return _table(head, cells, text=2, caption=caption, marked=marked)


def _command(command: str) -> str:
    code = f'<pre tabindex="0"><code id="command">{escape(command)}</code></pre>'
    return _section("Made by", f'{code}<button type="button" id="copy">Copy</button>')


def _facts(heading: str, facts: dict[str, Any]) -> str:
    terms = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(_said(value))}</dd></div>" for name, value in facts.items()
    )
    return _section(heading, f"<dl>{terms}</dl>")


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items()) or "none"
    return "none" if value is None else str(value)


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{content}</section>"


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str, text: int = 1, marked: int | None = None
) -> str:
    """Return a table in a box of its own that scrolls; the first ``text`` columns are words."""

    def line(tag: str, cells: Sequence[str], kind: str = "") -> str:
        classes = [' class="text"' if i < text else "" for i in range(len(cells))]
        inner = "".join(f"<{tag}{c}>{escape(cell)}</{tag}>" for c, cell in zip(classes, cells, strict=True))
        return f"<tr{kind}>{inner}</tr>"

    body = "".join(line("td", row, ' class="fault"' if i == marked else "") for i, row in enumerate(rows))
    return (
        f'<p class="soft">{escape(caption)}</p><div class="scroll" tabindex="0" role="region" aria-label="table">'
        f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table></div>"
    )


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _small(value: float) -> str:
    return f"{value:.1e}" if value else "0"
