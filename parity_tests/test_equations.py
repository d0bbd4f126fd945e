"""The equations of ``derivations/`` and the code that computes them say the same.

Each check is a function of texts that returns what is wrong with them; each is also shown to find a planted mistake.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from sybil.document import Document

from parity_tests.documents import PAGES
from parity_tests.pairs import PAIRS, pairs, parted

ROOT = Path(__file__).parents[1]
Texts = Mapping[str, str]  # path from the root of the repository, with slashes -> text

FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
TAG = re.compile(r"\\tag\{(.*?)\}")
CITED = re.compile(r"(?<![\w)\]])\(([1-9]\d?\.[1-9]\d*)\)")  # not the argument of a call, nor (301.0)
INLINE_MATH = re.compile(r"(?<![\\$`\w])\$(?!\$)(?P<body>[^$`]+?)\$(?!\$)")
LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
EQUATION = re.compile(
    r'(?:^<a id="eq-(?P<anchor>[\d.]+)"></a>\n\n)?^```math\n(?P<body>(?:(?!^```).)*?\\tag\{(?P<tag>.*?)\}.*?)^```$'
    r"(?:\n\nImplemented in (?P<implemented>[^\n]*)\.$)?",
    re.MULTILINE | re.DOTALL,
)


def read(*patterns: str) -> dict[str, str]:
    paths = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def prose(text: str) -> str:
    """Return the text without its fences and without inline code."""
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))


def resolve(page: str, target: str) -> str:
    """Return a relative link target as a path from the root."""
    parts: list[str] = []
    for part in (PurePosixPath(page).parent / target).parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def tags(texts: Texts) -> list[str]:
    return [tag for text in texts.values() for tag in TAG.findall(text)]


def wrong_tags(chapters: Texts) -> list[str]:
    """A tag is ``chapter.number``, counts up from 1 in its own chapter, and has its anchor above its fence."""
    wrong = []
    for page, text in chapters.items():
        number = PurePosixPath(page).name.split("-")[0].lstrip("0")
        found = TAG.findall(text)
        expected = [f"{number}.{i}" for i in range(1, len(found) + 1)]
        wrong += [f"{page}: tag {a}, expected {b}" for a, b in zip(found, expected, strict=True) if a != b]
        equations = list(EQUATION.finditer(text))
        wrong += [f"{page}: anchor {e['anchor']} above {e['tag']}" for e in equations if e["anchor"] != e["tag"]]
        if [e["tag"] for e in equations] != found:
            wrong.append(f"{page}: a tag outside a math fence, or two in one")
        if re.findall(r'<a id="eq-([^"]*)"', text) != found:
            wrong.append(f"{page}: the anchors are not those of the tags, each once")
    return wrong


def wrong_citations(sources: Texts, chapters: Texts) -> list[str]:
    """Every number that code cites, in a comment, a docstring or an executed block, is a tag."""
    known = set(tags(chapters))
    cited = [(path, number) for path, text in sources.items() for number in CITED.findall(text)]
    blocks = [(page, fence["body"]) for page, text in chapters.items() for fence in FENCE.finditer(text)]
    cited += [(page, number) for page, body in blocks for number in re.findall(r"#.*?\((\d+\.\d+)\)", body)]
    return [f"{path}: ({number}) is no equation" for path, number in cited if number not in known]


def wrong_implementations(chapters: Texts, sources: Texts) -> list[str]:
    """A result marked as implemented is cited by the file that the mark links; a mark stands under an equation."""
    wrong = []
    for page, text in chapters.items():
        marked = [e for e in EQUATION.finditer(text) if e["implemented"]]
        if len(marked) != len(re.findall(r"^Implemented in", text, re.MULTILINE)):
            wrong.append(f"{page}: a line 'Implemented in' that does not stand under an equation")
        for equation in marked:
            targets = [link["target"] for link in LINK.finditer(equation["implemented"])]
            if not targets:
                wrong.append(f"{page}: ({equation['tag']}) is implemented in no file")
            for target in targets:
                if equation["tag"] not in CITED.findall(sources.get(resolve(page, target), "")):
                    wrong.append(f"{page}: ({equation['tag']}) is not cited by {target}")
    return wrong


def unmarked_implementations(chapters: Texts, sources: Texts) -> list[str]:
    """A number at the end of a line of code belongs to a result that is marked as implemented in that file."""
    marked = {
        (e["tag"], resolve(page, link["target"]))
        for page, text in chapters.items()
        for e in EQUATION.finditer(text)
        for link in LINK.finditer(e["implemented"] or "")
    }
    return [
        f"{path}: ({number}) is not marked as implemented there"
        for path, text in sources.items()
        for number in re.findall(r"#.*\((\d+\.\d+)\)$", text, re.MULTILINE)
        if (number, path) not in marked
    ]


def wrong_quotations(chapters: Texts, sources: Texts) -> list[str]:
    """Each line of a ``py`` fence stands, with its number, in the file that was linked last before it."""
    wrong = []
    for page, text in chapters.items():
        for fence in FENCE.finditer(text):
            if fence["info"] == "py":
                before = [link["target"] for link in LINK.finditer(text[: fence.start()])]
                path = resolve(page, [target for target in before if target.endswith(".py")][-1])
                lines = {line.strip() for line in sources.get(path, "").splitlines()}
                wrong += [
                    f"{page}: not in {path}: {q}" for q in fence["body"].splitlines() if q.strip() not in lines | {""}
                ]
    return wrong


def heading_anchors(text: str) -> list[str]:
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def wrong_links(pages: Texts, exists: "Path | frozenset[str]") -> list[str]:
    """Every relative link leads to a file and to an anchor in it; a link named (2.7) leads to equation 2.7."""
    wrong = []
    for page, text in pages.items():
        for link in LINK.finditer(re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))):
            target, name = link["target"], link["text"]
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = resolve(page, path) if path else page
            there = path in exists if isinstance(exists, frozenset) else (exists / path).exists()
            if not there:
                wrong.append(f"{page}: {target} is no file")
            elif anchor and path in pages:
                anchors = heading_anchors(pages[path]) + re.findall(r'<a id="([^"]*)"', pages[path])
                if anchor not in anchors:
                    wrong.append(f"{page}: {target} has no such anchor")
            if (number := CITED.fullmatch(name)) and anchor != f"eq-{number[1]}":
                wrong.append(f"{page}: the link ({number[1]}) leads to {target}")
            if "$" in name:
                wrong.append(f"{page}: mathematics in the text of a link, {name}")
    return wrong


def unlinked_numbers(chapters: Texts) -> list[str]:
    """An equation's number in prose is a link."""
    return [
        f"{page}: ({number}) is not a link"
        for page, text in chapters.items()
        for number in re.findall(r"(?<!\[)\((\d+\.\d+)\)", prose(text))
    ]


def wrong_blocks(pages: Texts) -> list[str]:
    """What runs is what stands in fences named python: no more, no less, and nothing is skipped in silence."""
    wrong = []
    for page, text in pages.items():
        fences = [fence for fence in FENCE.finditer(text) if fence["info"] == "python"]
        document = Document(text, page)
        runs = [region for parser in PAGES.parsers for region in parser(document)]
        for fence in fences:
            if not any(fence.start() <= region.start < fence.end() for region in runs):
                wrong.append(f"{page}: a block that does not run:\n{fence['body']}")
        for region in runs:
            if not any(fence.start() <= region.start < fence.end() for fence in fences):
                wrong.append(f"{page}: something runs that is no python fence, at {region.start}")
        opened = re.findall(r"^[ \t>]*(?:[-*+] )?[`~]{3,}(.*)$", text, re.MULTILINE)
        wrong += [
            f"{page}: a fence named {info!r} is skipped"
            for info in opened
            if re.match(r"\s*(pycon|python.|Python|\{)", info)
        ]
        if sum(info == "python" for info in opened) != len(fences):
            wrong.append(f"{page}: a python fence that is indented, quoted or not closed")
    return wrong


def wrong_mathematics(pages: Texts) -> list[str]:
    """Only what GitHub and the site both render: see the comment at each rule."""
    wrong = []
    for page, text in pages.items():
        outside = prose(text)
        if "$$" in text:
            wrong.append(f"{page}: $$ (display mathematics stands in math fences)")
        wrong += [
            f"{page}: {command}"
            for command in (r"\newcommand", r"\operatorname", r"\label", r"\def")
            if command in text
        ]
        if re.search(r"\$`|`\$", text):
            wrong.append(f"{page}: backticks inside dollars")
        wrong += [
            f"{page}: a fence in a list or a quotation" for _ in re.findall(r"^[ \t>*+-]+```math", text, re.MULTILINE)
        ]
        for math in INLINE_MATH.finditer(outside):
            body = math["body"]
            if re.search(r"\\[^A-Za-z]", body):  # Markdown takes the backslash away
                wrong.append(f"{page}: a backslash before punctuation in ${body}$")
            if re.search(r"[^A-Za-z0-9]_", body):  # Markdown may read the underscore as emphasis
                wrong.append(f"{page}: an underscore after {re.search(r'(.)_', body)[1]} in ${body}$")  # type: ignore[index]
            if "\n" in body:
                wrong.append(f"{page}: a line break in ${body}$")
            if re.search(r"[*<>]", body):
                wrong.append(f"{page}: * < or > in ${body}$ (\\ast, \\lt, \\gt)")
        if "$" in INLINE_MATH.sub("", outside):
            wrong.append(f"{page}: a dollar without its partner")
    return wrong


