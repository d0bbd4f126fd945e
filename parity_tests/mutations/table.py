"""Run every mistake under every weak test and print which let it pass: ``python -m parity_tests.mutations.table``.

With ``--write`` the tables go into derivations/tests-that-cannot-fail.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from numpy_rnn.files import write_aside
from parity_tests.mutations.judges.judge import WEAK_TESTS, notices, verdicts
from parity_tests.mutations.registry import MISTAKES, Mistake

PAGE = Path(__file__).parents[2] / "derivations" / "tests-that-cannot-fail.md"
PASSES, NOT_WEAKER = "●", "–"
Verdicts = dict[str, bool | None]


@cache
def outcome(mistake: Mistake) -> tuple[bool, Verdicts]:
    """Whether the strong check notices the mistake, and whether each weak test does."""
    with mistake.planted():
        return notices(mistake.judge), verdicts(mistake.judge)


def areas() -> dict[str, list[Mistake]]:
    found: dict[str, list[Mistake]] = {}
    for mistake in MISTAKES:
        found.setdefault(mistake.area, []).append(mistake)
    return found


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def head(first: str) -> list[str]:
    return [row([first, *WEAK_TESTS]), row(["---", *[":-:"] * len(WEAK_TESTS)])]


def counted(mistakes: Sequence[Mistake]) -> list[str]:
    """For each weak test how many it lets pass of those that it could be tried on."""
    cells = []
    for name in WEAK_TESTS:
        tried = [v for v in (outcome(mistake)[1][name] for mistake in mistakes) if v is not None]
        cells.append(f"{tried.count(False)}/{len(tried)}" if tried else NOT_WEAKER)
    return cells


def summary() -> Iterator[str]:
    yield from head("area")
    for area, mistakes in areas().items():
        yield row([f"[{area}](#{area.lower().replace(',', '').replace(' ', '-')})", *counted(mistakes)])
    yield row([f"all {len(MISTAKES)}", *counted(MISTAKES)])


def details(mistakes: Sequence[Mistake]) -> Iterator[str]:
    yield from head("mistake")
    marks = {True: "", False: PASSES, None: NOT_WEAKER}
    for mistake in mistakes:
        yield row([mistake.id, *(marks[v] for v in outcome(mistake)[1].values())])


def page() -> str:
    """The tables, one for all areas and then one for each."""
    parts = ["\n".join(summary())]
    for area, mistakes in areas().items():
        parts += [f"### {area}", "\n".join(details(mistakes))]
    return "\n\n".join(parts)


def weak_tests() -> str:
    return "\n".join([row(["test", "what is weak"]), row(["---", "---"]), *map(row, WEAK_TESTS.items())])


def write() -> None:
    """Put the tables into their page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("weak tests", weak_tests()), ("tables", page())):
        start, _, rest = text.partition(f"<!-- {name} -->")
        end = rest.partition(f"<!-- /{name} -->")[2]
        text = f"{start}<!-- {name} -->\n\n{table}\n\n<!-- /{name} -->{end}"
    write_aside(PAGE, lambda aside: aside.write_text(text, encoding="utf-8") and None)


if __name__ == "__main__":
    print(page())
    if "--write" in sys.argv[1:]:
        write()
