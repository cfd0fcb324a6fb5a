"""Trials: steps of a search for a batch size or a learning rate, which the training has still to follow."""

import ast
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType

from peaksight.virtual_gpu.source_lines import installed_name, is_own

_FINDERS = {
    f"{package}/tuner/{module}.py"
    for package in ("lightning/pytorch", "pytorch_lightning")
    for module in ("batch_size_scaling", "lr_finder")
}
_CATCHES_OUT_OF_MEMORY = {"OutOfMemoryError", "RuntimeError", "Exception", "BaseException"}
_Loop = ast.For | ast.AsyncFor | ast.While


def is_trial() -> bool:
    """Whether Lightning's search for a batch size or a learning rate is running."""
    return any(installed_name(frame.f_code.co_filename) in _FINDERS for frame in _stack())


def may_be_trial() -> bool:
    """Whether a loop of the person's code is running what may run out of memory, and goes on when it did not.

    That is a `try` which catches running out of memory, inside a loop that its success does not end. A search for the
    largest batch size looks like this, but so does a training that skips the batches that do not fit.

    Limitations:
        Code without a source file is not recognised, nor a search which catches nothing: one that runs each size in a
        process of its own, or catches in a context manager.
    """
    is_caught = False
    for frame in _stack():
        if not is_own(frame.f_code.co_filename):
            continue
        function, line = _function_of(frame.f_code), frame.f_lineno
        if is_caught and function.in_loop(line):
            return True
        attempts = [attempt for attempt in function.attempts if line in attempt.lines]
        if any(attempt.is_repeated for attempt in attempts):
            return True
        is_caught = is_caught or any(attempt.may_be_repeated for attempt in attempts)
    return False


def _stack() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The body of a `try` that catches running out of memory, and what a loop of this function does around it."""

    lines: range
    is_looped: bool
    ends_loop: bool

    @property
    def is_repeated(self) -> bool:
        return self.is_looped and not self.ends_loop

    @property
    def may_be_repeated(self) -> bool:
        """By a loop of a caller."""
        return not self.is_looped


@dataclass(slots=True)
class _Function:
    """The loops and attempts of one function, without those of the functions inside it."""

    loops: list[range] = field(default_factory=list)
    attempts: list[_Attempt] = field(default_factory=list)

    def in_loop(self, line: int) -> bool:
        return any(line in loop for loop in self.loops)

    def add(self, statements: list[ast.stmt], *, is_looped: bool = False) -> None:
        for statement in statements:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if isinstance(statement, _Loop):
                self.loops.append(_lines(statement.body))
            if isinstance(statement, ast.Try) and any(map(_catches, statement.handlers)):
                self.attempts.append(_Attempt(_lines(statement.body), is_looped, _ends_loop(statement)))
            for block in _blocks(statement):
                self.add(block, is_looped=is_looped or isinstance(statement, _Loop))


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
        yield part.body


def _lines(statements: list[ast.stmt]) -> range:
    return range(statements[0].lineno, (statements[-1].end_lineno or statements[-1].lineno) + 1)


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind).rpartition(".")[2] in _CATCHES_OUT_OF_MEMORY for kind in kinds)


def _ends_loop(attempt: ast.Try) -> bool:
    """Whether success leaves the loop: what follows is then no search."""
    return isinstance((attempt.orelse or attempt.body)[-1], (ast.Break, ast.Return))


@cache
def _function_of(code: CodeType) -> _Function:
    """Read from the source: that of the module for its own code."""
    function = _Function()
    tree = tree_of(code.co_filename)
    if tree is not None:
        function.add(tree.body if code.co_name == "<module>" else body_of(tree, code))
    return function


def body_of(tree: ast.Module, code: CodeType) -> list[ast.stmt]:
    """The statements of the function in `tree` that has `code`; none of a lambda or a comprehension."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if first == code.co_firstlineno:
                return node.body
    return []


@cache
def tree_of(filename: str) -> ast.Module | None:
    """The source in `filename`, None where it cannot be read as Python."""
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return None
