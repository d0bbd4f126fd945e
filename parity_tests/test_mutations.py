"""Every mistake of the mutation suite is noticed, and the page that tells which weak tests let it pass is true."""

import re
from collections import Counter

import numpy as np
import pytest

from parity_tests.mutations.judges.judge import WEAK_TESTS, differs, notices, notices_no_fall
from parity_tests.mutations.registry import MISTAKES, Mistake
from parity_tests.mutations.table import PAGE, outcome, page, weak_tests

JUDGES = list(dict.fromkeys(mistake.judge for mistake in MISTAKES))


# numbered: the text of a judge may hold the address of a function, and workers must give tests the same names
@pytest.mark.parametrize("judge", JUDGES, ids=[f"{type(judge).__name__}-{i}" for i, judge in enumerate(JUDGES)])
def test_what_is_right_passes_every_test(judge) -> None:
    """Else a weak test could seem to notice."""
    assert not notices(judge)
    assert not notices_no_fall(judge)
    weakened = {name: judge.weakened(name) for name in WEAK_TESTS if name != "falls"}
    assert [name for name, weak in weakened.items() if weak is not None and notices(weak)] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_the_strong_check_notices(mistake: Mistake) -> None:
    noticed, _ = outcome(mistake)
    assert noticed
    assert not notices(mistake.judge)  # the edit is gone


def test_each_mistake_has_its_own_name_and_edits() -> None:
    assert [name for name, count in Counter(map(str, MISTAKES)).items() if count > 1] == []
    edits = Counter((mistake.module, mistake.attribute, mistake.edits) for mistake in MISTAKES)
    assert [edit for edit, count in edits.items() if count > 1] == []


@pytest.mark.parametrize(("name", "text"), [("weak tests", weak_tests), ("tables", page)], ids=["weak tests", "tables"])
def test_the_page_says_what_the_runs_say(name: str, text) -> None:
    found = re.search(rf"<!-- {name} -->\n\n(.*)\n\n<!-- /{name} -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    assert found[1] == text(), "python -m parity_tests.mutations.table --write"


def test_the_mistakes_that_the_page_speaks_of_are_there() -> None:
    rows = re.findall(r"^\|.*\| (`[^|]*`) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert len(rows) == 15
    assert named - {mistake.id for mistake in MISTAKES} == set()


def test_no_difference_is_overlooked() -> None:
    a = np.array([1.0, 2.0])
    assert not differs(a, a.copy(), 0)
    assert differs(a, a + np.array([0, 3e-12]), 1e-12)
    assert not differs(a, a + np.array([0, 1e-12]), 1e-12)
    assert differs(a, a.astype(np.float32), 1)
    assert differs(a, a[:, None], 1)
    assert differs(None, a, 1)
    assert differs(a, None, 1)
    assert differs(np.array([np.nan, 2.0]), a, 1)
    assert differs("freed", "written", 1)
    assert differs(a, "written", 1)
