"""How many: the numbers, lengths and ranges that an expression of the person's code stands for."""

import ast
import operator
from collections.abc import Sized
from typing import Any

import torch

from peaksight.virtual_gpu.unreached.values import UNKNOWN, Scope

_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_BARS = {"tqdm", "trange"}


def range_of(node: ast.expr, scope: Scope) -> range:
    """What `node` counts, also below a progress bar; nothing where that is not known."""
    match node:
        case ast.Call(func=ast.Name(id="range" | "trange"), args=numbers):
            return range(*(number_of(number, scope) for number in numbers))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _BARS:
            return range_of(inner, scope)
    counted = below_bar(scope.value(node))
    return counted if type(counted) is range else range(0)


def length_of(node: ast.expr, scope: Scope) -> int:
    """How many elements `node` has.

    Raises:
        ValueError: that is not known.
    """
    match node:
        case ast.Call(func=ast.Name(id="range" | "trange")):
            return len(range_of(node, scope))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _BARS:
            return length_of(inner, scope)
    elements = below_bar(scope.value(node))
    if isinstance(elements, Sized):
        return len(elements)
    raise ValueError


def number_of(node: ast.expr, scope: Scope) -> int:
    """What `node` computes.

    Raises:
        ValueError: that is no integer, or not known.
    """
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return int(_OPERATORS[type(op)](number_of(left, scope), number_of(right, scope)))
        case ast.Call(func=ast.Name(id="len"), args=[elements]):
            return length_of(elements, scope)
        case ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[dim]):
            return _size(scope.value(tensor), number_of(dim, scope))
        case ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=dim):
            return _size(scope.value(array), number_of(dim, scope))
    value = scope.value(node)
    if type(value) is not int:
        raise ValueError
    return value


def _size(array: Any, dim: int) -> int:
    """Of a tensor or an array.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(array, torch.Tensor) or type(array).__module__ == "numpy":
        return int(array.shape[dim])
    raise ValueError


def below_bar(value: Any) -> Any:
    """What a tqdm bar goes through, anything else itself."""
    return vars(value).get("iterable", UNKNOWN) if type(value).__name__ in ("tqdm", "tqdm_asyncio") else value
