"""Statements of the person's files that matter to a rule, and whether they were come to."""

import ast
from collections.abc import Iterator

from peaksight.records import StatementFact
from peaksight.virtual_gpu.evidence.interval_statements import works_before_intervals
from peaksight.virtual_gpu.evidence.patterns import asks_for_checkpointing
from peaksight.virtual_gpu.unreached.probed_files import ProbedFile, ProbedFiles
from peaksight.virtual_gpu.unreached.probes import Probe, blocks_of


def statement_facts(files: ProbedFiles) -> tuple[StatementFact, ...]:
    """The facts of all files, in the order of the source within each."""
    return tuple(fact for file in files for fact in _facts(file))


def _facts(file: ProbedFile) -> Iterator[StatementFact]:
    for body in [file.tree.body, *(function.body for function in file.functions.values())]:
        for statement, reached in _reached(body, file, reached=True):
            if any(map(asks_for_checkpointing, ast.walk(statement))):
                yield StatementFact(
                    kind="checkpointing",
                    at=f"{file.name}:{statement.lineno}",
                    text=ast.unparse(statement),
                    num_runs=None if reached else 0,
                )
    yield from works_before_intervals(file)


def _reached(block: list[ast.stmt], file: ProbedFile, *, reached: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """The simple statements below `block`; those of a function without probes count as reached."""
    for statement in block:
        if isinstance(statement, Probe):
            reached = bool(file.hits[statement.index])
        elif inner := list(blocks_of(statement)):
            for each in inner:
                yield from _reached(each, file, reached=reached)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement, reached
