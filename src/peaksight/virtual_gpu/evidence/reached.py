"""Which statements of the person's files were come to, as far as probes tell."""

import ast
from collections.abc import Iterator

from peaksight.virtual_gpu.unreached.probed_files import ProbedFile
from peaksight.virtual_gpu.unreached.probes import Probe, blocks_of


def simple_statements(file: ProbedFile) -> Iterator[tuple[ast.stmt, bool]]:
    """Those without blocks, each with whether it was reached; in a function without probes all count as reached."""
    for body in [file.tree.body, *(function.body for function in file.functions.values())]:
        yield from _below(body, file, reached=True)


def _below(block: list[ast.stmt], file: ProbedFile, *, reached: bool) -> Iterator[tuple[ast.stmt, bool]]:
    for statement in block:
        if isinstance(statement, Probe):
            reached = bool(file.hits[statement.index])
        elif inner := list(blocks_of(statement)):
            for each in inner:
                yield from _below(each, file, reached=reached)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement, reached
