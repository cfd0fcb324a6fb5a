"""Branches that select by the mask which their condition asks: `if mask.any(): loss = criterion(x[mask])`.

So does `found = mask.any()` before `if found:`. How many elements an unknown mask selects is counted as many, so that
it is true somewhere. A condition that guards something else, as `if (error > limit).any(): raise`, or that ends a loop,
has its stand-in.
"""

import ast
import sys
from functools import cache
from pathlib import Path
from types import FrameType

import torch

from peaksight.virtual_gpu.frames import is_ours
from peaksight.virtual_gpu.training.trials import tree_of

_TORCH = str(Path(torch.__file__).parent)


def asked_to_select() -> bool:
    """Whether the statement that runs now, the innermost one outside of torch, is such a branch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and _selects(frame.f_code.co_filename, frame.f_lineno)


def _is_between(filename: str) -> bool:
    return filename.startswith((_TORCH, "<")) or is_ours(filename)


@cache
def _selects(filename: str, line: int) -> bool:
    tree = tree_of(filename)
    nodes = list(ast.walk(tree)) if tree else []
    branches = [node for node in nodes if isinstance(node, ast.If)]
    asked = [(node.test, node) for node in branches if _is_at(node.test, line)]
    for stored in (node for node in nodes if isinstance(node, ast.Assign) and _is_at(node, line)):
        names = set().union(*map(_names, stored.targets))
        asked += [(stored.value, node) for node in branches if names & _names(node.test)]
    return any(_names(question) & _selecting(node.body) for question, node in asked)


def _is_at(node: ast.expr | ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _selecting(block: list[ast.stmt]) -> set[str]:
    """The names by which `block` indexes."""
    below = (node for statement in block for node in ast.walk(statement))
    return {name for node in below if isinstance(node, ast.Subscript) for name in _names(node.slice)}


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
