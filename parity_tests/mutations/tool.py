"""Mutants made by cosmic-ray: ``python -m parity_tests.mutations.tool numpy_rnn/tape.py ...``, without a file: all.

cosmic-ray edits one place of a source file at a time: ``a + b`` to ``a - b``, ``1`` to ``2``, ``<`` to ``<=``, a
condition to its opposite, a loop to none. Each such mutant takes the place of the file in a process of its own, which
runs the tests of that file, ``TESTS``. What they do not notice has survived, and is printed. ``SURVIVORS.md`` has the
scores, and of each survivor the reason why no result can differ.

A fresh Python for each mutant would spend its time importing PyTorch. So that is imported once, and forked from.
"""

import argparse
import ast
import gc
import importlib
import multiprocessing
import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
# plain: what pytest rewrites for its assertions, as a file with docstrings, it reads from the disk, without the mutant
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain"]
SECONDS, BYTES = 100, 8 * 2**30  # of the processor; a mutant that takes more of either is noticed

# Of the eleven other operators a binary one becomes these; the others mostly raise at once.
BINARY = tuple(f"ReplaceBinaryOperator_{a}_{b}" for a in ("Add", "Sub", "Mul", "Div") for b in ("Add", "Sub", "Mul"))
BINARY += (*(f"ReplaceBinaryOperator_{a}_Add" for a in ("FloorDiv", "Mod", "Pow")), "ReplaceBinaryOperator_Mul_Div")
BINARY += ("ReplaceBinaryOperator_BitOr_BitAnd", "ReplaceBinaryOperator_BitAnd_BitOr")

