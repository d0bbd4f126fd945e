"""What ``rnn-parity bench`` prints: every figure of a record, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from torch_rnn.measure.bench import PHASES, Record

WIDTH = 100
LETTERS = """\
Each figure is PyTorch's time over NumPy's, the ratio of two medians: above 1 NumPy is faster. "spread" is where the
middle half of the rounds' own ratios of "both" lies. "limit" is the time of the matrix products alone over NumPy's time
for "both": 1 would be products and nothing else. "step" is a whole training step with
{optimizer}. Rows are T, B, I, H."""
MEMORY = """\
Memory, in MB of 10^6 bytes. "saved": what the graph keeps for backward, without the parameters; "least": what it has to
keep unless it multiplies by a weight again; goal: NumPy's over PyTorch's. "peak": the most allocated at once in a
training step above what stood before; NumPy by tracemalloc, PyTorch by its profiler, both without what BLAS and oneDNN
take for themselves."""
GROWTH = """\
Growth: exponents p of time and saved bytes as (size)^p, least squares in log-log, around T, B, I, H = {base}."""
RECOMPUTE = """\
recompute_every=k at T, B, I, H = {label}: bytes saved, the most allocated at once by forward and backward, and their
time over that without it."""
OPTIMIZERS = """\
Optimizers: PyTorch's time over NumPy's for one step over LSTM{sizes}; "temporaries": the most that NumPy's step
allocates at once, over its largest parameter."""
OVERHEAD = """\
Tape and modules: what a module call, forward and backward, of T = B = I = H = 1 takes besides its cell, in calls of a
NumPy ufunc on ten elements."""


def text(record: Record) -> str:
    """Return the whole report."""
    parts = [header(record), _fill(LETTERS.format(optimizer=record["settings"]["optimizer"]))]
    parts += [_rows(record, cell, dtype) for cell, dtype in pairs(record)]
    parts += [_means(record), _memory(record), _growth(record), *_recompute(record)]
    parts += [_optimizers(record), _overhead(record)]
    return "\n\n".join(parts)


def header(record: Record) -> str:
    """Return machine, versions, threads and date."""
    return _fill(f"Measured {conditions(record)}.")


def conditions(record: Record) -> str:
    """Return where, when and with what, as one phrase."""
    machine, versions, settings = record["machine"], record["versions"], record["settings"]
    jax = f"jax {versions['jax']}" if versions["jax"] else "jax: not installed"
    quick = ", with --quick: few rounds, of little weight" if settings["quick"] else ""
    return (
        f"{record['date']} on {machine['processor']} ({machine['cores']} cores, {machine['system']}), "
        f"{threads(record)}; NumPy {versions['numpy']} with {machine['blas']}, PyTorch {versions['torch']} "
        f"{'with' if machine['onednn'] else 'without'} oneDNN, {jax}, Python {versions['python']}{quick}"
    )


def threads(record: Record) -> str:
    """Return how many threads each library had, in words."""
    number = record["settings"]["threads"]
    return f"{number} thread{'s' if number > 1 else ''} each"


def pairs(record: Record) -> list[tuple[str, str]]:
    """Return each cell and dtype of the record, in order."""
    return list(dict.fromkeys((row["cell"], row["dtype"]) for row in record["rows"]))


def verdict(goals: Sequence[dict[str, Any]]) -> str:
    """Return what became of some goals, in a few characters.

    >>> verdict([{"name": "ratio", "goal": 0.75, "at_most": False, "met": True}])
    '>= 0.75 met'
    """
    return ", ".join(
        ("limit " if goal["name"] == "of the limit" else "")
        + f"{'<=' if goal['at_most'] else '>='} {goal['goal']:g} {'met' if goal['met'] else 'MISSED'}"
        for goal in goals
    )


def _rows(record: Record, cell: str, dtype: str) -> str:
    """Return the table of one cell and dtype."""
    rows = [row for row in record["rows"] if (row["cell"], row["dtype"]) == (cell, dtype)]
    jax = any(row["jax_ratio"] for row in rows)
    title = f"{cell.upper()} {dtype}"
    lines = [
        f"{title:<31}{'forward':>8}{'backw.':>7}{'both':>6}{'spread':>12}{'step':>6}{'limit':>6}"
        f"{'jax' if jax else '':>{6 if jax else 0}}  goal"
    ]
    for row in rows:
        forward, backward, both, step = (short(row["ratio"][phase]["median"]) for phase in PHASES)
        spread = f"{short(row['ratio']['both']['q1'])}-{short(row['ratio']['both']['q3'])}"
        peer = f"{short(row['jax_ratio']['median']) if row['jax_ratio'] else '-':>6}" if jax else ""
        line = f"{row['label']:<31}{forward:>8}{backward:>7}{both:>6}{spread:>12}{step:>6}"
        goals = [verdict([goal]) for goal in row["goals"]]
        lines.append(f"{line}{short(row['of_limit']['both']['median']):>6}{peer}  {goals[0]}")
        lines += [f"{goal:>{WIDTH}}" for goal in goals[1:]]
    return "\n".join(lines)


def _means(record: Record) -> str:
    lines = [f"{'geometric means of both':<31}{'rows':>8}{'mean':>7}  goal"]
    for mean in record["means"]:
        goal = verdict([mean]) if "goal" in mean else ""
        lines.append(f"{mean['name']:<31}{mean['rows']:>8}{short(mean['value']):>7}  {goal}".rstrip())
    return "\n".join(lines)


def _memory(record: Record) -> str:
    lines = [
        _fill(MEMORY),
        f"{'':<30}{'saved: NumPy':>13}{'PyTorch':>8}{'least':>7}{'of least':>9}{'peak: NumPy':>12}{'PyTorch':>8}  goal",
    ]
    for row in record["memory"]:
        saved, peak = row["saved"], row["peak"]
        lines.append(
            f"{row['cell'] + ' ' + row['dtype']:<13}{row['label']:<17}"
            f"{_mb(saved['numpy']):>13}{_mb(saved['torch']):>8}{_mb(saved['least']):>7}"
            f"{saved['numpy'] / saved['least']:>9.2f}{_mb(peak['numpy']):>12}{_mb(peak['torch']):>8}"
            f"  {verdict(row['goals'])}"
        )
    return "\n".join(lines)


def _growth(record: Record) -> str:
    base = record["growth"][0]["base"]
    lines = [
        _fill(GROWTH.format(base=", ".join(map(str, base.values())))),
        f"{'':<20}{'time: NumPy':>13}{'PyTorch':>9}{'saved: NumPy':>14}{'PyTorch':>9}  {'sizes':<16}goal for saved",
    ]
    for entry in record["growth"]:
        time, saved = entry["time_exponent"], entry["saved_exponent"]
        name = f"{entry['cell']} {entry['dtype']} {entry['varied']}"
        figures = f"{time['numpy']:>13.2f}{time['torch']:>9.2f}{saved['numpy']:>14.2f}{saved['torch']:>9.2f}"
        lines.append(f"{name:<20}{figures}  {' '.join(map(str, entry['sizes'])):<16}{verdict(entry['goals'])}".rstrip())
    return "\n".join(lines)


def _recompute(record: Record) -> list[str]:
    entries = record.get("recompute", [])
    if not entries:
        return []
    lines = [
        _fill(RECOMPUTE.format(label=entries[0]["label"])),
        f"{'':<20}{'k':>6}{'saved MB':>10}{'peak MB':>9}{'time':>7}{'spread':>12}",
    ]
    for entry in entries:
        for point in entry["points"]:
            time, k = point["time"], "none" if point["every"] is None else point["every"]
            name = f"{entry['cell']} {entry['dtype']}"
            spread = f"{short(time['q1'])}-{short(time['q3'])}"
            sizes = f"{_mb(point['saved']):>10}{_mb(point['peak']):>9}"
            lines.append(f"{name:<20}{k:>6}{sizes}{short(time['median']):>7}{spread:>12}")
    return ["\n".join(lines)]


def _optimizers(record: Record) -> str:
    sizes = record["optimizers"][0]["sizes"]
    lines = [
        _fill(OPTIMIZERS.format(sizes=tuple(sizes))),
        f"{'':<20}{'for-loop':>9}{'spread':>12}{'foreach':>9}{'fused':>7}{'temporaries':>13}  goal",
    ]
    for entry in record["optimizers"]:
        loop, found = entry["ratio"]["for-loop"], entry["ratio"]
        foreach, fused = (short(found[name]["median"]) if name in found else "-" for name in ("foreach", "fused"))
        spread = f"{short(loop['q1'])}-{short(loop['q3'])}"
        name = f"{entry['name']} {entry['dtype']}"
        temporaries = entry["temporaries"] / entry["largest_parameter"]
        lines.append(
            f"{name:<20}{short(loop['median']):>9}{spread:>12}{foreach:>9}{fused:>7}{temporaries:>13.2f}"
            f"  {verdict(entry['goals'])}"
        )
    return "\n".join(lines)


def _overhead(record: Record) -> str:
    lines = [_fill(OVERHEAD)]
    for entry in record["overhead"]:
        name = f"{entry['cell']} {entry['dtype']}"
        lines.append(f"{name:<20}{entry['ufunc_calls']['median']:>9.1f}  {verdict(entry['goals'])}")
    imported = record["imports"][0]
    ratio = imported["ratio"]["median"]
    lines += ["", f"Importing numpy_rnn takes {ratio:.2f} x importing numpy  {verdict(imported['goals'])}"]
    return "\n".join(lines)


def markdown(record: Record) -> str:
    """Return the table of ratios for README.md: a row for each shape, a column for each cell and dtype."""
    columns = pairs(record)
    lines = [f"| T, B, I, H | {' | '.join(f'{cell.upper()} {dtype}' for cell, dtype in columns)} |"]
    lines.append("|---|" + "---|" * len(columns))
    by_label = sorted(record["rows"], key=lambda row: [r["label"] for r in record["rows"]].index(row["label"]))
    for label, group in groupby(by_label, key=lambda row: row["label"]):
        figures = {(row["cell"], row["dtype"]): short(row["ratio"]["both"]["median"]) for row in group}
        lines.append(f"| {label} | {' | '.join(figures.get(column, '') for column in columns)} |")
    means = {(mean["cell"], mean["dtype"]): mean["value"] for mean in record["means"]}
    lines.append(f"| geometric mean | {' | '.join(short(means[column]) for column in columns)} |")
    ratios = [row["ratio"]["both"] for row in record["rows"]]
    spreads = sorted((ratio["q3"] - ratio["q1"]) / ratio["median"] for ratio in ratios)
    caption = (
        "PyTorch's time over NumPy's, forward and backward together; above 1 NumPy is faster. Whole grid: geometric "
        f"mean {short(means[None, None])}. Ratios of medians; the middle half of a row's rounds spans "
        f"{spreads[len(spreads) // 2]:.0%} of its ratio in the middle row, {spreads[-1]:.0%} in the widest. "
        f"Measured {conditions(record)}."
    )
    return "\n".join([*lines, "", *textwrap.wrap(caption, 120, break_on_hyphens=False)])


def short(value: float) -> str:
    """Return a ratio with two to three digits.

    >>> short(0.654), short(1.25), short(12.5), short(250.0)
    ('0.65', '1.25', '12.5', '250')
    """
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _mb(size: int) -> str:
    return f"{size / 1e6:.3g}"


def _fill(paragraph: str) -> str:
    return textwrap.fill(" ".join(paragraph.split()), WIDTH, break_on_hyphens=False)
