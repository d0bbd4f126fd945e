"""Print the derivations as one PDF: ``python derivations/site/print.py`` after ``build.py``; it needs Chromium.

The chapters come in order from the built pages: folded answers open, links inside the book kept, those that leave it
plain text. It is laid out twice, because the contents can name pages only when the pages are known.
"""

import argparse
import io
import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag
from playwright.sync_api import sync_playwright
from pypdf import PdfReader

from derivations.site.build import SITE
from derivations.site.check import CHROMIUM, FLAGS

OUT = SITE.parent / "derivations.pdf"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>rnn-parity: derivations</title>
<link rel="stylesheet" href="_static/pygments.css">
<link rel="stylesheet" href="_static/print.css">
<style>{headers}</style>
<script>window.MathJax = {{ options: {{ processHtmlClass: "math" }}, svg: {{ fontCache: "global" }} }};</script>
<script defer src="_static/tex-svg.js"></script>
<script defer src="_static/fit.js"></script>
</head>
<body>
<section class="title">
<h1>rnn-parity</h1>
<p>Recurrent networks by hand in NumPy, forward and backward, proven against PyTorch: the derivations</p>
<ol class="contents">{contents}</ol>
</section>
{chapters}
</body>
</html>"""

# A long block of code may go on on the next page.
FIT = """async () => {
  await MathJax.startup.promise;
  fitEquations(0);
  for (const code of document.querySelectorAll("pre")) if (code.clientHeight > 450) code.classList.add("long");
}"""


def chapters(site: Path) -> list[str]:
    numbered = sorted(path.stem for path in (site / "derivations").glob("[0-9]*.html"))
    return ["README", *numbered, "tests-that-cannot-fail"]


def chapter(site: Path, name: str, book: list[str]) -> Tag:
    """Return the text of a page, with its anchors and addresses made those of the book."""
    soup = BeautifulSoup((site / f"derivations/{name}.html").read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article")
    assert article is not None
    for link in article.select("a.headerlink"):
        link.decompose()
    for element in article.find_all(id=True):
        element["id"] = f"{name}--{element['id']}"
    for image in article.find_all("img"):
        image["src"] = os.path.normpath(f"derivations/{image['src']}")
    for details in article.find_all("details"):
        details["open"] = ""
    for link in article.find_all("a", href=True):
        address = urlsplit(link["href"])
        page = Path(address.path).stem if address.path else name
        if address.scheme:
            continue
        if page in book and os.path.dirname(address.path) == "":
            link["href"] = f"#{page}--{address.fragment}" if address.fragment else f"#{page}"
        else:
            link.unwrap()
    article.name = "section"
    article.attrs = {"id": name, "class": "chapter"}
    return article


def title(text: Tag) -> str:
    heading = text.find("h1")
    assert heading is not None
    return heading.get_text().strip()


def write_page(site: Path) -> Path:
    """Write the whole book as one page into the site, and return where."""
    names = chapters(site)
    texts = {name: chapter(site, name, names) for name in names}
    contents = "".join(
        f'<li><a href="#{n}">{title(t)}</a><span data-page="{n}">000</span></li>' for n, t in texts.items()
    )
    headers = ""  # the title of its chapter, above each page
    for i, (name, text) in enumerate(texts.items()):
        said = json.dumps(title(text), ensure_ascii=False)
        headers += f"@page c{i} {{ @top-left {{ content: {said}; }} }} [id='{name}'] {{ page: c{i}; }}\n"
    path = site / "print.html"
    path.write_text(
        PAGE.format(headers=headers, contents=contents, chapters="\n".join(map(str, texts.values()))), encoding="utf-8"
    )
    return path


def print_book(site: Path, out: Path) -> int:
    """Write the PDF and return how many pages it has."""
    path = write_page(site)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(300_000)
        page.emulate_media(media="print", color_scheme="light")
        page.set_viewport_size({"width": 658, "height": 1000})  # the 174 mm between the margins of print.css
        page.goto(path.as_uri())
        page.evaluate(FIT)
        first = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
        places = {name: first.get_destination_page_number(place) for name, place in first.named_destinations.items()}
        numbers = {name: places[f"/{name}"] + 1 for name in chapters(site)}
        page.evaluate(
            "(n) => document.querySelectorAll('[data-page]').forEach((e) => (e.textContent = n[e.dataset.page]))",
            numbers,
        )
        page.pdf(path=out, prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
        browser.close()
    path.unlink()
    return len(PdfReader(out).pages)


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the derivations as one PDF.")
    parser.add_argument("--site", type=Path, default=SITE, help="folder that build.py wrote, default build/site")
    parser.add_argument("--out", type=Path, default=OUT, help="default build/derivations.pdf")
    arguments = parser.parse_args()
    if not (arguments.site / "index.html").is_file():
        print(f"no site in {arguments.site}: run build.py first", file=sys.stderr)
        return 2
    if CHROMIUM is None:
        print("printing needs Chromium: no chromium, chromium-browser or google-chrome on the PATH", file=sys.stderr)
        return 2
    print(f"{print_book(arguments.site.resolve(), arguments.out)} pages in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
