"""What the loops around the step that ends have left to go through, as far as their variables and loaders tell."""

import ast
import dis
import sys
from dataclasses import dataclass
from itertools import dropwhile
from types import CodeType, FrameType

from torch.utils.data import DataLoader

from peaksight.virtual_gpu.source_lines import installed_name, is_own
from peaksight.virtual_gpu.training.data_loading import batches_left, batches_left_of_last
from peaksight.virtual_gpu.training.trials import body_of, tree_of
from peaksight.virtual_gpu.unreached.lengths import below_bar, length_of, number_of, range_of
from peaksight.virtual_gpu.unreached.own_iterators import loaders_in, makes_loader, suspended_generator
from peaksight.virtual_gpu.unreached.trainer_rounds import rounds_of_trainer
from peaksight.virtual_gpu.unreached.training_frames import calling_frames
from peaksight.virtual_gpu.unreached.values import Scope, scope_of_frame

_REPEATS = {code for name, code in dis.opmap.items() if name == "FOR_ITER" or "JUMP_BACKWARD" in name}
_AROUND = {"tqdm", "enumerate"}
_Loop = ast.For | ast.AsyncFor | ast.While


def is_last_round() -> bool:
    """Whether every loop around the running step is at its last element, as far as its variables tell.

    Nothing of the script is run to find out but lengths. A `while` and an iterable whose length or place is not known
    count as having more.
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
        innermost = innermost_loop(sys._getframe(1))
        return left_of(innermost) if innermost is not None else None
    except Exception:
        return None


@dataclass(frozen=True)
class Innermost:
    """A loop of `frame` as it runs, or where `loop` is None that of a trainer, which has `rounds` left."""

    frame: FrameType
    loop: _Loop | None
    scope: Scope
    rounds: int | None = None


def innermost_loop(frame: FrameType) -> Innermost | None:
    """The person's loop, or that of a trainer, which is nearest to what `frame` runs."""
    for caller in reversed(calling_frames(frame)):
        if (rounds := rounds_of_trainer(caller)) is not None:
            return Innermost(caller, None, Scope({}), rounds)
        body = _body(caller.f_code) if is_own(caller.f_code.co_filename) else []
        if loops := _loops_around(body, caller.f_lineno):
            return Innermost(caller, loops[-1], scope_of_frame(caller, ast.Module(body, [])))
    return None


def left_of(innermost: Innermost) -> int | None:
    """How many rounds it has left, None if that is not known."""
    return innermost.rounds if innermost.loop is None else _left(innermost.loop, innermost.scope)


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
    if not isinstance(loop, ast.For):
        return None
    iterable = _inside(loop.iter)
    loader = below_bar(scope.value(iterable))
    if isinstance(loader, DataLoader) and (left := batches_left(loader)) is not None:
        return left
    try:
        return _counted(loop, scope)
    except ValueError:
        return None if _is_range(iterable) else _of_own(iterable, scope)


def _counted(loop: ast.For, scope: Scope) -> int:
    """How many rounds `loop` has left, as its variable tells.

    Raises:
        ValueError: it does not.
    """
    match loop:
        case ast.For(target=ast.Name() as variable, iter=iterable):
            numbers = range_of(iterable, scope)
            return len(numbers) - 1 - numbers.index(scope.value(variable))
        case ast.For(
            target=ast.Tuple(elts=[ast.Name() as variable, *_]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[iterable, *start]),
        ):
            first = number_of(start[0], scope) if start else 0
            return first + length_of(iterable, scope) - 1 - scope.value(variable)
    raise ValueError


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _of_own(iterable: ast.expr, scope: Scope) -> int | None:
    """How many rounds a loop through something of the person's has left.

    The loaders that it reads, the shortest one, or the loop around the `yield` of its generator tell.
    """
    if makes_loader(iterable, scope):
        return batches_left_of_last()
    lefts = [left for loader in loaders_in(iterable, scope) if (left := batches_left(loader)) is not None]
    frame = None if lefts else suspended_generator(iterable, scope)
    if frame is None:
        return min(lefts, default=None)
    body = _body(frame.f_code)
    loops = _loops_around(body, frame.f_lineno)
    return _left(loops[0], scope_of_frame(frame, ast.Module(body, []))) if len(loops) == 1 else None


def _inside(node: ast.expr) -> ast.expr:
    """What `enumerate` or a progress bar goes through, `node` itself where it is neither."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _AROUND:
            return _inside(inner)
    return node
