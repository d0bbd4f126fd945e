"""``rnn-parity inplace``, in process."""

import json
import re
from pathlib import Path

import pytest

from parity_tests.mutations import mutated
from torch_rnn.cli.main import main
from torch_rnn.inplace.variants import VARIANTS


def test_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inplace"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    headings = [line for line in out.splitlines() if line[:2] in ("1.", "2.", "3.", "4.", "5.", "6.")]
    assert len(headings) == 6
    assert max(map(len, out.splitlines())) <= 100
    assert "which saved version 2 and finds 3: the error" in out


def test_the_list_names_every_variant_and_runs_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inplace", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(VARIANTS)


def test_one_variant(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "fused.json"
    assert main(["inplace", "--variant", "fused", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert "runs through all 5 windows" in out
    assert "Error of the gradient against the true one" in out
    (name, told), *others = json.loads(path.read_text()).items()
    assert not others
    assert name == "fused"
    assert told["settings"]["update"] == "fused"
    assert told["differences"] == []
    assert len(told["numpy"]["windows"]) == len(told["torch"]["windows"]) == len(told["errors_of_the_gradient"]) == 5
    assert all(f"{error:.2%}" in out for error in told["errors_of_the_gradient"])
    assert told["errors_of_the_gradient"][1] < 1e-12 < told["errors_of_the_gradient"][3]


def test_all_variants_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    assert main(["inplace", "--json", str(path)]) == 0
    assert capsys.readouterr().out.endswith(f"wrote {path}\n")
    told = json.loads(path.read_text())
    assert list(told) == list(VARIANTS)
    assert told["article"]["torch"]["at"] == 2
    assert told["article"]["numpy"]["failure"]["name"] == "weight_hh_l0"
    assert told["article"]["numpy"]["reads"] == ["rnn.weight_hh_l0"]


def test_exit_status_1_where_the_libraries_differ(capsys: pytest.CaptureFixture[str]) -> None:
    with mutated("numpy_rnn.tape", "Saved.read", ("self._counter.value != self.version", "False")):
        assert main(["inplace", "--variant", "article"]) == 1
    assert "THEY DIFFER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--variant", "datach"], "argument --variant: expected one of article, .*, got 'datach'"),
        (["--variant", "fused", "--list"], "argument --list: not allowed with argument --variant"),
        (["--list", "--json", "x.json"], "argument --json: not allowed with argument --list"),
        (["--json", "no/such/directory/x.json"], "argument --json: expected a file in a directory that exists"),
        (["--json", "."], "argument --json: expected a file in a directory that exists, got ."),
        (["--json"], "argument --json: expected one argument"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["inplace", *arguments])
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert re.search(message, err), err
    assert list(tmp_path.iterdir()) == []
