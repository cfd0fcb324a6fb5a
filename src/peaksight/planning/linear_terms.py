"""A sum taken apart: `(a + 0.5 * b) / 2` is `a / 2` and `0.5 * b / 2`."""

import ast
from collections.abc import Iterator


def terms_of(expression: ast.expr) -> list[ast.expr]:
    """The terms that `expression` is the sum of, in the order in which they are written; itself where it is no sum."""
    return list(_terms(expression))


def _terms(expression: ast.expr) -> Iterator[ast.expr]:
    match expression:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _terms(left)
            yield from _terms(right)
        case ast.BinOp(left=left, op=(ast.Mult() | ast.Div()) as op, right=right) if _is_sum(left):
            yield from (ast.BinOp(left=each, op=op, right=right) for each in _terms(left))
        case ast.BinOp(left=left, op=ast.Mult() as op, right=right) if _is_sum(right):
            yield from (ast.BinOp(left=left, op=op, right=each) for each in _terms(right))
        case _:
            yield expression


def _is_sum(expression: ast.expr) -> bool:
    return len(terms_of(expression)) > 1
