"""Graphs that are alive although they are done with: when each of their blocks was due to die, and whose they are."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from peaksight.diagnosis.evidence import Evidence, total_bytes
from peaksight.records import Allocation, Category, Hold, Phase, Role

_OF_A_FORWARD = {Phase.FORWARD, Phase.EVALUATION}
# The passes whose graphs can be alive: also one that records its own.
_OF_GRAPHS = _OF_A_FORWARD | {Phase.BACKWARD}
# A look keeps the names of the largest blocks only.
NAMED_SHARE = 0.2
# A call that left less than this part of what the others did left no graph.
ROUND_SHARE = 0.1


class Overdue:
    """The blocks of graphs in one capture that outlive the pass, the next call or the step that they were for.

    What a backward pass used is due at the end of its step. What a module made in its forward is due at the next call
    of the same model already, as in the next part of a batch, unless the pass that used it records a graph of its own,
    as in the inner loop of meta-learning: another pass is to go through it. All of a graph that a pass kept is due
    there, too. What no backward pass of the run ever used is due at the next call of it after its own, but for what no
    graph saved and later steps go on with, as statistics. A record of a real run tells of steps only.
    """

    def __init__(self, evidence: Evidence) -> None:
        """Index the passes of `evidence`."""
        self._evidence = evidence
        capture = evidence.capture
        self._step_ends = {peaks.step: peaks.last_tick for peaks in capture.steps if peaks.complete}
        self._calls: dict[str, list[int]] = defaultdict(list)
        for call in capture.passes:
            if call.recorded:
                self._calls[call.module].append(call.first_tick)
                self._calls[""].append(call.first_tick)
        # One that records its own graph is to be gone through again.
        self._retaining = {f.number: f.tick for f in capture.backwards if f.retains_graph and not f.creates_graph}
        self._creating = {f.number for f in capture.backwards if f.creates_graph}
        self.ticks = {a: due for a in capture.allocations if (due := self._due(a)) is not None and _outlives(a, due)}

    @property
    def at_peak(self) -> tuple[Allocation, ...]:
        """Those that are alive at the peak, in order of birth."""
        peak = self._evidence.capture.peak_tick
        return tuple(a for a in self._evidence.live if self.ticks.get(a, peak) < peak)

    def rounds(self, allocations: Iterable[Allocation]) -> set[tuple[int, int]]:
        """The calls of models that a notable part of `allocations` are of, each as its step and its number."""
        sizes: Counter[tuple[int, int]] = Counter()
        for allocation in allocations:
            sizes[allocation.step, bisect_right(self._calls[""], allocation.born)] += allocation.allocated_bytes
        return {place for place, size in sizes.items() if size >= ROUND_SHARE * sizes.total() / len(sizes)}

    def retained(self, allocations: Iterable[Allocation]) -> tuple[Allocation, ...]:
        """Those of `allocations` that `retain_graph=True` kept for another call in their own step."""
        return tuple(a for a in allocations if a.backward in self._retaining and self._is_due_in_its_step(a))

    def has_name(self, allocations: Iterable[Allocation]) -> bool:
        """Whether a variable still led to a notable part of those of `allocations` that a look saw overdue.

        True where no look came in time.
        """
        looks = sorted({hold.tick for hold in self._evidence.capture.holds})
        seen = [a for a in allocations if _has_one_in(looks, self.ticks[a], a.died)]
        return total_bytes(filter(self._holds_of, seen)) >= NAMED_SHARE * total_bytes(seen)

    def of_graphs(self, allocations: Iterable[Allocation]) -> tuple[Allocation, ...]:
        """Those of `allocations` that no variable leads to but by a graph: what is kept itself may be detached.

        What was made at the same place as one with a name is taken to have one.
        """
        overdue = tuple(allocations)
        named = {_place(a) for a in overdue if any(not hold.by_graph for hold in self._holds_of(a))}
        return tuple(a for a in overdue if _place(a) not in named)

    def _holds_of(self, allocation: Allocation) -> tuple[Hold, ...]:
        """Who held `allocation` at looks after it was due."""
        holds = self._evidence.holds.get(allocation.born, ())
        return tuple(hold for hold in holds if hold.tick > self.ticks[allocation])

    def _is_due_in_its_step(self, allocation: Allocation) -> bool:
        end = self._step_ends.get(allocation.step)
        return end is None or self.ticks[allocation] <= end

    def _due(self, allocation: Allocation) -> int | None:
        """The tick at which `allocation` should have died; None where nothing tells."""
        if allocation.phase not in _OF_GRAPHS or allocation.role is not Role.UNMARKED:
            return None
        if not allocation.saved_by and not allocation.grad_enabled:
            return None
        if self._is_gone_on_with(allocation):
            return None
        is_seen = self._evidence.capture.observed and bool(self._calls) and allocation.phase in _OF_A_FORWARD
        if is_seen and not allocation.backward:
            return self._next_call(allocation, allocation.born)
        if self._evidence.category(allocation) is not Category.ACTIVATION:
            return None
        if allocation.backward in self._retaining:
            return self._next_call(allocation, self._retaining[allocation.backward])
        ends = [self._step_ends.get(allocation.step), self._next_part(allocation)]
        return min((end for end in ends if end is not None), default=None)

    def _is_gone_on_with(self, allocation: Allocation) -> bool:
        """Whether it is of no graph, and alive for steps: statistics that an optimizer keeps."""
        is_of_graph = allocation.saved_by or allocation.backward
        return not is_of_graph and self._evidence.step_ends_outlived(allocation) > 1

    def _next_part(self, allocation: Allocation) -> int | None:
        """Right before the model of `allocation` is called again after the pass that used it, and no other needs."""
        pass_end = self._evidence.pass_ends.get(allocation.backward)
        if (
            allocation.backward in self._creating
            or not allocation.module
            or pass_end is None
            or allocation.phase not in _OF_A_FORWARD
        ):
            return None
        return self._next_call(allocation, pass_end)

    def _next_call(self, allocation: Allocation, tick: int) -> int | None:
        """Right before the first call of the model of `allocation` after `tick`, None if there is none."""
        path = allocation.module
        while path and path not in self._calls:
            path = path.rpartition(".")[0]
        calls = self._calls.get(path, [])
        following = bisect_right(calls, tick)
        return calls[following] - 1 if following < len(calls) else None


def _outlives(allocation: Allocation, due: int) -> bool:
    return allocation.born <= due and (allocation.died is None or allocation.died > due)


def _place(allocation: Allocation) -> tuple[str, str, str]:
    return allocation.source, allocation.module, allocation.op


def _has_one_in(ticks: Sequence[int], first: int, last: int | None) -> bool:
    """Whether one of the sorted `ticks` is after `first`, and before `last` where that is one."""
    following = bisect_right(ticks, first)
    return following < len(ticks) and (last is None or ticks[following] < last)
