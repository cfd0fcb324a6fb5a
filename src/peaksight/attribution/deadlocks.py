"""Whether the ranks of a job agree on their collectives: where they do not, they hang, or get other data than meant."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest

from peaksight.records import Capture, CollectiveFact

# Ranks need not give as much to these as others do.
_OF_ANY_SIZE = ("all_to_all", "gather", "scatter")
# What only two ranks take part in, of whom the other may not be simulated.
_BETWEEN_TWO = ("send", "recv")
# The end of a loop in which ranks may have more or less to do: `Join`.
_JOIN = "join"
# Pickled objects, whose size is that of the rank's own here.
_OBJECTS = "uint8["
# Without an answer as well: a script that never stepped an optimizer.
_RAN_TO_THEIR_END = {"script", "untrained"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Rank `a` calls one thing where rank `b` calls another; None is called by a rank that is at its end."""

    a: int
    a_calls: CollectiveFact | None
    b: int
    b_calls: CollectiveFact | None

    def __str__(self) -> str:
        """The two lines that disagree."""
        return f"rank {self.a} {_call(self.a_calls)}, and rank {self.b} {_call(self.b_calls)}"


def disagreement(captures: Sequence[Capture]) -> Disagreement | None:
    """The first two calls that differ, of two of the ranks that `captures` are of."""
    ranks = {capture.rank: capture for capture in reversed(captures)}
    for (a, a_run), (b, b_run) in combinations(sorted(ranks.items()), 2):
        for a_calls, b_calls in _side_by_side(a_run, b_run):
            if not _agree(a_calls, b_calls):
                return Disagreement(a=a, a_calls=a_calls, b=b, b_calls=b_calls)
    return None


def in_deadlock(captures: Sequence[Capture]) -> tuple[Capture, ...]:
    """`captures` of a run that gives no answer, for its ranks disagree."""
    return tuple(replace(capture, finished="deadlock") for capture in captures)


def _side_by_side(a: Capture, b: Capture) -> Iterator[tuple[CollectiveFact | None, CollectiveFact | None]]:
    """The calls of both in groups that have both; where a run was stopped, in the steps that it completed.

    Until a rank joins the others' end, it calls as many as its input is long.
    """
    stopped = [run for run in (a, b) if run.finished not in _RAN_TO_THEIR_END]
    num_steps = min((sum(step.complete for step in run.steps) for run in stopped), default=None)
    of_a, of_b = (_between_joins(calls, num_steps) for calls in (_calls(a, b), _calls(b, a)))
    last = min(len(of_a), len(of_b)) - 1
    for a_calls, b_calls in zip(of_a[:last], of_b[:last], strict=True):
        yield from zip(a_calls, b_calls, strict=False)
    is_whole = len(of_a) == len(of_b)
    yield from zip_longest(of_a[last], of_b[last]) if is_whole else zip(of_a[last], of_b[last], strict=False)


def _between_joins(calls: Iterable[CollectiveFact], num_steps: int | None) -> list[list[CollectiveFact]]:
    """Those of the first steps, or of all, in one list more than there are joins."""
    parts: list[list[CollectiveFact]] = [[]]
    for call in calls:
        if call.kind == _JOIN:
            parts.append([])
        elif num_steps is None or call.step <= num_steps:
            parts[-1].append(call)
    return parts


def _calls(run: Capture, other: Capture) -> Iterator[CollectiveFact]:
    for call in run.collectives:
        if not call.kind.startswith(_BETWEEN_TWO) and {run.rank, other.rank} <= members(call.group):
            yield call


def members(group: str) -> frozenset[int]:
    """The ranks of a group as `CollectiveFact.group` names them."""
    if "-" not in group:
        return frozenset(map(int, group.split(",")))
    ends, _, stride = group.partition(":")
    first, last = map(int, ends.split("-"))
    return frozenset(range(first, last + 1, int(stride or 1)))


def _agree(a: CollectiveFact | None, b: CollectiveFact | None) -> bool:
    if a is None or b is None or (a.kind, a.group) != (b.kind, b.group):
        return False
    is_free = a.kind.startswith(_OF_ANY_SIZE) or (a.tensors.startswith(_OBJECTS) and b.tensors.startswith(_OBJECTS))
    return is_free or a.tensors == b.tensors


def _call(call: CollectiveFact | None) -> str:
    if call is None:
        return "is at its end"
    of = f" of {call.tensors}" if call.tensors else ""
    at = f" at {call.source}" if call.source else ""
    return f"calls {call.kind}{of}{at}"
