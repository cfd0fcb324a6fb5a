"""The global names that a piece of code defines and uses."""

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# What a module has without an import, and what IPython puts beside it.
_GIVEN = frozenset(vars(builtins)) | {"__name__", "__file__", "__doc__", "get_ipython", "display", "In", "Out"}


@dataclass(slots=True, kw_only=True)
class Names:
    """Global names of a piece of code.

    `used_at_once` are those that it reads before it defines them, `used` those and what its functions read when they
    are called. `imported` are modules and names of modules. `has_star` says that it imports names which are not known.
    """

    defined: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    used_at_once: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    has_star: bool = False

    @classmethod
    def of(cls, text: str) -> "Names":
        """Those of `text`; none where it is no Python."""
        names = cls()
        try:
            names._walk(ast.parse(text).body)
        except SyntaxError:
            return cls()
        names.used_at_once -= _GIVEN
        names.used = (names.used - names.defined - _GIVEN) | names.used_at_once
        return names

    @property
    def made(self) -> set[str]:
        """Those defined that other code may change: no modules, and no names of modules."""
        return self.defined - self.imported

    def _walk(self, statements: Iterable[ast.stmt]) -> None:
        """In the order in which they run; what one branch defines counts as defined."""
        for statement in statements:
            for part in _parts(statement):
                if isinstance(part, list):
                    self._walk(part)
                else:
                    self._read(part)

    def _read(self, part: ast.stmt) -> None:
        table = symtable.symtable(ast.unparse(ast.fix_missing_locations(part)), "cell", "exec")
        here = table.get_symbols()
        inner = {name for each in _below(table) for name in _globals(each)}
        at_once = _grown(part) | {each.get_name() for each in here if each.is_referenced()}
        self.used_at_once |= at_once - self.defined
        self.used |= inner
        self.defined |= {each.get_name() for each in here if each.is_assigned() or each.is_imported()}
        self.imported |= {each.get_name() for each in here if each.is_imported()}
        self.has_star |= isinstance(part, ast.ImportFrom) and any(each.name == "*" for each in part.names)


def _parts(statement: ast.stmt) -> Iterator[ast.stmt | list[ast.stmt]]:
    """What runs one after the other in `statement`: its head, and the statements of its bodies."""
    match statement:
        case ast.For() | ast.AsyncFor():
            yield _assigned(statement.target, statement.iter)
            yield from (statement.body, statement.orelse)
        case ast.While() | ast.If():
            yield ast.Expr(statement.test)
            yield from (statement.body, statement.orelse)
        case ast.With() | ast.AsyncWith():
            for item in statement.items:
                has_name = item.optional_vars is not None
                yield _assigned(item.optional_vars, item.context_expr) if has_name else ast.Expr(item.context_expr)
            yield statement.body
        case ast.Try():
            yield statement.body
            for handler in statement.handlers:
                if handler.type:
                    yield ast.Expr(handler.type)
                if handler.name:
                    yield _assigned(ast.Name(handler.name, ast.Store()), ast.Constant(None))
                yield handler.body
            yield from (statement.orelse, statement.finalbody)
        case _:
            yield statement


def _assigned(target: ast.expr | None, value: ast.expr) -> ast.stmt:
    assert target is not None
    return ast.Assign(targets=[target], value=value)


def _grown(part: ast.stmt) -> set[str]:
    """What `x += 1` reads, which the table of symbols has as assigned only."""
    grown = isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
    return {part.target.id} if grown else set()  # type: ignore[attr-defined]


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _below(child)


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that the body of a function or class takes from its module."""
    yield from (each.get_name() for each in table.get_symbols() if each.is_global() and each.is_referenced())
