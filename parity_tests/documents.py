"""pytest plug-in: runs every block of the documents and every example of the docstrings.

A Markdown page is a file of tests, each ```` ```python ```` fence of it a test; the blocks of a page share their names.
The examples of a docstring know the names of their module, and ``np``.
"""

from pathlib import Path

import numpy as np
import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

PAGES = Sybil(
    [PythonCodeBlockParser()], path=str(Path(__file__).parents[1]), patterns=["README.md", "derivations/*.md"]
)
pytest_collect_file = PAGES.pytest()


def pytest_configure(config: pytest.Config) -> None:
    config.option.doctestmodules = True


@pytest.fixture(autouse=True)
def _np_in_doctests(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["np"] = np
