"""Outputs and losses of a step are let go of before the next forward."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from peaksight.diagnosis.earlier_steps import holders_of
from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.overdue import Overdue
from peaksight.diagnosis.rules.outputs_kept import outputs_beyond_use
from peaksight.planning.edit_candidates import edit_candidate
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.planning.statements import Loop, Scope, Statements, names_in, statements_of
from peaksight.records.findings import Effect
from peaksight.records.source_edit import SourceEdit

_SEES_LOCALS = {"locals", "globals", "vars", "eval", "exec"}


def _propose(situation: Situation) -> Iterator[Proposal]:
    findings = [each for each in situation.report.findings or () if each.rule in ("outputs-kept", "graph-kept")]
    if not any(fix.kind == "release-outputs" for finding in findings for fix in finding.fixes):
        return
    names = _names(situation)
    edits = [edit for (where, variables) in names.items() for edit in _edits(situation, where, sorted(variables))]
    if edits:
        yield edit_candidate(FIX, "del", edits)
    else:
        shown = ", ".join(f"`{name}` in {where}" for where, variables in names.items() for name in sorted(variables))
        why = f"no loop was found in which {shown or 'a name'} is used up" if names else "no variable leads to them"
        yield FIX.not_applied(why, "`del` after the last use")


def _names(situation: Situation) -> dict[str, set[str]]:
    """The variables that lead to what is kept, by their frames."""
    evidence = Evidence(situation.capture)
    kept = [a for a in evidence.live if a in outputs_beyond_use(evidence)]
    found: dict[str, set[str]] = defaultdict(set)
    for holder in holders_of(evidence, [*kept, *Overdue(evidence).at_peak]):
        found[holder.where].add(holder.name.partition("[")[0].partition(".")[0])
    return found


def _edits(situation: Situation, where: str, variables: Sequence[str]) -> Iterator[SourceEdit]:
    statements = statements_of(situation, where.rpartition(":")[0])
    scopes = statements.scopes(where) if statements else []
    if statements is None or len(scopes) != 1:
        return
    released: dict[ast.stmt, list[str]] = defaultdict(list)
    for name in variables:
        last = _last_use(statements, scopes[0], name)
        if last is not None:
            released[last].append(name)
    for statement, names in released.items():
        yield statements.wrapped(statement, after=f"; del {', '.join(names)}")


def _last_use(statements: Statements, scope: Scope, name: str) -> ast.stmt | None:
    """The statement of the loop's body after which `name` is not used, None where there is no such one."""
    loop = _loop_that_makes(statements, scope, name)
    if loop is None or _is_seen_elsewhere(statements, scope, loop, name):
        return None
    uses = [statement for statement in loop.body if name in names_in(statement)]
    if not _is_made_first(uses[0], name):
        return None
    following = loop.body[loop.body.index(uses[-1]) :]
    is_simple = isinstance(uses[-1], (ast.Assign, ast.Expr, ast.AugAssign, ast.AnnAssign))
    return following[0] if is_simple and statements.is_alone(following[0]) else None


def _loop_that_makes(statements: Statements, scope: Scope, name: str) -> Loop | None:
    """The one loop in whose body itself the variable is assigned."""
    made = {
        loop
        for statement in statements.simple(scope)
        if isinstance(statement, ast.Assign) and _is_made_first(statement, name)
        if (loop := statements.loop_of(statement)) is not None and statement in loop.body
    }
    return made.pop() if len(made) == 1 else None


def _is_made_first(statement: ast.stmt, name: str) -> bool:
    """Whether `statement` assigns the variable without reading it."""
    if not isinstance(statement, ast.Assign):
        return False
    targets = [each for target in statement.targets for each in ast.walk(target)]
    return name in {each.id for each in targets if isinstance(each, ast.Name)} and name not in names_in(statement.value)


def _is_seen_elsewhere(statements: Statements, scope: Scope, loop: Loop, name: str) -> bool:
    """Whether code outside of the loop's body, or a function that may be called then, may read the variable."""
    inside = {id(node) for statement in loop.body for node in ast.walk(statement)}
    nodes = [node for node in ast.walk(scope) if isinstance(node, ast.Name)]
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        node.id in _SEES_LOCALS
        or (node.id == name and (id(node) not in inside or _is_in(statements, node, nested, loop)))
        for node in nodes
    )


def _is_in(statements: Statements, node: ast.AST, kinds: tuple[type[ast.AST], ...], loop: Loop) -> bool:
    for each in statements.above(node):
        if each is loop:
            return False
        if isinstance(each, kinds):
            return True
    return True


FIX = FixKind(
    slug="release-outputs",
    title="outputs let go of after their last use",
    effect=Effect.BITWISE,
    text=(
        "A variable of a loop's body keeps the outputs of one step, with their graph or without, until the next one "
        "assigns it again, when both are there. `del` after its last use lets go of it. The same numbers. It needs a "
        "variable that the body assigns before it reads it, that nothing after the loop and no function reads, and "
        "whose last use is a statement of the body itself."
    ),
    propose=_propose,
)
