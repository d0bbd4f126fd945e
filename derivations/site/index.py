"""The index from function to equation: ``python -m derivations.site.index`` writes it into derivations/README.md.

A function is listed with the equations at the ends of its lines, and of the lines of what it computes with.
"""

from pathlib import Path

import numpy_rnn
from derivations.site.equations import ROOT, equations
from derivations.site.reference import computed
from numpy_rnn import lr_scheduler

PAGE = ROOT / "derivations/README.md"
MARK, END = "<!-- index -->\n", "<!-- /index -->\n"


def index() -> str:
    """Return the table, without the names that compute no equation."""
    lines = ["| name | computes |", "|---|---|"]
    schedules = [name for name in vars(lr_scheduler) if name[0] != "_" and name.endswith(("LR", "Plateau"))]
    for prefix, module, names in (("", numpy_rnn, numpy_rnn.__all__), ("lr_scheduler.", lr_scheduler, schedules)):
        for name in sorted(names, key=str.lower):
            if numbers := computed(getattr(module, name)):
                links = " ".join(f"[({n})]({Path(equations()[n][0]).name}.md#eq-{n})" for n in numbers)
                lines.append(f"| `{prefix}{name}` | {links} |")
    return "\n".join(lines) + "\n"


def with_index(text: str) -> str:
    """Return the page with the table between its marks."""
    before, rest = text.split(MARK)
    return before + MARK + index() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(with_index(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