# By file, or by folder: what must notice its mutants besides the examples of its docstrings, of the tests in
# parity_tests/. A word that begins with "-" is an option of pytest: "-ksgd" takes only those with sgd in their name.
_CELL = ["test_worked_cases.py", "test_packing.py"]
_RELU = [
    f"test_rnn.py::test_relu_passes_no_{x}"
    for x in ("gradient_at_zero_and_passes_it_at_nan", "infinite_upstream_gradient_where_it_is_closed")
]
_RNN = [
    *(f"test_rnn.py::test_all_gradients[2-True-tanh-True-{x}-float64]" for x in ("time-major", "batch_first")),
    "test_rnn.py::test_all_gradients[1-False-relu-False-unbatched-float32]",
    "test_rnn.py",
    "--deselect=parity_tests/test_rnn.py::test_all_gradients",
]
_EMPTY = "test_an_empty_batch_gives_empty_outputs_and_zero_gradients"
_STORY = [
    f"test_inplace.py::test_{x}"
    for x in ("every_variant_of_the_story", "silence_is_wrong_alike_and_the_truth_is_known")
]
_READS = "test_inplace.py::test_both_read_the_same_weights_in_the_same_order[True-2]"
_STEPS = "--deselect=parity_tests/test_step_cells.py::test_a_training_run_with_dropout_matches_step_by_step"
_SAME = "test_inplace.py::test_both_libraries_do_the_same"
_LAYERS = [*_CELL, *_RNN, "test_modules.py", "test_step_cells.py", _STEPS, "test_refusals.py", "test_recompute.py"]
_OPTIM = ["test_optim.py::test_a_state_dict_goes_on_where_it_was", "test_optim.py", "-knot two_hundred_steps"]
_BUGS = [
    "test_diagnosis.py::test_two_bugs_in_different_tensors_are_both_named",
    "test_diagnosis.py::test_no_two_bugs_are_the_same_on_the_plain_case",
    "test_vectors.py::test_what_diagnosis_recomputes_is_right_without_a_bug",
    "test_diagnosis.py",
    "-knot (random_errors or central or lengths1)",
]
TESTS = {
    "numpy_rnn": [],
    "numpy_rnn/cells": [*_CELL, "test_lstm_cell.py", "test_gru_cell.py", _RNN[1], f"{_RNN[3]}::{_EMPTY}"],
    "numpy_rnn/cells/rnn.py": [*_CELL, *_RELU, "test_rnn.py::test_all_gradients[2-True-relu-True-time-major-float64]"],
    "numpy_rnn/cells/lstm.py": [*_CELL, "test_lstm_cell.py"],
    "numpy_rnn/cells/gru.py": [*_CELL, "test_gru_cell.py"],
    "numpy_rnn/modules": [*_LAYERS, "test_lstm_cell.py", *_STORY, _READS],
    "numpy_rnn/modules/linear.py": ["test_modules.py", "test_tape.py", *_STORY],
    "numpy_rnn/modules/embedding.py": ["test_modules.py", "test_step_cells.py", _STEPS],
    "numpy_rnn/modules/step_cells.py": ["test_modules.py", "test_step_cells.py", "test_refusals.py"],
    "numpy_rnn/modules/recompute.py": ["test_recompute.py"],
    "numpy_rnn/losses": ["test_losses.py", "-knot (test_parity and (float32 or cross_entropy or nll_loss))"],
    "numpy_rnn/losses/logistic.py": ["test_losses.py", "-knot test_parity or (binary and float64)"],
    "numpy_rnn/losses/classes.py": ["test_losses.py", "-knot (test_parity and (float32 or sum))"],
    "numpy_rnn/tape.py": ["test_tape.py", *_STORY, _READS, "test_explain.py"],
    "numpy_rnn/tensor.py": ["test_tape.py", *_STORY, "test_modules.py"],
    "numpy_rnn/gradcheck.py": ["test_gradcheck.py"],
    "numpy_rnn/packing.py": ["test_packing.py", "test_refusals.py"],
    "numpy_rnn/optim": _OPTIM,
    "numpy_rnn/optim/optimizer.py": [*_OPTIM, "test_lr_scheduler.py"],
    **{
        f"numpy_rnn/optim/{name}.py": ["test_optim.py", f"-k{name} or bad_settings"]
        for name in ("adadelta", "adagrad", "adamax", "asgd", "nadam", "radam", "rmsprop", "sgd")
    },
    "numpy_rnn/optim/adam.py": ["test_optim.py", "-kadamw or bad_settings or (adam and not two_hundred_steps)"],
    "numpy_rnn/optim/lr_scheduler.py": ["test_lr_scheduler.py"],
    "numpy_rnn/training.py": [
        "test_carry.py",
        "-knot three_hundred or (three_hundred and sgd and detach)",
    ],
    "numpy_rnn/tasks": ["test_tasks.py"],
    "numpy_rnn/weights.py": ["test_weights.py", "-knot (killed or half or flipped or truncated)"],
    "numpy_rnn/conventions.py": ["test_conventions.py"],
    "numpy_rnn/files.py": ["test_files.py", "test_weights.py", "-knot (flipped or truncated or scrambled)"],
    "numpy_rnn/diagnosis": _BUGS,
    "numpy_rnn/diagnosis/signatures.py": [
        *(f"test_vectors.py::test_{x}_named" for x in ("scaled_gradients_are", "arrays_that_are_turned_are")),
        *_BUGS,
    ],
    "numpy_rnn/diagnosis/optimizers.py": ["test_vectors.py::test_a_bug_of_the_optimizer_is_named"],
}


class Mutant(NamedTuple):
    """The ``occurrence``-th place in a file where an operator of cosmic-ray has something to edit; "" for no edit."""

    path: str
    line: int
    operator: str = ""
    occurrence: int = 0

    def source(self) -> str:
        from cosmic_ray import plugins
        from cosmic_ray.mutating import mutate_code

        source = (ROOT / self.path).read_text("utf-8")
        return mutate_code(source, plugins.get_operator(self.operator)(), self.occurrence) if self.operator else source

    def __str__(self) -> str:
        lines = ((ROOT / self.path).read_text("utf-8"), self.source())
        before, after = (text.splitlines()[self.line - 1].strip() for text in lines)
        return f"{self.path}:{self.line}: {self.operator}\n    {before}\n    {after}"


def tests_of(path: str) -> list[str]:
    """Return what pytest is to be given for a source file."""
    names = TESTS.get(path) or TESTS[str(Path(path).parent)]
    return [str(ROOT / path), *(x if x.startswith("-") else str(ROOT / "parity_tests" / x) for x in names)]


