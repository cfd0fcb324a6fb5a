"""Gradients that are let go of, where the script sets them to zero."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from peaksight.planning.edit_candidates import edit_candidate
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.script_text import text_of_script
from peaksight.planning.situation import Situation
from peaksight.planning.statements import statements_of
from peaksight.records import Phase
from peaksight.records.findings import Effect
from peaksight.records.source_edit import SourceEdit


def _propose(situation: Situation) -> Iterator[Proposal]:
    edits = tuple(_edits(situation))
    if not edits:
        return
    if _differs_from_step_to_step(situation):
        why = "some modules take part in some steps only: their parameters would keep still in the others"
        yield FIX.not_applied(why, "`set_to_none=True`", effect=Effect.MODEL)
        return
    caution = "a parameter that gets no gradient in a step is left as it is in that step"
    yield edit_candidate(FIX, "set_to_none=True", edits, cautions=(caution,))


def _edits(situation: Situation) -> Iterator[SourceEdit]:
    """Of every call of `zero_grad` that asks for zeros."""
    for file in text_of_script(situation).trees:
        statements = statements_of(situation, file)
        for statement in statements.simple() if statements else ():
            given = _asked_for_zeros(statement)
            if statements is not None and given is not None and statements.is_alone(statement):
                yield statements.replaced(statement, [(given, "True")])


def _asked_for_zeros(statement: ast.stmt) -> ast.expr | None:
    """The `False` of `optimizer.zero_grad(set_to_none=False)`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="zero_grad"), args=args, keywords=keywords)):
            given = [*args[:1], *(each.value for each in keywords if each.arg == "set_to_none")]
            return next((each for each in given if isinstance(each, ast.Constant) and each.value is False), None)
    return None


def _differs_from_step_to_step(situation: Situation) -> bool:
    complete = {step.step for step in situation.capture.steps if step.complete}
    modules: dict[int, set[str]] = defaultdict(set)
    for a in situation.capture.allocations:
        if a.phase is Phase.FORWARD and a.grad_enabled and a.step in complete:
            modules[a.step].add(a.module)
    return len(set(map(frozenset, modules.values()))) > 1


FIX = FixKind(
    slug="gradients-to-none",
    title="gradients set to None",
    effect=Effect.BITWISE,
    text=(
        "`zero_grad(set_to_none=False)` keeps the gradients of one step, as zeros, through the next forward. With "
        "`True`, which is torch's default, they are let go of. The same numbers, where every parameter gets a gradient "
        "in every step: one that does not is then not updated, and else by its momentum and weight decay. It is not "
        "made where modules take part in some of the steps only."
    ),
    propose=_propose,
)
