"""Work that is done each time, and of which an interval takes a part afterwards.

Two kinds: `features = extract(batch)`, of which all uses are under an `if step % k == 0`; and `vectors = eigh(graphs)`,
of which the only use is `vectors[::k]`.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from peaksight.records import StatementFact
from peaksight.virtual_gpu.evidence.reached import simple_statements
from peaksight.virtual_gpu.unreached.probed_files import Function, ProbedFile, Tree
from peaksight.virtual_gpu.unreached.probes import called_names

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


@dataclass(slots=True, eq=False)
class _Variable:
    """What a name stands for from one assignment to the next: its uses, with the conditions and subscript around."""

    name: str
    assigned: ast.Assign | None = None
    uses: list[tuple[list[ast.If], ast.Subscript | None]] = field(default_factory=list)


def works_before_intervals(file: ProbedFile) -> Iterator[StatementFact]:
    """One fact for each work of `file`."""
    for scope in [file.tree, *file.functions.values()]:
        variables = _Variables(scope)
        for variable in variables.all:
            yield from _of_condition(variable, variables, scope, file)
            yield from _of_slice(variable, variables, scope, file)


def _of_condition(
    variable: _Variable, variables: "_Variables", scope: Tree, file: ProbedFile
) -> Iterator[StatementFact]:
    """Where all uses are under an interval, and the name stands for nothing else."""
    work = variable.assigned
    if work is None or len(variables.by_name[variable.name]) != 1 or not _calls(work):
        return
    intervals = [variables.interval_in(tests) for tests, _ in variable.uses]
    before = [test for test in intervals if test is not None and test.lineno > work.lineno]
    if intervals and len(before) == len(intervals):
        text = f"if {ast.unparse(before[0].test)}"
        yield _fact("interval-after-work", variable.name, work, before[0].lineno, text, scope, file)


def _of_slice(variable: _Variable, variables: "_Variables", scope: Tree, file: ProbedFile) -> Iterator[StatementFact]:
    """Where the only use is one of every so many."""
    subscript = variable.uses[0][1] if len(variable.uses) == 1 else None
    step = _step_of(subscript) if subscript is not None else None
    work = variables.work_behind(variable) if step is not None else None
    if subscript is not None and work is not None:
        kind = "constant-slice-after-work" if isinstance(step, ast.Constant) else "slice-after-work"
        yield _fact(kind, variable.name, work, subscript.lineno, ast.unparse(subscript), scope, file)


def _fact(
    kind: str, name: str, work: ast.Assign, used_in: int, text: str, scope: Tree, file: ProbedFile
) -> StatementFact:
    function = scope.name if isinstance(scope, Function) else "<module>"
    inside = _lines_inside(work, file)
    return StatementFact(
        kind=kind,
        at=f"{file.name}:{work.lineno}",
        text=_short(ast.unparse(work)),
        num_runs=None,
        last_line=work.end_lineno or work.lineno,
        name=name,
        where=f"{file.name}:{function}",
        used_at=f"{file.name}:{used_in}",
        used_as=_short(text),
        inside_first=inside.start,
        inside_last=inside.stop,
    )


def _lines_inside(work: ast.Assign, file: ProbedFile) -> range:
    """The lines of the one function of the file that `work` calls, if nothing else that ran does; else none."""
    own = [function for function in file.functions.values() if function.name in called_names(work.value)]
    statements = [statement for statement, reached in simple_statements(file) if reached]
    calls = [node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Call)]
    for function in own:
        if sum(_is_call_of(function, call) for call in calls) == 1:
            return range(function.lineno, function.end_lineno or function.lineno)
    return range(0)


def _is_call_of(function: Function, call: ast.Call) -> bool:
    return function.name in (getattr(call.func, "id", ""), getattr(call.func, "attr", ""))


def _viewed(value: ast.expr) -> ast.Name | None:
    """The variable that an expression is a view of; None where it computes something."""
    while not isinstance(value, ast.Name):
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _VIEWS:
                value = inner
            case ast.Subscript(value=inner):
                value = inner
            case _:
                return None
    return value


def _calls(work: ast.Assign) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(work.value))


def _step_of(subscript: ast.Subscript) -> ast.expr | None:
    """The k of `x[::k]` or `x[:, ::k]`, None if there is none or it is 1 or negative."""
    parts = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
    step = next((part.step for part in parts if isinstance(part, ast.Slice) and part.step is not None), None)
    is_plain = isinstance(step, ast.UnaryOp) or (isinstance(step, ast.Constant) and step.value in (None, 1))
    return None if is_plain else step


class _Variables(ast.NodeVisitor):
    """The variables of one scope, in the order of the text; functions inside it use them too."""

    def __init__(self, scope: Tree) -> None:
        self.by_name: dict[str, list[_Variable]] = defaultdict(list)
        self._used: dict[ast.Name, _Variable] = {}
        self._tests: list[ast.If] = []
        self._subscript: ast.Subscript | None = None
        for statement in scope.body:
            self.visit(statement)

    @property
    def all(self) -> list[_Variable]:
        return [variable for variables in self.by_name.values() for variable in variables]

    def interval_in(self, tests: list[ast.If]) -> ast.If | None:
        """The first of `tests` that is about a remainder, itself or by a variable that is."""
        return next((test for test in tests if self._is_interval(test.test)), None)

    def work_behind(self, variable: _Variable) -> ast.Assign | None:
        """The assignment that computes it, through views of variables that have no other use; None if none calls."""
        while variable.assigned is not None:
            source = _viewed(variable.assigned.value)
            if source is None:
                return variable.assigned if _calls(variable.assigned) else None
            variable = self._used[source]
            if len(variable.uses) != 1:
                return None
        return None

    def _is_interval(self, test: ast.expr) -> bool:
        used = [self._used[node] for node in ast.walk(test) if isinstance(node, ast.Name) and node in self._used]
        given = [variable.assigned.value for variable in used if variable.assigned is not None]
        return any(isinstance(node, ast.Mod) for each in [test, *given] for node in ast.walk(each))

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Name):
                    self.by_name[each.id].append(_Variable(each.id, node))
                else:
                    self.visit(each)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """What it assigns is its own; what it uses, it may use at any time."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                for variable in self.by_name.get(each.id, ()):
                    variable.uses.append(([], None))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Its methods are scopes of their own."""

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._tests.append(node)
        for statement in node.body:
            self.visit(statement)
        self._tests.pop()
        for statement in node.orelse:
            self.visit(statement)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._subscript = node
        self.visit(node.value)
        self._subscript = None
        self.visit(node.slice)

    def generic_visit(self, node: ast.AST) -> None:
        """Of `f(x)[::2]` the subscript is not one of x."""
        self._subscript = None
        super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        known = self.by_name[node.id]
        if not known or not isinstance(node.ctx, ast.Load):  # from before, of a loop, a `with` or an import
            known.append(_Variable(node.id))
        if isinstance(node.ctx, ast.Load):
            known[-1].uses.append((list(self._tests), self._subscript))
            self._used[node] = known[-1]


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 3]}..."
