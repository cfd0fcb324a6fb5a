"""Statements that matter to a rule, by what they look like in the tree of a file."""

import ast
from collections.abc import Set


def frozen_value(node: ast.AST) -> ast.expr | None:
    """What `node` gives to `requires_grad`, None if it does not or if that is `True`.

    `p.requires_grad = False`, `module.requires_grad_(False)`, `p.requires_grad = "head" in name`.
    """
    value = None
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=given):
            value = given
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=args, keywords=keywords):
            value = next(iter([*args, *(keyword.value for keyword in keywords)]), None)
    return None if isinstance(value, ast.Constant) and value.value is True else value


def is_named_in(names: Set[str], node: ast.AST) -> bool:
    """Whether one of `names` is read in `node`."""
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def bound_names(node: ast.AST) -> frozenset[str]:
    """The names that are assigned anywhere in `node`, by loops and comprehensions too."""
    return frozenset(
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )
