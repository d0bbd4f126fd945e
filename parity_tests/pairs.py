"""Each formula of the chapters and the code that computes it, as they were when somebody last held them side by side.

``pairs.json`` has a digest of both for every number that ends a line of code. Where the text of a formula changes and
its code does not, or the code and not the text, a test fails. Whoever has seen that the two still say the same writes
the file anew: ``python -m parity_tests.pairs``.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

PAIRS = Path(__file__).with_suffix(".json")
FORMULA = re.compile(r"^```math\n((?:(?!^```).)*?)\s*\\tag\{([\d.]+)\}(.*?)^```$", re.MULTILINE | re.DOTALL)
COMPUTES = re.compile(r"^(.*?)\s*#.*?((?: \(\d+\.\d+\))+)$")
Pairs = dict[str, dict[str, str]]


def digest(parts: list[str]) -> str:
    """Return what tells texts apart, but for blanks between their words."""
    words = "\n".join(" ".join(part.split()) for part in parts)
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def pairs(chapters: Mapping[str, str], sources: Mapping[str, str]) -> Pairs:
    """Return number -> digests of the formula's text and of the lines that compute it."""
    code: dict[str, list[str]] = {}
    for _, text in sorted(sources.items()):
        for line in text.splitlines():
            if found := COMPUTES.match(line):
                for number in re.findall(r"\d+\.\d+", found[2]):
                    code.setdefault(number, []).append(found[1])
    texts = {f[2]: [f[1], f[3]] for text in chapters.values() for f in FORMULA.finditer(text)}
    return {n: {"text": digest(texts[n]), "code": digest(code[n])} for n in texts if n in code}


def parted(now: Pairs, then: Pairs) -> list[str]:
    """Say which formulas, and which code, are not what they were."""
    wrong = [f"({n}) is new or gone" for n in sorted(now.keys() ^ then.keys())]
    for number in now.keys() & then.keys():
        changed = [side for side in ("text", "code") if now[number][side] != then[number][side]]
        if changed:
            what = " and the ".join(changed)
            wrong.append(f"({number}): the {what} changed; once both say the same: python -m parity_tests.pairs")
    return wrong


if __name__ == "__main__":
    from parity_tests.test_equations import CHAPTERS, SOURCES

    PAIRS.write_text(json.dumps(pairs(CHAPTERS, SOURCES), indent=0, sort_keys=True) + "\n", encoding="utf-8")
