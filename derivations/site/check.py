"""Look at every page of the built site in a real browser: ``python derivations/site/check.py`` after ``build.py``.

What must hold of each page: every equation is there and none is an error; nothing is written to the console; nothing
but the disk is read; every link lands; 390 pixels are wide enough; light and dark have text that can be read. And the
search finds. What does not hold is printed, a line each, and the exit status is 1.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = ROOT / "build/site"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1440, "height": 900}


def pages(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


class Addresses(HTMLParser):
    """The anchors of a page, and the addresses that it links or loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value or "")
            elif name in ("href", "src", "data"):
                (self.links if tag == "a" else self.loads).append(value or "")


def wrong_links(site: Path) -> Iterator[str]:
    """Every address of a page leads to a file of the site, and to an anchor in it; nothing is loaded from elsewhere."""
    read = {path: Addresses((site / path).read_text(encoding="utf-8")) for path in pages(site)}
    for path, page in read.items():
        for address in dict.fromkeys([*page.links, *page.loads]):
            there = urlsplit(address)
            if there.scheme or there.netloc:
                if address in page.loads:
                    yield f"{path}: loads {address}"
                continue
            target = Path(os.path.normpath((site / path).parent / unquote(there.path))) if there.path else site / path
            if not target.is_file():
                yield f"{path}: the link {address} leads to no file"
            elif there.fragment and target.suffix == ".html":
                name = target.relative_to(site).as_posix()
                if unquote(there.fragment) not in read[name].anchors:
                    yield f"{path}: the link {address} leads to no anchor"


def tags_of(path: str) -> list[str]:
    """Return the numbers of the equations in the Markdown behind a page."""
    markdown = (ROOT / path).with_suffix(".md")
    return re.findall(r"\\tag\{(.*?)\}", markdown.read_text(encoding="utf-8")) if markdown.is_file() else []


class Look:
    """One browser page, and what goes wrong on it."""

    def __init__(self, browser: Browser, site: Path, pictures: Path | None) -> None:
        self.site, self.pictures = site, pictures
        self.page: Page = browser.new_page(viewport=DESK, color_scheme="light")
        self.page.add_init_script(path=HERE / "look.js")
        self.path = ""
        self.failures: list[str] = []
        self.page.on("console", self.on_console)
        self.page.on("pageerror", lambda error: self.fail(f"script error: {error}"))
        self.page.on("request", self.on_request)
        self.page.route(re.compile("^(?!file:|data:|blob:)"), lambda route: route.abort())

    def fail(self, what: str) -> None:
        self.failures.append(f"{self.path}: {what}")

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.fail(f"console {message.type}: {message.text}")

    def on_request(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.fail(f"asks the network for {request.url}")

    def picture(self, name: str, full_page: bool = False) -> None:
        if self.pictures:
            stem = self.path.removesuffix(".html").replace("/", "-")
            self.page.screenshot(path=self.pictures / f"{stem}-{name}.png", full_page=full_page)

    def check(self, path: str) -> None:
        self.path = path
        self.page.set_viewport_size(DESK)
        self.page.emulate_media(color_scheme="light")
        self.page.goto((self.site / path).as_uri())
        found = self.page.evaluate("look.mathematics()")
        for text in found["missing"]:
            self.fail(f"not drawn: {text}")
        for text in found["errors"]:
            self.fail(f"an error instead of an equation: {text}")
        if found["tags"] != tags_of(path):
            differ = set(found["tags"]) ^ set(tags_of(path))
            self.fail(f"{len(found['tags'])} numbered equations, {len(tags_of(path))} tags: {sorted(differ)}")
        self.page.evaluate("look.unfold()")
        self.colours("light")
        self.page.emulate_media(color_scheme="dark")
        self.colours("dark")
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(PHONE)
        for text in self.page.evaluate("look.tooWide()")[:3]:
            self.fail(f"wider than {PHONE['width']} pixels: {text}")
        self.picture("phone")

    def colours(self, scheme: str) -> None:
        found = self.page.evaluate("look.contrast()")
        if (found["background"] > 0.5) != (scheme == "light"):
            self.fail(f"{scheme}: the background has luminance {found['background']:.2f}")
        for kind, contrast in found["worst"].items():
            if contrast < 4.5:
                self.fail(f"{scheme}: contrast {contrast:.1f} of {kind}")
        self.picture(scheme)

    def search(self, word: str, expected: str) -> None:
        self.path = "search.html"
        self.page.set_viewport_size(DESK)
        self.page.goto((self.site / "search.html").as_uri() + f"?q={word}")
        try:
            self.page.wait_for_selector(f"#search-results li a[href*='{expected}']", timeout=10_000)
        except Exception:
            self.fail(f"does not find {word!r} in {expected}")
        self.picture("light")

    def citation(self, path: str, number: str) -> None:
        """Where an equation is cited, the mouse and the keyboard show it, and a click leads to it."""
        self.path = path
        self.page.set_viewport_size(DESK)
        self.page.goto((self.site / path).as_uri())
        link = self.page.locator(f"article a[href$='#eq-{number}']").first
        shown = self.page.locator("#equation-shown")
        for way, do in (("mouse", link.hover), ("keyboard", link.focus)):
            do()
            try:
                shown.wait_for(state="visible", timeout=5_000)
                self.picture(f"shown-by-{way}")
            except Exception:
                self.fail(f"the {way} on ({number}) does not show it")
            self.page.keyboard.press("Escape")
            self.page.mouse.move(1, 1)
            shown.wait_for(state="hidden", timeout=5_000)
        link.click()
        self.page.wait_for_url(f"**#eq-{number}")
        self.page.evaluate("MathJax.startup.promise.then(() => new Promise(requestAnimationFrame))")
        if not self.page.locator(f"[id='eq-{number}']").evaluate(
            "(e) => Math.abs(e.getBoundingClientRect().top) < 200"
        ):
            self.fail(f"a click on ({number}) does not lead to it")


def check(site: Path, only: list[str], pictures: Path | None) -> list[str]:
    """Return what is wrong with the site, a line each."""
    failures = list(wrong_links(site))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        look = Look(browser, site, pictures)
        for path in only or pages(site):
            look.check(path)
        look.search("detach", "03-truncated-bptt.html")
        look.citation("derivations/02-bptt.html", "2.2")
        look.citation("source/numpy_rnn/cells/rnn.py.html", "2.25")
        browser.close()
    return failures + look.failures


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the built site in a browser.")
    parser.add_argument("pages", nargs="*", help="addresses in the site, such as derivations/02-bptt.html; default all")
    parser.add_argument("--site", type=Path, default=SITE, help="folder that build.py wrote, default build/site")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of each page: light, dark, phone")
    arguments = parser.parse_args()
    if not (arguments.site / "index.html").is_file():
        print(f"no site in {arguments.site}: run build.py first", file=sys.stderr)
        return 2
    if CHROMIUM is None:
        print("the check needs Chromium: no chromium, chromium-browser or google-chrome on the PATH", file=sys.stderr)
        return 2
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    failures = check(arguments.site.resolve(), arguments.pages, arguments.pictures)
    print(*failures, sep="\n")
    print(f"{len(failures)} failures on {len(arguments.pages or pages(arguments.site))} pages")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