def mutants(path: str) -> Iterator[Mutant]:
    """Yield every mutant of a file except of its annotations, whose edits change nothing or stop the import."""
    from cosmic_ray import plugins  # here, since the tests import this file, and do not need it
    from cosmic_ray.ast import ast_nodes, get_ast

    source = (ROOT / path).read_text("utf-8")
    types = [((a.lineno, a.col_offset), (a.end_lineno, a.end_col_offset)) for a in _annotations(ast.parse(source))]
    nodes = list(ast_nodes(get_ast(source)))
    for name in plugins.operator_names():
        kind = plugins.get_operator(name)
        if kind.arguments() or ("BinaryOperator" in name and name.removeprefix("core/") not in BINARY):
            continue
        operator = kind()
        for i, (start, end) in enumerate(place for node in nodes for place in operator.mutation_positions(node)):
            if not any(first <= start and end <= last for first, last in types):
                yield Mutant(path, start[0], name, i)


def _annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        written = node.returns if isinstance(node, ast.FunctionDef) else getattr(node, "annotation", None)
        if written is not None:
            yield written


class NoEditsOfText:
    """Leaves out the tests that edit source lines themselves: they would fail since the line is not what it was."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if "mutated" not in _names(getattr(i, "function", None))]


def _names(function: Any) -> tuple[str, ...]:
    return function.__code__.co_names if hasattr(function, "__code__") else ()


def notice(mutant: Mutant) -> bool:
    """Whether the tests fail, crash or run out of time or memory with the mutant in the place of its file."""
    child = os.fork()
    if not child:
        _run(mutant)
    _, status = os.waitpid(child, 0)
    return status != 0


def _run(mutant: Mutant) -> None:
    """Run the tests and leave this process, with 0 if they pass."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # not of the clock: a busy machine notices nothing
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.alarm(20 * SECONDS)  # of the clock, for what waits for ever and works on nothing
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    source, mutated, get_code = mutant.source(), str(ROOT / mutant.path), SourceFileLoader.get_code

    def code(loader: SourceFileLoader, name: str) -> Any:
        return compile(source, mutated, "exec") if loader.path == mutated else get_code(loader, name)

    SourceFileLoader.get_code = code
    try:
        os._exit(pytest.main([*OPTIONS, *tests_of(mutant.path)], plugins=[NoEditsOfText()]))
    finally:
        os._exit(1)


def _prepare() -> None:
    """Import what the tests import, except what may be mutated: the forked processes have it."""
    import torch

    for name in ("autograd", "hypothesis", "onnx", "onnxruntime", "sybil"):
        importlib.import_module(name)

    torch.ones(1, requires_grad=True).backward(torch.ones(1))  # imports a lot
    gc.collect()
    gc.freeze()  # else each process goes through all of PyTorch's objects


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the mutants of source files; print those that no test notices.")
    parser.add_argument("files", nargs="*", help="as numpy_rnn/tape.py; default: all that have tests here")
    parser.add_argument(
        "--every", type=int, default=1, metavar="K", help="only one in K mutants, drawn with a fixed seed"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (default: 2)")
    options = parser.parse_args()
    files = options.files or [
        path
        for path in sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "numpy_rnn").rglob("*.py"))
        if path in TESTS or str(Path(path).parent) in TESTS
    ]
    _prepare()
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:
        for path in files:
            if notice(Mutant(path, 1)):
                raise SystemExit(f"{path}: its tests fail without a mutant: {' '.join(tests_of(path))}")
            chosen = list(mutants(path))
            chosen = random.Random(0).sample(chosen, -(-len(chosen) // options.every))
            counts = Counter[bool]()
            for mutant, noticed in zip(chosen, pool.map(notice, chosen), strict=True):
                counts[noticed] += 1
                if not noticed:
                    print(mutant, flush=True)
            print(f"{path}: {counts[True]} of {len(chosen)} mutants noticed, {counts[False]} survived", flush=True)


if __name__ == "__main__":
    main()
