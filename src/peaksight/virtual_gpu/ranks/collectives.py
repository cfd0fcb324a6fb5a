"""The collectives that a rank calls, in order: by them is seen whether ranks agree."""

from collections.abc import Sequence
from typing import Any

from peaksight.records import CollectiveFact
from peaksight.virtual_gpu.memory.births import in_words
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

MAX_TENSORS = 4


class Collectives:
    """Keeps `facts`, one a call in a group of several ranks."""

    def __init__(self, loop: TrainingLoop, lines: SourceLines) -> None:
        """Nothing was called yet."""
        self.facts: list[CollectiveFact] = []
        self._loop, self._lines = loop, lines

    def called(self, group: Any, kind: str, tensors: Sequence[Any]) -> None:
        """This rank calls `kind` in `group`, giving `tensors`."""
        if group.size() == 1:
            return
        fact = CollectiveFact(
            kind=kind,
            tensors=_in_words(tensors),
            group=in_ranges(group.ranks),
            source=self._lines.current().source,
            step=self._loop.step,
        )
        self.facts.append(fact)


def _in_words(tensors: Sequence[Any]) -> str:
    more = len(tensors) - MAX_TENSORS
    words = ", ".join(map(in_words, tensors[:MAX_TENSORS]))
    return words if more <= 0 else f"{words} and {more} more"


def in_ranges(ranks: Sequence[int]) -> str:
    """`0-7`, `0-56:8` for every eighth, else one by one."""
    if len(ranks) < 3:
        return ",".join(map(str, ranks))
    stride = ranks[1] - ranks[0]
    if stride < 1 or list(ranks) != list(range(ranks[0], ranks[-1] + 1, stride)):
        return ",".join(map(str, ranks))
    return f"{ranks[0]}-{ranks[-1]}" + (f":{stride}" if stride > 1 else "")