def wrong_minutes(pages: Texts) -> list[str]:
    """A reading time is the words of the chapter at 150 a minute, to the next five; or of the section, to the next."""
    wrong = []
    for page, text in pages.items():
        for target, minutes in re.findall(r"\]\(([^()\s]+)\) \((\d+) min\)", text):
            path, _, anchor = target.partition("#")
            body = pages[resolve(page, path)]
            if anchor:
                masked = FENCE.sub(lambda fence: fence[0].replace("\n#", "\n "), body)
                (body,) = (p for p in re.split(r"^(?=## )", masked, flags=re.M) if heading_anchors(p)[:1] == [anchor])
            unit = 1 if anchor else 5
            expected = max(round(len(body.split()) / 150 / unit) * unit, 1)
            if int(minutes) != expected:
                wrong.append(f"{page}: {target} takes {expected} min, not {minutes}")
    return wrong


CHAPTERS = read("derivations/[0-9]*.md")
PAGES_READ = read("README.md", "derivations/*.md")
SOURCES = read("numpy_rnn/**/*.py", "torch_rnn/**/*.py")


def test_there_is_something_to_check() -> None:
    assert len(CHAPTERS) >= 3
    assert len(tags(CHAPTERS)) >= 50
    assert sum(text.count("\nImplemented in [") for text in CHAPTERS.values()) >= 20


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: wrong_tags(CHAPTERS),
        lambda: wrong_citations(SOURCES, CHAPTERS),
        lambda: wrong_implementations(CHAPTERS, SOURCES),
        lambda: unmarked_implementations(CHAPTERS, SOURCES),
        lambda: wrong_quotations(CHAPTERS, SOURCES),
        lambda: wrong_links(PAGES_READ, ROOT),
        lambda: unlinked_numbers(CHAPTERS),
        lambda: wrong_blocks(PAGES_READ),
        lambda: wrong_mathematics(PAGES_READ),
        lambda: wrong_minutes(PAGES_READ),
    ],
    ids=[
        "tags",
        "citations",
        "implementations",
        "unmarked",
        "quotations",
        "links",
        "unlinked",
        "blocks",
        "mathematics",
        "minutes",
    ],
)
def test_text_and_code_agree(wrong) -> None:
    assert wrong() == []


GOOD = """# 2. A title

From [a.py](../a.py):

```py
y = x  # (B,) (2.1)
```

See [(2.1)](02-x.md#eq-2.1), [the title](#2-a-title) and $W_{hh} x_t$.

<a id="eq-2.1"></a>

```math
y = x \\tag{2.1}
```

Implemented in [a.py](../a.py).

```python
y = 1  # (2.1)
```
"""
CODE = "    y = x  # (B,) (2.1)\n"


def problems(page: str, code: str = CODE) -> dict[str, list[str]]:
    chapters, sources = {"derivations/02-x.md": page}, {"a.py": code}
    return {
        "tags": wrong_tags(chapters),
        "citations": wrong_citations(sources, chapters),
        "implementations": wrong_implementations(chapters, sources),
        "unmarked": unmarked_implementations(chapters, sources),
        "quotations": wrong_quotations(chapters, sources),
        "links": wrong_links(chapters, frozenset({"derivations/02-x.md", "a.py"})),
        "unlinked": unlinked_numbers(chapters),
        "blocks": wrong_blocks(chapters),
        "mathematics": wrong_mathematics(chapters),
        "minutes": wrong_minutes(chapters),
    }


def test_a_good_page_has_no_problems() -> None:
    assert not any(problems(GOOD).values())


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ("tags", "\\tag{2.1}", "\\tag{2.2}"),
        ("tags", "\\tag{2.1}", "\\tag{3.1}"),
        ("tags", "\\tag{2.1}", "\\tag{2.1} \\\\ x \\tag{2.2}"),
        ("tags", '<a id="eq-2.1"></a>\n\n', ""),
        ("tags", '<a id="eq-2.1"></a>\n\n', '<a id="eq-2.1"></a>\n\nText.\n\n'),
        ("tags", '<a id="eq-2.1"></a>', '<a id="eq-2.2"></a>'),
        ("tags", "# 2. A title", '# 2. A title\n\n<a id="eq-2.1"></a>'),
        ("citations", "y = 1  # (2.1)", "y = 1  # (2.9)"),
        ("implementations", "[a.py](../a.py).\n\n```python", "[a.py](../b.py).\n\n```python"),
        ("implementations", "Implemented in [a.py](../a.py).", "Implemented in a.py."),
        ("implementations", "```\n\nImplemented", "```\n\nText.\n\nImplemented"),
        ("unmarked", "Implemented in [a.py](../a.py).\n", ""),
        ("quotations", "y = x  # (B,)", "y = x + 1  # (B,)"),
        ("links", "02-x.md#eq-2.1", "03-y.md#eq-2.1"),
        ("links", "02-x.md#eq-2.1", "02-x.md#eq-2.2"),
        ("links", "02-x.md#eq-2.1", "#2-a-title"),
        ("links", "#2-a-title", "#another-title"),
        ("links", "[the title]", "[the $x$ title]"),
        ("unlinked", "See [(2.1)](02-x.md#eq-2.1)", "See (2.1)"),
        ("blocks", "```python\ny", "```python title=x\ny"),
        ("blocks", "```python\ny", "```pycon\ny"),
        ("blocks", "```python\ny = 1  # (2.1)\n```", "- a\n\n  ```python\n  y = 1\n  ```"),
        ("blocks", "```python\ny", "<!-- invisible-code: python\nz = 1\n-->\n\n```python\ny"),
        ("minutes", "[the title](#2-a-title)", "[the title](#2-a-title) and [all](02-x.md) (5 min)"),
        ("mathematics", "$W_{hh} x_t$", "$$x$$"),
        ("mathematics", "$W_{hh} x_t$", "$\\mathbf{W}_{hh}$"),
        ("mathematics", "$W_{hh} x_t$", "$W \\, x$"),
        ("mathematics", "$W_{hh} x_t$", "$a < b$"),
        ("mathematics", "$W_{hh} x_t$", "$W_{hh}\nx_t$"),
        ("mathematics", "$W_{hh} x_t$", "$W_{hh}"),
        ("mathematics", "$W_{hh} x_t$", "$`W`$"),
        ("mathematics", "y = x \\tag", "\\operatorname{y} = x \\tag"),
        ("mathematics", "y = x \\tag", "\\label{y} y = x \\tag"),
        ("mathematics", "y = x \\tag", "\\newcommand{y}{x} \\tag"),
        ("mathematics", "```math", "- ```math"),
    ],
)
def test_a_planted_mistake_is_found(check: str, good: str, bad: str) -> None:
    assert GOOD.count(good) >= 1
    assert problems(GOOD.replace(good, bad, 1))[check]


def test_a_mistake_in_the_code_is_found() -> None:
    assert problems(GOOD, "y = x  # (B,) (2.2)\n")["citations"]
    assert problems(GOOD, "y = x  # (B,)\n")["implementations"]
    assert problems(GOOD, "y = x + 1  # (B,) (2.1)\n")["quotations"]


def test_no_formula_has_changed_without_its_code_nor_code_without_its_formula() -> None:
    then = json.loads(PAIRS.read_text(encoding="utf-8"))
    assert len(then) > 100
    assert parted(pairs(CHAPTERS, SOURCES), then) == []


@pytest.mark.parametrize(
    ("file", "good", "bad", "message"),
    [
        (
            "derivations/02-bptt.md",
            "\\mathbf{\\Delta} W_{ih} \\tag{2.23}",
            "\\mathbf{\\Delta} W_{hh} \\tag{2.23}",
            "text",
        ),
        ("derivations/02-bptt.md", " \\tag{2.19}", " + 1 \\tag{2.19}", "text"),
        ("numpy_rnn/optim/sgd.py", "b += np.multiply(undamped, g, t)", "b += np.multiply(damped, g, t)", "code"),
        ("numpy_rnn/cells/lstm.py", "dc *= f_t  # (H, B) (6.36)", "dc *= i_t  # (H, B) (6.36)", "code"),
    ],
)
def test_a_change_of_one_side_alone_is_noticed(file, good, bad, message) -> None:
    chapters, sources = dict(CHAPTERS), dict(SOURCES)
    side = chapters if file in chapters else sources
    assert good in side[file]
    side[file] = side[file].replace(good, bad)
    found = parted(pairs(chapters, sources), pairs(CHAPTERS, SOURCES))
    assert found
    assert all(f"the {message} changed" in line for line in found)
