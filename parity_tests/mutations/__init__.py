"""Break the real source on purpose, in this process only, to see that a check notices."""

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def mutated(module_name: str, attribute: str, *edits: tuple[str, str]) -> Iterator[None]:
    """Inside the block, ``module_name.attribute`` is what the module's source defines after the ``edits`` (old, new).

    Each ``old`` must stand exactly once in the source: an edit whose place has moved fails loudly.
    """
    module = importlib.import_module(module_name)
    source = inspect.getsource(module)
    for old, new in edits:
        count = source.count(old)
        assert count == 1, f"{old!r} stands {count} times in {module_name}, expected once"
        source = source.replace(old, new)
    namespace = dict(vars(module))
    exec(compile(source, f"<mutated {module_name}>", "exec"), namespace)
    with mock.patch.object(module, attribute, namespace[attribute]):
        yield
