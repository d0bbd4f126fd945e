"""Sphinx extension: the docstrings as a reference of the public API, each entry with the equations that it computes."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from derivations.site.equations import CHAPTER, CITED, COMPUTES, ROOT, equations

PACKAGES = ("numpy_rnn", "torch_rnn")
# In the text of a docstring; the last two are what Sphinx would take for marks of its own.
SPECIAL = re.compile(rf"(?P<literal>``.*?``)|{CITED.pattern}|{CHAPTER.pattern}|[|*\\]|(?<=\w)_(?!\w)", re.DOTALL)


def order(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def names(code: CodeType) -> Iterator[str]:
    """Yield every name that a function reads, with those of the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names(constant)


def written_here(thing: Any) -> bool:
    """Tell a function of the library from those that Python makes for a dataclass."""
    return isinstance(thing, FunctionType) and Path(thing.__code__.co_filename).is_relative_to(ROOT / "numpy_rnn")


def parts(thing: Any) -> Iterator[Any]:
    """Yield what an object computes with: a class's methods and cell, what a function calls."""
    if isinstance(thing, type):
        for base in thing.__mro__:
            for value in vars(base).values():
                value = getattr(value, "__func__", getattr(value, "fget", value))
                if isinstance(value, ModuleType) and value.__name__.startswith("numpy_rnn.cells"):
                    yield from (value.forward, value.backward)
                elif written_here(value):
                    yield value
    elif isinstance(thing, FunctionType):
        read = list(names(thing.__code__))
        known = [thing.__globals__[name] for name in read if name in thing.__globals__]
        modules = [value for value in known if isinstance(value, ModuleType) and value.__name__.startswith("numpy_rnn")]
        known += [getattr(module, name) for module in modules for name in read if hasattr(module, name)]
        yield from filter(written_here, known)


def computed(thing: Any) -> list[str]:
    """Return the equations at the ends of the lines of an object, and of what it computes with."""
    found: set[str] = set()
    seen: list[Any] = []
    waiting = [thing]
    while waiting:
        if (part := waiting.pop()) in seen:
            continue
        seen.append(part)
        waiting += parts(part)
        if isinstance(part, FunctionType):
            ends = [COMPUTES.search(line.rstrip()) for line in inspect.getsource(part).splitlines()]
            found.update(number for end in ends if end for number in CITED.findall(end[1]))
    return sorted(found & set(equations()), key=order)


def as_restructured_text(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make a docstring's plain words safe for Sphinx, its numbers links, and add the equations of its code."""
    if lines and lines[0].startswith("Alias for field number"):
        lines[:] = [said_beside(name)]
    paragraphs = []
    for paragraph in "\n".join(lines).split("\n\n"):
        example = paragraph.lstrip().startswith(">>>")
        paragraphs.append(paragraph if example else SPECIAL.sub(replacement, paragraph))
    if what in ("class", "function") and (numbers := computed(thing)):
        paragraphs.append("Computes " + " ".join(link(number) for number in numbers) + ".")
    lines[:] = "\n\n".join(paragraphs).splitlines()


def replacement(found: re.Match[str]) -> str:
    if found["number"]:
        return link(found["number"])
    if found["page"]:
        return f":doc:`{found[0]} </derivations/{found['page']}>`"
    return found["literal"] or f"\\{found[0]}"


def link(number: str) -> str:
    return f":ref:`({number}) <eq-{number}>`" if number in equations() else f"({number})"


def said_beside(name: str) -> str:
    """Return the comment beside a field of a named tuple: its shape, and what it is."""
    module, holder, field = name.rsplit(".", 2)
    source = inspect.getsource(getattr(import_module(module), holder))
    comment = re.search(rf"^    {field}: .*?  # (.*)$", source, re.MULTILINE)
    return comment[1] if comment else ""


def nothing_is_missing(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn, and a warning is an error, of a public name that no page of the reference holds."""
    held = {name for name, *_ in env.get_domain("py").get_objects()}
    for package in PACKAGES:
        for name in import_module(package).__all__:
            if f"{package}.{name}" not in held:
                logging.getLogger(__name__).warning("the reference lacks %s.%s", package, name)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", as_restructured_text)
    app.connect("env-check-consistency", nothing_is_missing)
