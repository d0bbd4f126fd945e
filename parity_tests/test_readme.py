"""What README.md promises."""

import contextlib
import io
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch

from torch_rnn import version
from torch_rnn.family import table
from torch_rnn.vectors.cases import all_specs

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_stands_below_it() -> None:
    found = re.search(r"```python\n(.*?)```\n\nIt prints\n\n```text\n(.*?)```", README, re.DOTALL)
    assert found is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found[1], "README.md", "exec"), {})
    assert printed.getvalue() == found[2]


def test_the_report_of_the_port_ends_as_it_stands_there() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
    found = re.search(r"ends in\n\n```text\n(.*?)```", README, re.DOTALL)
    assert found is not None
    assert str(names["report"]).splitlines()[-2:] == found[1].splitlines()


def test_the_number_of_golden_cases() -> None:
    assert f"writes {len(all_specs())} small and awkward cases" in README


def test_the_table_of_the_family_is_what_there_is() -> None:
    assert f"<!-- family -->\n{table()}\n<!-- /family -->" in README


def test_a_name_that_pytorch_no_longer_has_is_noticed(monkeypatch) -> None:
    monkeypatch.delattr(torch.nn, "GRUCell")
    with pytest.raises(AttributeError, match=r"torch\.nn has no GRUCell"):
        table()


def test_a_checkout_that_is_not_installed_has_a_version(monkeypatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(version, "version", missing)
    assert version.project_version() == "unknown"


def test_continuous_integration_runs_the_test_command_word_for_word() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", README)
    assert len(commands) == 2
    assert commands[0].endswith("rnn-parity curves")
    assert commands[1].endswith("-m pytest")
    assert commands[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
