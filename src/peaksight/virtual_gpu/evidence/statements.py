"""Statements of the person's files that matter to a rule, and whether they were come to."""

import ast
from collections.abc import Iterator, Mapping

from peaksight.records import StatementFact
from peaksight.virtual_gpu.evidence.interval_statements import works_before_intervals
from peaksight.virtual_gpu.evidence.patterns import asks_for_checkpointing
from peaksight.virtual_gpu.evidence.reached import simple_statements
from peaksight.virtual_gpu.unreached.probed_files import ProbedFile, ProbedFiles


def statement_facts(files: ProbedFiles, largest_steps: Mapping[str, int]) -> tuple[StatementFact, ...]:
    """The facts of all files, in the order of the source within each; `largest_steps` are those of slices by line."""
    facts = (fact for file in files for fact in _facts(file))
    return tuple(fact for fact in facts if not _takes_all(fact, largest_steps))


def _takes_all(fact: StatementFact, largest_steps: Mapping[str, int]) -> bool:
    """Whether `x[::interval]` was run, and with an interval of one."""
    return fact.kind == "slice-after-work" and largest_steps.get(fact.used_at) == 1


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
