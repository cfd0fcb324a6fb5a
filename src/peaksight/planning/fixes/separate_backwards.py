"""A backward pass for each of two losses, in place of one for their sum."""

import ast
from collections.abc import Iterator, Sequence

from peaksight.planning.edit_candidates import edit_candidate
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.linear_terms import terms_of
from peaksight.planning.situation import Situation
from peaksight.planning.statements import Statements, file_and_line, names_in, statements_of
from peaksight.records.findings import Effect
from peaksight.records.source_edit import SourceEdit

_SLUG = "backward-each"
_ADVICE = "`a.backward()` before the forward of `b`, and then `b.backward()`, in place of `(a + b).backward()`"
_DDP = {"DistributedDataParallel", "DDP"}
_BETWEEN = {"zero_grad", "step", "update"}


def _propose(situation: Situation) -> Iterator[Proposal]:
    rules = {each.rule for each in situation.report.findings or () for fix in each.fixes if fix.kind == _SLUG}
    if not rules:
        return
    numbers = {term.backward for term in situation.capture.terms}
    lines = dict.fromkeys(fact.at for fact in situation.capture.backwards if fact.number in numbers)
    edits = [edit for line in lines for edit in _edits(situation, line)]
    if edits:
        yield edit_candidate(FIX, "two backward passes", edits)
    else:
        why = f"the losses of {', '.join(lines)} are not assigned one after the other beside their backward pass"
        yield FIX.not_applied(why, _ADVICE)


def _edits(situation: Situation, at: str) -> list[SourceEdit]:
    """None where the terms are neither computed there nor variables that statements of the same block assign."""
    file, line = file_and_line(at)
    statements = statements_of(situation, file)
    backward = statements.at(line) if statements else None
    if statements is None or backward is None:
        return []
    root = _root_of(backward)
    block = statements.block_of(backward)
    if root is None:
        return []
    if all(map(_computes, terms_of(root))):
        return _in_place(statements, backward, root)
    terms = terms_of(_assigned(block, backward, root) or root)
    made = [_made(block, backward, term) for term in terms]
    if len(made) < 2 or None in made:
        return []
    return _moved(statements, backward, root, terms, [each for each in made if each is not None])


def _computes(term: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(term))


def _in_place(statements: Statements, backward: ast.stmt, root: ast.expr) -> list[SourceEdit]:
    """A backward pass after the other where their sum is computed."""
    terms, text = terms_of(root), statements.text_of(backward)
    if len(terms) < 2 or "\n" in text or _wrapper(statements, ()) is None:
        return []
    return [
        statements.replaced(backward, [(backward, "; ".join(_called(statements, backward, root, t) for t in terms))])
    ]


def _moved(
    statements: Statements, backward: ast.stmt, root: ast.expr, terms: Sequence[ast.expr], made: Sequence[ast.stmt]
) -> list[SourceEdit]:
    """A backward pass behind what makes each term; that of the last one stays where it is."""
    block = statements.block_of(backward)
    order = sorted(zip(terms, made, strict=True), key=lambda pair: block.index(pair[1]))
    between = block[block.index(order[0][1]) + 1 : block.index(backward)]
    synchronised = _wrapper(statements, [statement for _, statement in order])
    if len(set(made)) < len(made) or any(_acts(statement) for statement in between) or synchronised is None:
        return []
    if not all(statements.is_alone(statement) for statement in made):
        return []
    call = statements.text_of(backward)
    if "\n" in call or "retain_graph" in call or "create_graph" in call:
        return []
    *first, (last, _) = order
    edits = [
        statements.wrapped(statement, synchronised, f"; {_called(statements, backward, root, term)}")
        for term, statement in first
    ]
    return [*edits, statements.replaced(backward, [(backward, _called(statements, backward, root, last))])]


def _called(statements: Statements, backward: ast.stmt, root: ast.expr, term: ast.expr) -> str:
    """The statement of the backward pass, from `term` in place of `root`."""
    text, column = statements.text_of(backward), root.col_offset - backward.col_offset
    row = text.encode()
    before, after = row[:column].decode(), row[column + (root.end_col_offset or 0) - root.col_offset :].decode()
    is_bare = isinstance(term, (ast.Name, ast.Attribute, ast.Call))
    if before == "(" and after.startswith(").backward"):  # (a + b).backward()
        before, after = before[:-1], after[1:]
    elif not after.startswith(".backward"):
        is_bare = True  # an argument
    words = ast.unparse(term)
    return f"{before}{words if is_bare else f'({words})'}{after}"


def _root_of(backward: ast.stmt) -> ast.expr | None:
    """What is gone back from: `x` of `x.backward()` and of `scaler.scale(x).backward()`."""
    match backward:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=root, attr="backward"), args=[], keywords=[])):
            match root:
                case ast.Call(func=ast.Attribute(attr="scale"), args=[inner], keywords=[]):
                    return inner
                case ast.Name() | ast.BinOp():
                    return root
    return None


def _assigned(block: Sequence[ast.stmt], backward: ast.stmt, root: ast.expr | None) -> ast.expr | None:
    """The sum that the variable `root` was assigned in the same block."""
    if not isinstance(root, ast.Name):
        return None
    statement = _assignment(block, backward, root.id)
    return statement.value if isinstance(statement, ast.Assign) else None


def _assignment(block: Sequence[ast.stmt], backward: ast.stmt, name: str) -> ast.stmt | None:
    """The only statement of `block` before `backward` that has to do with assigning the variable."""
    before = block[: block.index(backward)]
    found = [each for each in before if _stores(each, name)]
    return found[0] if len(found) == 1 and isinstance(found[0], ast.Assign) else None


def _stores(statement: ast.stmt, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(statement)
    )


def _made(block: Sequence[ast.stmt], backward: ast.stmt, term: ast.expr) -> ast.stmt | None:
    """What assigns the one variable of `term`, which computes nothing by itself, that is assigned in `block`."""
    if _computes(term):
        return None
    found = [each for name in sorted(names_in(term)) if (each := _assignment(block, backward, name)) is not None]
    return found[0] if len(found) == 1 else None


def _acts(statement: ast.stmt) -> bool:
    """Whether gradients or parameters may change in it."""
    return any(isinstance(node, ast.Attribute) and node.attr in _BETWEEN for node in ast.walk(statement))


def _wrapper(statements: Statements, made: Sequence[ast.stmt]) -> str | None:
    """What the first terms run under: nothing, or `no_sync()` of the one DistributedDataParallel that they call.

    None where it is not known which that is.
    """
    wrapped = {target.id for node in ast.walk(statements.tree) if isinstance(node, ast.Assign) and _is_ddp(node.value)
               for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
    if not wrapped and not any(_is_ddp(node) for node in ast.walk(statements.tree)):
        return ""
    called = [names_in(statement) & wrapped for statement in made]
    if len(wrapped) != 1 or not called or not all(called):
        return None
    return f"with {wrapped.pop()}.no_sync(): "


def _is_ddp(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _DDP


FIX = FixKind(
    slug=_SLUG,
    title="a backward pass for each loss",
    effect=Effect.ROUNDING,
    text=(
        "`(a + b).backward()` needs the graphs of both losses at the same time. `a.backward()` before the forward of "
        "`b`, then `b.backward()`, gives the same gradients, added in another order; under DistributedDataParallel the "
        "first one runs under `no_sync()`. It needs losses that are assigned one after the other in the block of their "
        "backward pass, with no step and no `zero_grad()` in between."
    ),
    propose=_propose,
)
