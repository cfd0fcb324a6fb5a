"""The statements of a region that were not reached although they use the card."""

import ast
from collections.abc import Iterator
from copy import copy
from types import CodeType
from typing import NamedTuple

from peaksight.records import NotReached
from peaksight.virtual_gpu.unreached.device_work import DeviceWork
from peaksight.virtual_gpu.unreached.probed_files import ProbedFile, ProbedFiles
from peaksight.virtual_gpu.unreached.probes import Probe, blocks_of, own_expressions
from peaksight.virtual_gpu.unreached.training_frames import Region

MAX_TEXT = 80
_EMPTY: dict[str, list[ast.stmt]] = {"body": [ast.Pass()], "orelse": [], "finalbody": [], "handlers": [], "cases": []}


class Missed(NamedTuple):
    """A line, and the probe of its file that says whether it is reached after all."""

    file: ProbedFile
    probe: int
    line: NotReached


class Unreached:
    """Finds what was missed in one region, and in the functions that are called there."""

    def __init__(self, region: Region, work: DeviceWork, files: ProbedFiles, seen: set[CodeType]) -> None:
        """`work` judges what uses the card; the functions in `seen` are not looked into again."""
        self._region = region
        self._work = work
        self._files = files
        self._seen = seen

    def find(self) -> Iterator[Missed]:
        """In the order of the source, but that of a function stands where it is called."""
        yield from self._in_block(self._region.block)

    def _in_block(self, block: list[ast.stmt]) -> Iterator[Missed]:
        probe: Probe | None = None
        for statement in block:
            if isinstance(statement, Probe):
                probe = statement
            elif probe is None or self._region.file.hits[probe.index]:
                yield from self._inside(statement)
            elif (blocks := self._settled_blocks(statement)) is not None:
                for inner in blocks:
                    yield from self._in_block(inner)
            elif self._works(statement):
                yield self._missed(probe, statement, _text(statement))

    def _settled_blocks(self, statement: ast.stmt) -> list[list[ast.stmt]] | None:
        """The blocks that will run once `statement` is reached, None where that is not settled or it has none."""
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
            return list(blocks_of(statement))
        outcome = self._region.conditions.outcome(statement.test) if isinstance(statement, ast.If) else None
        return None if outcome is None else [statement.body if outcome else statement.orelse]  # type: ignore[attr-defined]

    def _inside(self, statement: ast.stmt) -> Iterator[Missed]:
        """What was not reached in a statement that was: a branch is named by its condition, and not looked into."""
        if isinstance(statement, ast.If) and self._region.conditions.is_settled(statement.test):
            yield from self._in_block(statement.body if self._was_reached(statement.body) else statement.orelse)
            return
        yield from self._in_calls(statement)
        for block in blocks_of(statement):
            first = block[0]
            is_elif = block is getattr(statement, "orelse", None) and isinstance(block[-1], ast.If)
            if not isinstance(first, Probe) or self._was_reached(block) or is_elif or isinstance(statement, ast.Try):
                yield from self._in_block(block)
            elif any(map(self._works, block)):
                yield self._missed(first, *self._name_of(statement, block))

    def _was_reached(self, block: list[ast.stmt]) -> bool:
        first = block[0]
        return isinstance(first, Probe) and bool(self._region.file.hits[first.index])

    def _works(self, statement: ast.stmt) -> bool:
        return self._work.is_in(statement, self._region.conditions)

    def _in_calls(self, statement: ast.stmt) -> Iterator[Missed]:
        """In the own functions that a statement calls, but not in its blocks."""
        for node in own_expressions(statement):
            call = self._work.own_call(node, self._region.conditions.scope) if isinstance(node, ast.Call) else None
            file = self._files.file_of(call.code) if call else None
            if call is not None and file is not None and call.code not in self._seen:
                self._seen.add(call.code)
                region = Region(file, call.tree.body, call.conditions)
                yield from Unreached(region, self._work, self._files, self._seen).find()

    def _name_of(self, statement: ast.stmt, block: list[ast.stmt]) -> tuple[ast.stmt | ast.pattern, str]:
        if block is getattr(statement, "body", None):
            return statement, _text(statement)
        if isinstance(statement, ast.Match):
            pattern = next(case.pattern for case in statement.cases if case.body is block)
            return pattern, f"case {ast.unparse(pattern)}"
        return block[0], f"else of {_text(statement)}"

    def _missed(self, probe: Probe, node: ast.stmt | ast.pattern, text: str) -> Missed:
        file = self._region.file
        return Missed(file, probe.index, NotReached(at=f"{file.name}:{node.lineno}", text=text))


def _text(statement: ast.stmt) -> str:
    """The first line of `statement`, without its colon."""
    head = copy(statement)
    for name, value in _EMPTY.items():
        if hasattr(head, name):
            setattr(head, name, value)
    line = ast.unparse(head).splitlines()[0].removesuffix(":")
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 2] + ".."
