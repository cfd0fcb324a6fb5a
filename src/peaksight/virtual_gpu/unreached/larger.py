"""Goes on to the largest batch that is still to come, where batches differ and their steps show nothing new."""

import ast
import math
import sys
from collections.abc import Callable
from types import CodeType

from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.training.data_loading import reading_of_step
from peaksight.virtual_gpu.training.readings import Reading
from peaksight.virtual_gpu.unreached.last_round import Innermost, innermost_loop, left_of
from peaksight.virtual_gpu.unreached.own_iterators import loaders_in, makes_loader
from peaksight.virtual_gpu.unreached.places import Place, indexed_place, place_of
from peaksight.virtual_gpu.unreached.values import Scope

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_Key = tuple[CodeType, int]


class LargerBatches:
    """Says whether steps that are to come are worth running for the size of their batches.

    A loop that comes to the largest soon is followed there. Else the batches before it are left out: those of a
    DataLoader are read, as in a real run, but not trained on. Where a `break` or a `return` may leave the loop before,
    nobody knows which batches come, and none is left out. `note(slug, place)` is told both.
    """

    def __init__(self, lines: SourceLines, note: Callable[[str, str], None]) -> None:
        """No step has ended; `lines` names the person's lines."""
        self._lines, self._note = lines, note
        self._places: dict[_Key, Place | None] = {}
        self._read: set[_Key] = set()

    def come(self, covers: Callable[[int], bool]) -> bool:
        """Whether the run goes on; `covers` says through how many rounds a loop is followed.

        Whatever the objects of the script answer, it ends or goes on: nothing is known then.
        """
        try:
            innermost = innermost_loop(sys._getframe(1))
            return innermost is not None and self._come(innermost, covers)
        except Exception:
            return False

    def _come(self, innermost: Innermost, covers: Callable[[int], bool]) -> bool:
        place = self._place_in(innermost)
        if place is not None:
            return self._come_in_list(place, innermost, covers)
        reading = reading_of_step()
        return reading is not None and self._come_from_loader(reading, innermost, covers)

    def _place_in(self, innermost: Innermost) -> Place | None:
        """Found once for each loop that no variable counts: that takes a look at every object there is."""
        loop, scope, key = innermost.loop, innermost.scope, _key(innermost)
        if not isinstance(loop, ast.For):
            return None
        if (counted := indexed_place(loop, scope)) is not None:
            return counted
        if key not in self._places:
            self._places[key] = None if _goes_through_loader(loop, scope) else place_of(loop, scope)
        return self._places[key]

    def _come_in_list(self, place: Place, innermost: Innermost, covers: Callable[[int], bool]) -> bool:
        num_rounds = place.rounds_to_larger()
        if not num_rounds:
            self._places[_key(innermost)] = None
        elif not covers(num_rounds):
            if _may_be_left(innermost) or not place.skip(num_rounds - 1):
                self._note("later-batches", self._at(innermost))
                return False
            self._note("skipped-batches", f"{num_rounds - 1} at {self._at(innermost)}")
        return num_rounds > 0

    def _come_from_loader(self, reading: Reading, innermost: Innermost, covers: Callable[[int], bool]) -> bool:
        if reading.has_kept:
            return True
        left = _batches_to_come(innermost)
        if left == 0 or not reading.varies:
            return False
        if left is not None and left < math.inf and covers(int(left)):
            return True
        if _key(innermost) in self._read:
            return False
        self._read.add(_key(innermost))
        if left is None or _may_be_left(innermost):
            self._note("later-batches", self._at(innermost))
            return False
        num_read = reading.skip_to_largest(left)
        if num_read < left and not reading.is_read:
            self._note("later-batches", self._at(innermost))
        if reading.num_kept:
            self._note("skipped-batches", f"{num_read - reading.num_kept} at {self._at(innermost)}")
        return reading.num_kept > 0

    def _at(self, innermost: Innermost) -> str:
        frame, loop = innermost.frame, innermost.loop
        return f"{self._lines.name_of(frame.f_code.co_filename)}:{loop.lineno if loop else frame.f_lineno}"


def _key(innermost: Innermost) -> _Key:
    return innermost.frame.f_code, innermost.loop.lineno if innermost.loop is not None else 0


def _batches_to_come(innermost: Innermost) -> float | None:
    """At most; without an end if a loop goes through a loader that does not know its length, None if nobody knows."""
    left, loop = left_of(innermost), innermost.loop
    if left is None and isinstance(loop, ast.For) and _goes_through_loader(loop, innermost.scope):
        return math.inf
    return left


def _goes_through_loader(loop: ast.For, scope: Scope) -> bool:
    return makes_loader(loop.iter, scope) or next(loaders_in(loop.iter, scope), None) is not None


def _may_be_left(innermost: Innermost) -> bool:
    """Whether something in the loop leaves it before its end; a trainer's has none."""
    loop = innermost.loop
    return loop is not None and any(map(_leaves, loop.body))


def _leaves(node: ast.AST, *, in_loop: bool = False) -> bool:
    """Whether there is a `return` in `node`, or a `break` out of the loop around it."""
    if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and not in_loop):
        return True
    if isinstance(node, _DEFINITIONS):
        return False
    in_loop |= isinstance(node, _LOOPS)
    return any(_leaves(child, in_loop=in_loop) for child in ast.iter_child_nodes(node))
