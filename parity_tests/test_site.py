"""The site is built from the Markdown without a warning, and the check of it in a browser finds what is wrong.

Four pages are looked at here, one of each kind; ``derivations/site/check.py`` looks at all.
"""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from derivations.site.build import build
from derivations.site.check import CHROMIUM, FLAGS, Look, check, wrong_links
from derivations.site.index import PAGE, with_index

ROOT = Path(__file__).parents[1]
CHAPTER, SOURCE = "derivations/02-bptt.html", "source/numpy_rnn/cells/rnn.py.html"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # tracing Sphinx takes long and covers nothing
        assert build(out) == 0
    return out


def test_an_equation_leads_to_its_lines_and_they_lead_back(site: Path) -> None:
    lines = (ROOT / "numpy_rnn/cells/rnn.py").read_text(encoding="utf-8").splitlines()
    (line,) = [i for i, text in enumerate(lines, 1) if text.endswith("(2.25)")]
    assert f'href="../{SOURCE}#L{line}">{line}</a>' in (site / CHAPTER).read_text(encoding="utf-8")
    (back,) = re.findall(rf'<span id="L{line}">.*', (site / SOURCE).read_text(encoding="utf-8"))
    assert '<a href="../../../derivations/02-bptt.html#eq-2.25">(2.25)</a>' in back


def test_the_reference_links_what_an_entry_computes(site: Path) -> None:
    page = (site / "derivations/site/reference/cells.html").read_text(encoding="utf-8")
    entry = page[page.index('id="numpy_rnn.cells.rnn.backward"') :]
    assert 'href="../../02-bptt.html#eq-2.25"' in entry[: entry.index("</dl>")]


def test_the_index_in_the_book_follows_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == with_index(text), "python -m derivations.site.index"


@needs_chromium
def test_the_check_finds_nothing(site: Path) -> None:
    assert check(site, ["index.html", CHAPTER, "derivations/site/reference/recurrent.html", SOURCE], None) == []


FAULTS = [  # in one page: what stands there, what is put in its place, what the check must say
    (r"\tag{1.1}", r"\tagg{1.1}", r"an error instead of an equation: Undefined control sequence \\tagg"),
    (r"\tag{1.2}", r"\tag{1.2", r"not drawn: \\\[h_t = \\tanh\(z_t\)"),
    (r"\tag{1.3}", "", r"6 numbered equations, 10 tags: \['1.1', '1.2', '1.3', '1.5'\]"),
    (r"\[h_t = \max(z_t, 0)", r"h_t = \max(z_t, 0)", r"not drawn: h_t = \\max"),
    ('href="#eq-1.7"', 'href="#eq-1.77"', "the link #eq-1.77 leads to no anchor"),
    (SOURCE, f"{SOURCE}x", "rnn.py.htmlx leads to no file"),
    ("<h2>", "<table><tr><td>" + "wide" * 20 + "</td></tr></table><h2>", "wider than 390 pixels: table widewide"),
    ("<h2>", "<p style='color: #aaa'>pale</p><h2>", r"light: contrast 2.\d of p"),
    ("<h2>", "<p style='color: #555'>dim</p><h2>", r"dark: contrast 2.\d of p"),
    ("<h2>", "<script>console.error('no')</script><h2>", "console error: no"),
    ("<h2>", "<script>undefined.no</script><h2>", "script error: Cannot read properties"),
    ("<h2>", "<img src='http://localhost:9/x.png'><h2>", "asks the network for http://localhost:9/x.png"),
]


@needs_chromium
def test_the_check_finds_every_planted_fault(site: Path, tmp_path: Path) -> None:
    shutil.copytree(site / "_static", tmp_path / "_static")
    (tmp_path / "derivations").mkdir()
    text = (site / "derivations/01-forward.html").read_text(encoding="utf-8")
    for good, bad, _ in FAULTS:
        assert good in text
        text = text.replace(good, bad, 1)
    (tmp_path / "derivations/01-forward.html").write_text(text, encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        look = Look(browser, tmp_path, None)
        look.check("derivations/01-forward.html")
        browser.close()
    said = "\n".join([*wrong_links(tmp_path), *look.failures])
    assert [found for _, _, found in FAULTS if not re.search(found, said)] == [], said
