"""Work that is done each time, and of which an interval takes a part afterwards.

Two kinds: `features = extract(batch)`, of which all uses are under an `if step % k == 0`; and `vectors = eigh(graphs)`,
of which the only use is `vectors[::k]`.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from peaksight.records import StatementFact
from peaksight.virtual_gpu.unreached.probed_files import Function, ProbedFile, Tree

# Methods that only look at a tensor in another way, or turn it: the work is in what they are called on.
_VIEWS = {
    "view",
    "reshape",
    "permute",
    "transpose",
    "flatten",
    "unflatten",
    "squeeze",
    "unsqueeze",
    "contiguous",
    "detach",
    "to",
    "float",
}
_MAX_TEXT = 80


@dataclass(slots=True)
class _Name:
    """A local variable: the statements that assign it, and each use with the conditions and the subscript around it."""

    assigned: list[ast.Assign] = field(default_factory=list)
    uses: list[tuple[ast.Name, list[ast.If], ast.Subscript | None]] = field(default_factory=list)


def works_before_intervals(file: ProbedFile) -> Iterator[StatementFact]:
    """One fact for each work of `file`."""
    for scope in [file.tree, *file.functions.values()]:
        names = _Names(scope).found
        for name, variable in names.items():
            if len(variable.assigned) == 1:
                yield from _of_condition(name, variable, names, scope, file)
                yield from _of_slice(name, variable, names, scope, file)


def _of_condition(
    name: str, variable: _Name, names: Mapping[str, _Name], scope: Tree, file: ProbedFile
) -> Iterator[StatementFact]:
    (work,) = variable.assigned
    intervals = [
        next((test for test in tests if _is_interval(test.test, names)), None) for _, tests, _ in variable.uses
    ]
    before = [test for test in intervals if test is not None and test.lineno > work.lineno]
    if intervals and len(before) == len(intervals) and _calls(work):
        yield _fact("interval-after-work", name, work, before[0], f"if {ast.unparse(before[0].test)}", scope, file)


def _of_slice(
    name: str, variable: _Name, names: Mapping[str, _Name], scope: Tree, file: ProbedFile
) -> Iterator[StatementFact]:
    subscript = variable.uses[0][2] if len(variable.uses) == 1 else None
    step = _step_of(subscript) if subscript is not None else None
    work = _work_behind(variable, names) if step is not None else None
    if subscript is not None and work is not None:
        kind = "constant-slice-after-work" if isinstance(step, ast.Constant) else "slice-after-work"
        yield _fact(kind, name, work, subscript, ast.unparse(subscript), scope, file)


def _fact(
    kind: str, name: str, work: ast.Assign, use: ast.expr | ast.stmt, text: str, scope: Tree, file: ProbedFile
) -> StatementFact:
    function = scope.name if isinstance(scope, Function) else "<module>"
    return StatementFact(
        kind=kind,
        at=f"{file.name}:{work.lineno}",
        text=_short(ast.unparse(work)),
        num_runs=None,
        last_line=work.end_lineno or work.lineno,
        name=name,
        where=f"{file.name}:{function}",
        used_at=f"{file.name}:{use.lineno}",
        used_as=_short(text),
    )


def _work_behind(variable: _Name, names: Mapping[str, _Name]) -> ast.Assign | None:
    """The assignment that computes a variable, through views of others that have no other use; None if none calls."""
    seen: list[_Name] = []
    while variable not in seen and len(variable.assigned) == 1:
        seen.append(variable)
        work = variable.assigned[0]
        source = _viewed(work.value)
        if source is None:
            return work if _calls(work) else None
        if source not in names or len(names[source].uses) != 1:
            return None
        variable = names[source]
    return None


def _viewed(value: ast.expr) -> str | None:
    """The variable that an expression is a view of; None where it computes something."""
    while not isinstance(value, ast.Name):
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _VIEWS:
                value = inner
            case ast.Subscript(value=inner):
                value = inner
            case _:
                return None
    return value.id


def _calls(work: ast.Assign) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(work.value))


def _is_interval(test: ast.expr, names: Mapping[str, _Name]) -> bool:
    """Whether a condition is about a remainder, itself or by a variable that is."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return not isinstance(node.left, ast.Constant)
        if isinstance(node, ast.Name) and node.id in names:
            assigned = names[node.id].assigned
            if any(isinstance(each, ast.Mod) for statement in assigned for each in ast.walk(statement.value)):
                return True
    return False


def _step_of(subscript: ast.Subscript) -> ast.expr | None:
    """The k of `x[::k]` or `x[:, ::k]`, None if there is none or it is 1 or negative."""
    parts = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
    step = next((part.step for part in parts if isinstance(part, ast.Slice) and part.step is not None), None)
    is_plain = isinstance(step, ast.UnaryOp) or (isinstance(step, ast.Constant) and step.value in (None, 1))
    return None if is_plain else step


class _Names(ast.NodeVisitor):
    """The variables of one scope; functions inside it are part of it, as far as they use them."""

    def __init__(self, scope: Tree) -> None:
        self.found: dict[str, _Name] = defaultdict(_Name)
        self._tests: list[ast.If] = []
        self._subscript: ast.Subscript | None = None
        for statement in scope.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Name):
                    self.found[each.id].assigned.append(node)
                else:
                    self.visit(each)
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._tests.append(node)
        for statement in node.body:
            self.visit(statement)
        self._tests.pop()
        for statement in node.orelse:
            self.visit(statement)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name):
            self._subscript = node
        self.visit(node.value)
        self._subscript = None
        self.visit(node.slice)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.found[node.id].uses.append((node, list(self._tests), self._subscript))
        elif isinstance(node.ctx, ast.Store):  # by a loop, a `with` or an import: not what is looked for
            self.found[node.id].uses.append((node, [], None))


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 3]}..."
