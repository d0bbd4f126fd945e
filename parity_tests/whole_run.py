"""pytest plug-in: a run of all tests uses two cores and measures coverage; a run of chosen tests does neither.

Some tests alone cover little, and start faster in one process. What is given by hand wins: ``-n 0``, ``--no-cov``.
A file stays on one core, from top to bottom: the blocks of a Markdown page share their names.

Coverage more than doubles the time of a test. Of a test with many parameters it is measured in some cases only: all are
run, but the hundredth walks the lines that the others walked. The blocks of the pages are for readers, and left out.
"""

import copy
import re
from collections.abc import Generator

import pytest

CHOICES = ("file_or_dir", "keyword", "markexpr", "collectonly", "lf", "failedfirst", "stepwise", "usepdb", "trace")
ALL = ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile", "--cov", "--cov-report=term", "--no-cov-on-fail"]
MANY = 30  # cases of one test: then only the first are measured, and one in so many of the rest
MEASURED, EVERY = 6, 12


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Put the options of a whole run before what was given, and parse again, before other plug-ins look."""
    given = early_config.known_args_namespace
    if not any(getattr(given, name, None) for name in CHOICES):
        args[:0] = ALL
        early_config.known_args_namespace = parser.parse_known_args(args, namespace=copy.copy(early_config.option))
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave coverage out of most cases of a test that has many, and of the pages."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, many in cases.items():
        alike = len(many) > MANY and not re.search("refuse|bad", test)  # each refusal is a line of its own
        for i, item in enumerate(many):
            if (alike and i >= MEASURED and i % EVERY) or item.path.suffix == ".md":
                item.add_marker("no_cover")
