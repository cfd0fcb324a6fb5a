"""The collectives that a rank calls, in order: by them is seen whether ranks agree."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from peaksight.records import CollectiveFact
from peaksight.virtual_gpu.memory.births import in_words
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.torch_private import FakeTensor, resolve_group
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

MAX_TENSORS = 4
# Those of DTensor, by what the names of the operators begin with. On fake tensors they reach no group.
_NAMESPACES = ("_c10d_functional", "_dtensor")
_FUNCTIONAL = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "shard_dim_alltoall": "all_to_all",
    "broadcast": "broadcast",
}
_FROM_ONE = ("broadcast", "scatter")


def reduced_by(kind: str, operator: str) -> str:
    """`all_reduce by max`: ranks have to agree on the operator, which goes without saying where it is a sum."""
    return kind if operator.lower() == "sum" else f"{kind} by {operator.lower()}"


def rooted(kind: str, root: int) -> str:
    """`broadcast from rank 0`, `gather to rank 0`: ranks have to agree on the one that is apart."""
    return f"{kind} {'from' if kind.startswith(_FROM_ONE) else 'to'} rank {root}"


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


def note_functional(func: Any, args: tuple[Any, ...]) -> None:
    """The operator `func` was called: where it is a functional collective on the card, its group hears of it."""
    kind = functional_kind(func)
    if kind is None:
        return
    from peaksight.virtual_gpu.ranks import process_group

    tensors = args[0] if isinstance(args[0], (list, tuple)) else args[:1]
    group = args[-1] if not isinstance(args[-1], str) else resolve_group(args[-1])
    if all(isinstance(tensor, FakeTensor) for tensor in tensors):
        process_group.called(group, _in_full(kind, group, args[1]), tensors)


def _in_full(kind: str, group: Any, second: Any) -> str:
    """With the second argument of the operators that reduce or broadcast."""
    if "reduce" in kind:
        return reduced_by(kind, second)
    return rooted(kind, group.in_world(second)) if kind == "broadcast" else kind


@cache
def functional_kind(func: Any) -> str | None:
    """The kind of collective that an operator is, None for any other."""
    if getattr(func, "namespace", "") not in _NAMESPACES:
        return None
    name = func.name().partition("::")[2]
    return next((kind for start, kind in _FUNCTIONAL.items() if name.startswith(start)), None)


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
