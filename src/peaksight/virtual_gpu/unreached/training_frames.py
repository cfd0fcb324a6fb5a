"""Which code a running training loop still has before it, from the frames of a step."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from peaksight.virtual_gpu.frames import visible
from peaksight.virtual_gpu.unreached.conditions import Conditions, assigned
from peaksight.virtual_gpu.unreached.probed_files import ProbedFile, ProbedFiles, Tree
from peaksight.virtual_gpu.unreached.probes import Probe, blocks_of
from peaksight.virtual_gpu.unreached.values import Scope, scope_of_frame

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Path = list[tuple[list[ast.stmt], int]]


@dataclass(frozen=True)
class Region:
    """Statements that follow each other and run in or after the training loop, with their probes."""

    file: ProbedFile
    block: list[ast.stmt]
    conditions: Conditions


def calling_frames(frame: FrameType | None) -> list[FrameType]:
    """The frames of the script and its libraries that led to `frame`, outermost first."""
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    return [frames[place] for place in visible([each.f_code for each in frames])]


def regions_of(frames: list[FrameType], files: ProbedFiles) -> Iterator[Region]:
    """The regions of `frames`: a loop and what follows it, and all of a function that is called in a loop.

    A library that calls the person's functions does so in its loop.
    """
    in_loop = False
    for frame in frames:
        tree = files.tree_of(frame.f_code)
        if tree is None:
            in_loop |= not files.is_own(frame.f_code)
            continue
        path = list(_path(tree.body, frame.f_lineno))
        yield from _regions(frame, tree, files, [tree.body] if in_loop else _from_the_loop_on(path))
        in_loop |= any(isinstance(block[place], _LOOPS) for block, place in path)


def _path(block: list[ast.stmt], line: int) -> Iterator[tuple[list[ast.stmt], int]]:
    """Each block around `line` with the place of the statement in it that runs, outermost first."""
    for place, statement in enumerate(block):
        if not isinstance(statement, Probe) and statement.lineno <= line <= (statement.end_lineno or line):
            yield block, place
            for inner in [*blocks_of(statement), *(handler.body for handler in getattr(statement, "handlers", ()))]:
                yield from _path(inner, line)


def _from_the_loop_on(path: _Path) -> list[list[ast.stmt]]:
    """The outermost loop of `path`, if there is one, and what follows in the blocks around it."""
    blocks: list[list[ast.stmt]] = []
    for block, place in path:
        is_loop = isinstance(block[place], _LOOPS)
        blocks.insert(0, block[place if is_loop else place + 1 :])
        if is_loop:
            break
    return blocks


def _regions(frame: FrameType, tree: Tree, files: ProbedFiles, blocks: list[list[ast.stmt]]) -> Iterator[Region]:
    file = files.file_of(frame.f_code)
    if file is None:
        return
    scope = scope_of_frame(frame, tree)
    names, attributes = assigned(statement for block in blocks for statement in block)
    conditions = Conditions(scope, names | _numbers_given(frame, scope), attributes | file.changing_attributes)
    for block in blocks:
        yield Region(file, block, conditions)


def _numbers_given(frame: FrameType, scope: Scope) -> set[str]:
    """The parameters that are numbers: a step or an epoch, which is another one in the next call."""
    parameters = inspect.getargs(frame.f_code).args
    return {name for name in parameters if type(scope.names.get(name)) in (int, float)}
