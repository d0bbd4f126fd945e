"""Break the real source on purpose, in this process only, to see that a check notices."""

import functools
import importlib
import inspect
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock


@contextmanager
def mutated(module_name: str, attribute: str, *edits: tuple[str, str]) -> Iterator[None]:
    """Inside the block, ``module_name.attribute`` does what the module's source says after the ``edits`` (old, new).

    ``attribute`` is a function, a class, a method as ``Class.method``, or a ``cached_property``.
    Each ``old`` must stand exactly once in the source: an edit whose place has moved fails loudly, as does one that
    changes nothing in ``attribute``.
    """
    module = importlib.import_module(module_name)
    source = inspect.getsource(module)
    for old, new in edits:
        count = source.count(old)
        assert count == 1, f"{old!r} stands {count} times in {module_name}, expected once"
        source = source.replace(old, new)
    namespace = {"__name__": module_name}
    exec(compile(source, f"<mutated {module_name}>", "exec"), namespace)
    pairs = list(_functions(module, namespace, attribute))
    bare = [(_function(before), _function(after)) for *_, before, after in pairs]
    assert any(_meaning(before.__code__) != _meaning(after.__code__) for before, after in bare)
    with ExitStack() as stack:
        for owner, name, before, after in pairs:
            stack.enter_context(mock.patch.object(owner, name, _at_home(before, after, module)))
        yield


def _functions(module: Any, namespace: dict[str, Any], attribute: str) -> Iterator[tuple[Any, str, Any, Any]]:
    """Yield (owner, name, the function as it is, the function as edited)."""
    *path, last = attribute.split(".")
    owner, edited_owner = module, types.SimpleNamespace(**namespace)
    for name in path:
        owner, edited_owner = getattr(owner, name), getattr(edited_owner, name)
    before, after = inspect.getattr_static(owner, last), inspect.getattr_static(edited_owner, last)
    if isinstance(before, type):
        for name, function in vars(before).items():
            if isinstance(function, types.FunctionType):
                yield before, name, function, vars(after)[name]
    else:
        yield owner, last, before, after


def _function(attribute: Any) -> Any:
    return attribute.func if isinstance(attribute, functools.cached_property) else inspect.unwrap(attribute)


def _at_home(before: Any, after: Any, module: Any) -> Any:
    """Return the edited code with the globals, the enclosing class and the decorators of the real one."""
    if isinstance(before, functools.cached_property):
        edited = functools.cached_property(_at_home(before.func, after.func, module))
        edited.__set_name__(None, before.func.__name__)
        return edited
    if hasattr(before, "__wrapped__"):
        real, edited = before.__wrapped__, _at_home(before.__wrapped__, after.__wrapped__, module)
        cells = tuple(types.CellType(edited) if c.cell_contents is real else c for c in before.__closure__)
        return types.FunctionType(before.__code__, before.__globals__, before.__name__, before.__defaults__, cells)
    closure = before.__closure__ if before.__code__.co_freevars == after.__code__.co_freevars else after.__closure__
    function = types.FunctionType(after.__code__, vars(module), after.__name__, after.__defaults__, closure)
    function.__kwdefaults__ = after.__kwdefaults__
    return function


def _meaning(code: types.CodeType) -> tuple[Any, ...]:
    """What the code does, with the functions inside it, wherever it stands."""
    constants = [_meaning(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, code.co_names, constants
