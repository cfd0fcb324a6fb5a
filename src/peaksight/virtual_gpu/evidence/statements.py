"""Statements of the person's files that matter to a rule, and whether they were come to."""

import ast
from collections.abc import Iterator

from peaksight.records import StatementFact
from peaksight.virtual_gpu.evidence.interval_statements import works_before_intervals
from peaksight.virtual_gpu.evidence.patterns import asks_for_checkpointing
from peaksight.virtual_gpu.evidence.reached import simple_statements
from peaksight.virtual_gpu.unreached.probed_files import ProbedFile, ProbedFiles


def statement_facts(files: ProbedFiles) -> tuple[StatementFact, ...]:
    """The facts of all files, in the order of the source within each."""
    return tuple(fact for file in files for fact in _facts(file))


def _facts(file: ProbedFile) -> Iterator[StatementFact]:
    for statement, reached in simple_statements(file):
        if any(map(asks_for_checkpointing, ast.walk(statement))):
            yield StatementFact(
                kind="checkpointing",
                at=f"{file.name}:{statement.lineno}",
                text=ast.unparse(statement),
                num_runs=None if reached else 0,
            )
    yield from works_before_intervals(file)
