"""Look at every page of the built site in a real browser: ``python derivations/site/check.py`` after ``build.py``.

What must hold of each page: every equation is there and none is an error; nothing is written to the console; nothing
but the disk is read; every link lands; 390 pixels are wide enough; light and dark have text that can be read. And the
search finds. What does not hold is printed, a line each, and the exit status is 1.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build/site"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1440, "height": 900}

MATHEMATICS = """async () => {
  await MathJax.startup.promise;
  const all = [...document.querySelectorAll("article .math")];
  return {
    missing: all.filter((e) => !e.querySelector("mjx-container svg")).map((e) => e.textContent.trim().slice(0, 80)),
    errors: [...document.querySelectorAll("mjx-merror, [data-mml-node=merror]")].map((e) => e.dataset.mjxError ?? e.textContent),
    tags: [...document.querySelectorAll("article [id^='mjx-eqn:']")].map((e) => e.id.slice(8)),
    display: document.querySelectorAll("article div.math mjx-container[display]").length,
  };
}"""

# What sticks out to the right and is in no box that scrolls.
TOO_WIDE = """() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const boxed = (e) => {
    for (let p = e.parentElement; p; p = p.parentElement) if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return true;
    return false;
  };
  const out = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !boxed(e));
  return out.slice(0, 3).map((e) => `${e.tagName.toLowerCase()}.${e.className} ${e.textContent.trim().slice(0, 60)}`).concat(out.length ? [] : ["the page"]);
}"""

# The contrast of text with what lies behind it, 1 to 21, for everything that can be read.
CONTRAST = """() => {
  const rgba = (c) => { const n = c.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 0.5) return c; } return [255, 255, 255, 1]; };
  const worst = {};
  for (const e of document.querySelectorAll("article p, article li, article td, article h1, article h2, article code, article pre span, article mjx-container, article a")) {
    if (!e.textContent.trim()) continue;
    const [one, two] = [luminance(rgba(getComputedStyle(e).color)), luminance(behind(e))].sort((a, b) => b - a);
    const kind = e.tagName.toLowerCase() + (e.tagName === "SPAN" ? "." + e.className : "");
    worst[kind] = Math.min(worst[kind] ?? 21, (one + 0.05) / (two + 0.05));
  }
  return { worst, background: luminance(behind(document.querySelector("article"))) };
}"""


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
        found = self.page.evaluate(MATHEMATICS)
        for text in found["missing"]:
            self.fail(f"not drawn: {text}")
        for text in found["errors"]:
            self.fail(f"an error instead of an equation: {text}")
        if found["tags"] != tags_of(path):
            differ = set(found["tags"]) ^ set(tags_of(path))
            self.fail(f"{len(found['tags'])} numbered equations, {len(tags_of(path))} tags: {sorted(differ)}")
        self.page.evaluate("document.querySelectorAll('details').forEach((e) => (e.open = true))")
        self.colours("light", lambda background: background > 0.8)
        self.page.emulate_media(color_scheme="dark")
        self.colours("dark", lambda background: background < 0.05)
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(PHONE)
        for text in self.page.evaluate(TOO_WIDE):
            self.fail(f"wider than {PHONE['width']} pixels: {text}")
        self.picture("phone")

    def colours(self, scheme: str, right) -> None:
        found = self.page.evaluate(CONTRAST)
        if not right(found["background"]):
            self.fail(f"the background of {scheme} has luminance {found['background']:.2f}")
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
        if not self.page.url.endswith(f"#eq-{number}"):
            self.fail(f"a click on ({number}) leads to {self.page.url}")


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
    if not Path(CHROMIUM).is_file():
        print(f"the check needs Chromium at {CHROMIUM}", file=sys.stderr)
        return 2
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    failures = check(arguments.site.resolve(), arguments.pages, arguments.pictures)
    print(*failures, sep="\n")
    print(f"{len(failures)} failures on {len(arguments.pages or pages(arguments.site))} pages")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
