"""No graph for calls of a model that no backward pass goes through."""

import ast
import re
from collections.abc import Iterator, Sequence

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.forward_without_backward import calls_without_backward
from peaksight.planning.edit_candidates import edit_candidate
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.script_text import text_of_script
from peaksight.planning.situation import Situation
from peaksight.planning.statements import Statements, file_and_line, statements_of
from peaksight.records import CallFact
from peaksight.records.findings import Effect
from peaksight.records.proposals import NotApplied
from peaksight.records.source_edit import SourceEdit

# What may be done to a result in the same statement: nothing with other tensors.
_OF_A_RESULT = {"detach", "float", "softmax", "log_softmax", "sigmoid", "tanh", "argmax", "mean", "squeeze", "cpu"}


def _propose(situation: Situation) -> Iterator[Proposal]:
    if not any(each.rule == "forward-without-backward" for each in situation.report.findings or ()):
        return
    calls = tuple(calls_without_backward(Evidence(situation.capture)))
    lines = dict.fromkeys(call.at for call in calls if call.at)
    edits = [_edit_of(situation, calls, line) for line in lines]
    found = tuple(dict.fromkeys(edit for edit in edits if edit is not None))
    if why := _why_not(situation, calls):
        yield _shown(lines, why)
    elif found:
        yield edit_candidate(FIX, "no_grad()", found)
    else:
        yield _shown(lines, "the call is not a statement of its own whose result alone it computes")


def _shown(lines: Sequence[str] | dict[str, None], why: str) -> NotApplied:
    advice = f"`with torch.no_grad():` around the call at {', '.join(lines)}"
    return FIX.not_applied(why, advice)


def _why_not(situation: Situation, calls: Sequence[CallFact]) -> str:
    """Under autocast weights that were cast without autograd are taken again with it, which loses their gradients."""
    modules = {call.module for call in calls}
    trains = any(each.module in modules and each not in calls and each.recorded for each in situation.capture.passes)
    if trains and text_of_script(situation).names(re.compile("autocast")):
        return "the model is trained too, and autocast would take its weights without gradients from its cache"
    return ""


def _edit_of(situation: Situation, calls: Sequence[CallFact], at: str) -> SourceEdit | None:
    file, line = file_and_line(at)
    statements = statements_of(situation, file)
    statement = statements.at(line) if statements else None
    if statements is None or statement is None or not _only_calls(statement, line):
        return None
    if not _imports_torch(statements) or not _all_are_unused(situation, calls, file, statement):
        return None
    return statements.wrapped(statement, before="with torch.no_grad(): ")


def _only_calls(statement: ast.stmt, line: int) -> bool:
    """Whether the statement computes the result of the call at `line`, or a part of it, and nothing else."""
    if not isinstance(statement, (ast.Assign, ast.Return, ast.AnnAssign)) or statement.value is None:
        return False
    value = statement.value
    while True:
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr), args=args) if attr in _OF_A_RESULT and not (
                args and _is_function_of_tensors(inner)
            ):
                if any(not isinstance(arg, (ast.Constant, ast.UnaryOp)) for arg in args):
                    return False
                value = inner
            case ast.Call(func=ast.Attribute(value=holder, attr=attr), args=[inner, *_]) if (
                attr in _OF_A_RESULT and _is_function_of_tensors(holder)
            ):
                value = inner
            case ast.Attribute(value=inner) | ast.Subscript(value=inner, slice=ast.Constant()):
                value = inner
            case ast.Call():
                return value.lineno <= line <= (value.end_lineno or value.lineno)
            case _:
                return False


def _is_function_of_tensors(holder: ast.expr) -> bool:
    return ast.unparse(holder) in {"torch", "F", "torch.nn.functional", "nn.functional"}


def _imports_torch(statements: Statements) -> bool:
    """Whether the file has the name `torch` for it."""
    imports = (node for node in statements.tree.body if isinstance(node, ast.Import))
    return any(alias.name.split(".")[0] == "torch" and not alias.asname for node in imports for alias in node.names)


def _all_are_unused(situation: Situation, calls: Sequence[CallFact], file: str, statement: ast.stmt) -> bool:
    """Whether no backward pass needs any call that the statement makes, nor anything that it computes beside them."""
    lines = {f"{file}:{line}" for line in range(statement.lineno, (statement.end_lineno or 0) + 1)}
    return not any(call.at in lines and call.recorded and call not in calls for call in situation.capture.passes)


FIX = FixKind(
    slug="no-grad",
    title="no graph where no backward pass goes",
    effect=Effect.BITWISE,
    text=(
        "A forward of a teacher, an average of weights or a validation records what its gradient would need, although "
        "no backward pass goes through it. Its statement (`targets = teacher(x)`) runs under `torch.no_grad()`. The "
        "same numbers. It needs a statement that computes nothing but the result of such calls, whichever lines they "
        "are on; where the same model is trained under autocast, whose cache of weights would lose gradients, it is "
        "shown only."
    ),
    propose=_propose,
)
