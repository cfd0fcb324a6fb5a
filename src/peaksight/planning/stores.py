"""The statements that keep something under a name: additions, appended values, members of containers."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from peaksight.planning.statements import Scope, Statements

# A member of what a name holds: `[3]`, `['loss']`, `[*]`.
_MEMBER = re.compile(r"\[[^\[\]]*\]$")
_SEVERAL = (ast.Tuple, ast.List, ast.Dict, ast.Set)
_ADDS = {"append", "appendleft", "add"}


@dataclass(frozen=True, slots=True)
class Store:
    """`statement` keeps `value`."""

    statement: ast.stmt
    value: ast.expr


def store_of(statements: Statements, where: str, name: str) -> Store | None:
    """What keeps `name` (`losses[*]`) in the frame `where`: None where that is not one statement with one value."""
    for scope in statements.scopes(where):
        for base in _bases(name):
            found = [store for store in _stores(statements, scope, base) if statements.is_alone(store.statement)]
            if found:
                return found[0] if len(found) == 1 and not isinstance(found[0].value, _SEVERAL) else None
    return None


def _bases(name: str) -> Iterator[str]:
    """`name`, and what it is a member of."""
    while True:
        yield name
        if not _MEMBER.search(name):
            return
        name = _MEMBER.sub("", name)


def _stores(statements: Statements, scope: Scope, base: str) -> Iterator[Store]:
    for statement in statements.simple(scope):
        if statements.scope_of(statement) is scope and (value := _kept(statement, base)) is not None:
            yield Store(statement, value)


def _kept(statement: ast.stmt, base: str) -> ast.expr | None:
    """What `statement` keeps in `base`."""
    match statement:
        case ast.AugAssign(target=target, op=ast.Add(), value=value) if ast.unparse(target) == base:
            return value
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add(), right=right)) if (
            ast.unparse(target) == base
        ):
            others = [each for each in (left, right) if ast.unparse(each) != base]
            return others[0] if len(others) == 1 else None
        case ast.Assign(targets=[ast.Subscript(value=holder)], value=value) if ast.unparse(holder) == base:
            return value
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder, attr=attr), args=[value], keywords=[])) if (
            attr in _ADDS and ast.unparse(holder) == base and not isinstance(value, ast.Starred)
        ):
            return value
    return None
