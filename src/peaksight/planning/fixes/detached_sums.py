"""What adds up losses or outputs keeps them without their graphs."""

import ast
from collections.abc import Iterator, Sequence

from peaksight.diagnosis.earlier_steps import Holder, holders_of
from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.overdue import Overdue
from peaksight.diagnosis.rules.accumulated_graph import graphs_kept
from peaksight.planning.edit_candidates import edit_candidate
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.planning.statements import Statements, statements_of
from peaksight.planning.stores import store_of
from peaksight.records.findings import Effect
from peaksight.records.source_edit import SourceEdit

_BACKWARD = {"backward", "grad", "manual_backward"}


def _propose(situation: Situation) -> Iterator[Proposal]:
    findings = [each for each in situation.report.findings or () if each.rule == "accumulated-graph"]
    if not any(fix.kind == "detach" for finding in findings for fix in finding.fixes):
        return
    evidence = Evidence(situation.capture)
    holders = [each for each in holders_of(evidence, graphs_kept(Overdue(evidence))) if each.by_graph]
    edits = [_edit_of(situation, holder) for holder in holders]
    found = tuple(dict.fromkeys(edit for edit in edits if edit is not None))
    if found:
        yield edit_candidate(FIX, "detach()", found)
    else:
        yield FIX.not_applied(_why(holders), "`.detach()` on it")


def _edit_of(situation: Situation, holder: Holder) -> SourceEdit | None:
    """None where the statement is not found, or what it keeps may have a backward pass to come."""
    statements = statements_of(situation, holder.where.rpartition(":")[0])
    store = store_of(statements, holder.where, holder.name) if statements else None
    if statements is None or store is None or _has_backward(statements, holder.name):
        return None
    return statements.called_on(store.statement, store.value, ".detach()")


def _has_backward(statements: Statements, name: str) -> bool:
    """Whether anything of that name is gone back through somewhere in the file."""
    variable = name.partition("[")[0]
    calls = (node for node in ast.walk(statements.tree) if isinstance(node, ast.Call))
    backward = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _BACKWARD)
    return any(variable in {ast.unparse(node) for node in ast.walk(call) if isinstance(node, ast.expr)}
               for call in backward)  # fmt: skip


def _why(holders: Sequence[Holder]) -> str:
    names = ", ".join(f"`{each.name}` in {each.where}" for each in holders) or "no name of the script"
    return f"the one statement that fills {names} was not found, or a backward pass may go through it"


FIX = FixKind(
    slug="detach-accumulated",
    title="accumulated values without their graphs",
    effect=Effect.BITWISE,
    text=(
        "A sum of losses, or a list of outputs, keeps all that their forwards saved. The statement that adds to it "
        "(`total += loss`, `losses.append(loss)`) gets `.detach()` on what it adds. The same numbers, where no "
        "backward pass goes through what was added up: one through that name anywhere in the file speaks against it."
    ),
    propose=_propose,
)
