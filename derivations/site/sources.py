"""Sphinx extension: a page for each source file, with an anchor at each line, and the links that lead there.

A link of the Markdown to a source file leads to its page, one to a folder into the list of all source files. Under an
equation the link names the lines that compute it.
"""

import ast
import inspect
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from derivations.site.equations import ROOT, TAG, lines_that_compute

LIST = "derivations/site/source"
PACKAGES = ("numpy_rnn", "torch_rnn")
linked: set[str] = set()  # files outside the packages that a page links
contents: dict[tuple[Any, ...], str] = {}


def href(path: str, page: str, line: int | None = None) -> str:
    """Return the address of a source file's page, or of a line on it, as seen from a page."""
    return relative_uri(f"{page}.html", f"source/{path}.html") + (f"#L{line}" if line else "")


def files() -> list[str]:
    paths = [path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted({*paths, *linked})


class SourceLinks(SphinxTransform):
    """Send links to files of the repository to their pages, and those below an equation to its lines."""

    default_priority = 310

    def apply(self) -> None:
        page = self.env.docname
        for node in [*self.document.findall(addnodes.download_reference), *self.document.findall(_to_folder)]:
            path = os.path.normpath(PurePosixPath(page).parent / node["reftarget"]).replace(os.sep, "/")
            if (ROOT / path).is_dir():
                listed = any(PurePosixPath(file).parent == PurePosixPath(path) for file in files())
                address = relative_uri(f"{page}.html", f"{LIST}.html") + (f"#{folder_id(path)}" if listed else "")
            elif (ROOT / path).is_file():
                linked.add(path)
                address = href(path, page)
            else:
                continue  # Sphinx says that there is no such file
            link = nodes.reference("", "", *node[0].children, refuri=address, internal=True)
            node.replace_self(link)
            self.name_lines(link, path, page)

    def name_lines(self, link: nodes.reference, path: str, page: str) -> None:
        paragraph, lines = link.parent, []
        if isinstance(paragraph, nodes.paragraph) and paragraph.astext().startswith("Implemented in "):
            paragraph["classes"] = ["implemented"]
            above = paragraph.parent[paragraph.parent.index(paragraph) - 1]
            if tag := TAG.search(above.astext()):
                lines = lines_that_compute(path).get(tag[1], [])
        where = paragraph.index(link) + 1
        for i, line in reversed(list(enumerate(lines))):
            number = nodes.reference("", str(line), refuri=href(path, page, line), internal=True)
            paragraph.insert(where, [nodes.Text(", " if i else " line " if len(lines) == 1 else " lines "), number])


def _to_folder(node: nodes.Node) -> bool:
    return (
        isinstance(node, addnodes.pending_xref)
        and node["reftype"] == "myst"
        and node["refdomain"] is None
        and not node["reftarget"].startswith("#")
        and "/" in node["reftarget"]
    )


def folder_id(path: str) -> str:
    return "folder-" + re.sub(r"\W+", "-", path)


class SourceList(SphinxDirective):
    """All source files of the two packages, folder by folder, each with the first sentence of its docstring."""

    def run(self) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        folders: dict[str, nodes.bullet_list] = {}
        for path in files():
            folder = str(PurePosixPath(path).parent)
            if folder not in folders:
                folders[folder] = nodes.bullet_list(bullet="-")
                section = nodes.section("", nodes.title("", f"{folder}/"), folders[folder], ids=[folder_id(folder)])
                made.append(section)
            said = ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8"))) or ""
            name = nodes.reference("", PurePosixPath(path).name, refuri=href(path, self.env.docname), internal=True)
            said = said.partition("\n\n")[0].replace("\n", " ")
            text, _ = self.parse_inline(f": {said}" if said else "", lineno=self.lineno)
            folders[folder] += nodes.list_item("", nodes.paragraph("", "", name, *text))
        return made


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each source file: its text, line by line."""
    for path in files():
        page = f"source/{path}"
        text = (ROOT / path).read_text(encoding="utf-8")
        language = {".py": "python", ".md": "markdown", ".toml": "toml"}.get(PurePosixPath(path).suffix, "text")
        code = app.builder.highlighter.highlight_block(text, language)  # type: ignore[attr-defined]
        body = re.search(r"<pre>(?:<span></span>)?(.*)</pre>", code, re.DOTALL)
        lines = (body[1] if body else "").splitlines()
        rows = "".join(
            f'<span id="L{i}"><a class="line" href="#L{i}">{i:>4}</a> {line}</span>' for i, line in enumerate(lines, 1)
        )
        parents = [{"title": "Source", "link": relative_uri(f"{page}.html", f"{LIST}.html")}]
        html = f'<h1>{path}</h1>\n<div class="highlight source"><pre>{rows}</pre></div>'
        yield page, {"title": path, "body": html, "parents": parents}, "page.html"


def contents_once(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Work out the side bar once for all source files at one depth: they are most of the pages, and no part of it."""
    if page.startswith("source/"):
        context["toctree"] = partial(_contents, context["toctree"], page.count("/"))


def _contents(work_out: Callable[..., str], depth: int, **options: Any) -> str:
    key = (depth, *sorted(options.items()))
    if key not in contents:
        contents[key] = work_out(**options)
    return contents[key]


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Say where the source of a documented object is; every page of the reference has the same depth."""
    thing: Any = import_module(info["module"])
    for name in info["fullname"].split("."):
        thing = getattr(thing, name)
    thing = inspect.unwrap(thing.fget if isinstance(thing, property) else thing)
    try:
        path, line = inspect.getsourcefile(thing), inspect.getsourcelines(thing)[1]
    except TypeError:
        return None  # a value: it has no source of its own
    return href(os.path.relpath(str(path), ROOT).replace(os.sep, "/"), "derivations/site/reference/page", line)


def setup(app: Sphinx) -> None:
    app.add_transform(SourceLinks)
    app.add_directive("source-list", SourceList)
    app.connect("html-collect-pages", source_pages)
    app.connect("html-page-context", contents_once, priority=400)  # before the theme asks for the side bar
