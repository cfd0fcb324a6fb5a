"""What the loops around the step that ends have left to go through, as far as their variables and loaders tell."""

import ast
import dis
import operator
import sys
from itertools import dropwhile
from types import CodeType, FrameType
from typing import Any

from torch.utils.data import DataLoader

from peaksight.virtual_gpu.source_lines import installed_name, is_own
from peaksight.virtual_gpu.training.data_loading import batches_left
from peaksight.virtual_gpu.training.trials import body_of, tree_of
from peaksight.virtual_gpu.unreached.trainer_rounds import rounds_of_trainer
from peaksight.virtual_gpu.unreached.training_frames import calling_frames
from peaksight.virtual_gpu.unreached.values import UNKNOWN, Scope, scope_of_frame

_REPEATS = {code for name, code in dis.opmap.items() if name == "FOR_ITER" or "JUMP_BACKWARD" in name}
_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_BARS = {"tqdm", "trange"}
_AROUND = {"tqdm", "enumerate"}
_Loop = ast.For | ast.AsyncFor | ast.While


def is_last_round() -> bool:
    """Whether every loop around the running step is at its last element, as far as its variables tell.

    Nothing of the script is run to find out but the length of a DataLoader. A `while` and an iterable whose length or
    place is not known count as having more.
    """
    try:
        frames = dropwhile(lambda frame: not is_own(frame.f_code.co_filename), calling_frames(sys._getframe(1)))
        return all(_has_nothing_left(frame) for frame in reversed(list(frames)))
    except Exception:
        return False


def rounds_left() -> int | None:
    """How many rounds the innermost loop around the running step has left, None if that is not known.

    It is the person's, or that of a trainer up to its evaluation.
    """
    try:
        for frame in reversed(calling_frames(sys._getframe(1))):
            if (left := rounds_of_trainer(frame)) is not None:
                return left
            loops = _loops_around(_body(frame.f_code), frame.f_lineno) if is_own(frame.f_code.co_filename) else []
            if loops:
                return _left(loops[-1], scope_of_frame(frame, ast.Module(_body(frame.f_code), [])))
    except Exception:
        return None
    return None


def _has_nothing_left(frame: FrameType) -> bool:
    if _REPEATS.isdisjoint(frame.f_code.co_code[::2]) or _is_of_torch(frame.f_code):
        return True
    body = _body(frame.f_code)
    if not body:
        return False
    loops = _loops_around(body, frame.f_lineno)
    scope = scope_of_frame(frame, ast.Module(body, []))
    return all(_left(loop, scope) == 0 for loop in loops)


def _is_of_torch(code: CodeType) -> bool:
    """Its loops go through hooks, not through batches."""
    return (installed_name(code.co_filename) or "").startswith("torch/")


def _body(code: CodeType) -> list[ast.stmt]:
    """The statements of `code`; none without a source, or of a comprehension."""
    tree = tree_of(code.co_filename)
    if tree is None:
        return []
    return tree.body if code.co_name == "<module>" else body_of(tree, code)


def _loops_around(body: list[ast.stmt], line: int) -> list[_Loop]:
    """From the outermost in."""
    nodes = (node for statement in body for node in ast.walk(statement))
    loops = [node for node in nodes if isinstance(node, _Loop) and _covers(node.body, line)]
    return sorted(loops, key=lambda loop: loop.lineno)


def _covers(block: list[ast.stmt], line: int) -> bool:
    return block[0].lineno <= line <= (block[-1].end_lineno or block[-1].lineno)


def _left(loop: _Loop, scope: Scope) -> int | None:
    """How many rounds `loop` has left; None if that is not known."""
    loader = _below_bar(scope.value(_inside(loop.iter))) if isinstance(loop, ast.For) else None
    if isinstance(loader, DataLoader) and (left := batches_left(loader)) is not None:
        return left
    match loop:
        case ast.For(target=ast.Name() as variable, iter=iterable):
            numbers = _range(iterable, scope)
            return len(numbers) - 1 - numbers.index(scope.value(variable)) if numbers else None
        case ast.For(
            target=ast.Tuple(elts=[ast.Name() as variable, *_]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[iterable, *start]),
        ):
            first = _number(start[0], scope) if start else 0
            return first + _length(iterable, scope) - 1 - scope.value(variable)
    return None


def _inside(node: ast.expr) -> ast.expr:
    """What `enumerate` or a progress bar goes through, `node` itself where it is neither."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _AROUND:
            return _inside(inner)
    return node


def _range(node: ast.expr, scope: Scope) -> range:
    """What `node` counts, also below a progress bar; nothing where that is not known."""
    match node:
        case ast.Call(func=ast.Name(id="range" | "trange"), args=numbers):
            return range(*(_number(number, scope) for number in numbers))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _BARS:
            return _range(inner, scope)
    counted = _below_bar(scope.value(node))
    return counted if type(counted) is range else range(0)


def _length(node: ast.expr, scope: Scope) -> int:
    """How many elements `node` has.

    Raises:
        ValueError: that is not known.
    """
    match node:
        case ast.Call(func=ast.Name(id="range" | "trange")):
            return len(_range(node, scope))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _BARS:
            return _length(inner, scope)
    elements = _below_bar(scope.value(node))
    if isinstance(elements, DataLoader) or type(elements) in (list, tuple, dict, range):
        return len(elements)
    raise ValueError


def _below_bar(value: Any) -> Any:
    """What a tqdm bar goes through, anything else itself."""
    return vars(value).get("iterable", UNKNOWN) if type(value).__name__ in ("tqdm", "tqdm_asyncio") else value


def _number(node: ast.expr, scope: Scope) -> int:
    """What `node` computes.

    Raises:
        ValueError: that is no integer, or not known.
    """
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return int(_OPERATORS[type(op)](_number(left, scope), _number(right, scope)))
        case ast.Call(func=ast.Name(id="len"), args=[elements]):
            return _length(elements, scope)
    value = scope.value(node)
    if type(value) is not int:
        raise ValueError
    return value
