"""Sphinx extension: the equations of the chapters, their anchors, and the way to the lines that compute them and back.

What a number such as ``(2.25)`` means is read from the files at build time: an equation from the ``math`` fence of a
chapter that has it as its tag, a line that computes it from a comment that ends in it.
"""

import json
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).parents[2]
ANCHOR = re.compile(r'<a id="([^"]+)">\s*</a>')
TAGGED = re.compile(r"^```math\n(?P<tex>(?:(?!^```).)*?)^```$", re.MULTILINE | re.DOTALL)
TAG = re.compile(r"\s*\\tag\{([\d.]+)\}")
CITED = re.compile(r"(?<![\w)\]])\((?P<number>[1-9]\d?\.[1-9]\d*)\)")  # not the argument of a call
CHAPTER = re.compile(r"derivations/(?P<page>[\w-]+)\.md")
COMPUTES = re.compile(r"#.*?((?: \(\d+\.\d+\))+)$")
COMMENT = re.compile(r'(<span class="(?:c1|sd)">)(.*?)(</span>)')
CONTENTS = """
```{toctree}
:hidden:
:glob:
:caption: Derivations

Overview and notation <derivations/README>
derivations/[0-9]*
derivations/tests-that-cannot-fail
```

```{toctree}
:hidden:
:caption: Reference

derivations/site/reference/recurrent
derivations/site/reference/modules
derivations/site/reference/tensor
derivations/site/reference/sequences
derivations/site/reference/losses
derivations/site/reference/optimizers
derivations/site/reference/weights
derivations/site/reference/gradcheck
derivations/site/reference/cells
derivations/site/reference/torch
derivations/site/source
CONTRIBUTING
```
"""


@cache
def equations() -> dict[str, tuple[str, str]]:
    """Return number -> (page, TeX without its tag) of every numbered equation."""
    found = {}
    for path in sorted((ROOT / "derivations").glob("[0-9]*.md")):
        for fence in TAGGED.finditer(path.read_text(encoding="utf-8")):
            if tag := TAG.search(fence["tex"]):
                found[tag[1]] = (f"derivations/{path.stem}", TAG.sub("", fence["tex"]).strip())
    return found


@cache
def lines_that_compute(path: str) -> dict[str, list[int]]:
    """Return number -> lines of the file whose comment ends in it; where there is none, those that name it."""
    ends: dict[str, list[int]] = {}
    names: dict[str, list[int]] = {}
    for line, text in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
        for number in CITED.findall(text):
            names.setdefault(number, []).append(line)
        if end := COMPUTES.search(text):
            for number in CITED.findall(end[1]):
                ends.setdefault(number, []).append(line)
    return names | ends


def href(number: str, page: str) -> str:
    """Return the address of an equation as seen from a page."""
    return relative_uri(f"{page}.html", f"{equations()[number][0]}.html") + f"#eq-{number}"


def link_comments(html: str, page: str) -> str:
    """Return highlighted code in which a comment or docstring leads to the equations and chapters that it names."""

    def number(found: re.Match[str]) -> str:
        known = found["number"] in equations()
        return f'<a href="{href(found["number"], page)}">{found[0]}</a>' if known else found[0]

    def chapter(found: re.Match[str]) -> str:
        there = (ROOT / found[0]).is_file()
        address = relative_uri(f"{page}.html", f"derivations/{found['page']}.html")
        return f'<a href="{address}">{found[0]}</a>' if there else found[0]

    def link(span: re.Match[str]) -> str:
        return span[1] + CHAPTER.sub(chapter, CITED.sub(number, span[2])) + span[3]

    return COMMENT.sub(link, html)


class Anchors(SphinxTransform):
    """Make ``<a id="eq-2.7"></a>``, a target on GitHub, one for Sphinx, which then finds every link that misses."""

    default_priority = 300

    def apply(self) -> None:
        for paragraph in list(self.document.findall(nodes.paragraph)):
            if all(isinstance(child, nodes.raw) for child in paragraph) and (
                anchor := ANCHOR.fullmatch("".join(child.astext() for child in paragraph))
            ):
                target = nodes.target("", "", ids=[anchor[1]], names=[anchor[1]])
                self.document.note_explicit_target(target)
                paragraph.replace_self(target)


class Display(SphinxTransform):
    """Hand display mathematics on as it stands: inside the ``split`` that Sphinx adds, MathJax refuses a tag."""

    default_priority = 300

    def apply(self) -> None:
        for block in self.document.findall(nodes.math_block):
            block["no-wrap"] = True
            block.children = [nodes.Text(rf"\[{block.astext()}\]")]


def link_page_comments(app: Sphinx, page: str, template: str, context: dict[str, object], doctree: object) -> None:
    if isinstance(context.get("body"), str):
        context["body"] = link_comments(str(context["body"]), page)


def add_contents(app: Sphinx, page: str, content: list[str]) -> None:
    """Give the start page, a plain README on GitHub, the order of all pages."""
    if page == app.config.root_doc:
        content[0] += CONTENTS


def write_equations(app: Sphinx, error: Exception | None) -> None:
    """Write what ``site.js`` shows where an equation is cited."""
    if error is None:
        texts = {number: tex for number, (_, tex) in equations().items()}
        (app.outdir / "_static/equations.js").write_text(f"const EQUATIONS = {json.dumps(texts)};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Anchors)
    app.add_transform(Display)
    app.connect("source-read", add_contents)
    app.connect("html-page-context", link_page_comments)
    app.connect("build-finished", write_equations)
    app.set_html_assets_policy("always")  # an equation cited by a page of code is shown there too
    return {"parallel_read_safe": True}
