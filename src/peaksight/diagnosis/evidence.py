"""What a rule looks at: one capture, who is alive at its peak and why, and what would be without them."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from peaksight.attribution.categories import Categories
from peaksight.attribution.live_set import alive_at
from peaksight.diagnosis.lifetimes import Lifetimes
from peaksight.diagnosis.reserved import Reserved
from peaksight.records import Allocation, Capture, Category, Hold, Phase, Role
from peaksight.units import format_bytes

NUM_LINES = 3


class Evidence:
    """One capture of a run that shows the peak, indexed for rules. All bytes are sizes of blocks."""

    def __init__(self, capture: Capture) -> None:
        """`capture` is that of the unlimited run, where there is one."""
        self.capture = capture
        self._categories = Categories(capture)

    @property
    def peak_bytes(self) -> int:
        """What is allocated at the peak."""
        return self.capture.peak_allocated_bytes

    @cached_property
    def live(self) -> tuple[Allocation, ...]:
        """What is alive at the peak, in order of birth."""
        return tuple(alive_at(self.capture, self.capture.peak_tick))

    def live_of(self, allocations: Iterable[Allocation]) -> list[Allocation]:
        """Which of `allocations` are alive at the peak, in order of birth."""
        births = {allocation.born for allocation in allocations}
        return [allocation for allocation in self.live if allocation.born in births]

    @cached_property
    def peak_maker(self) -> Allocation | None:
        """The allocation that made the peak, None of an empty run."""
        return next((a for a in self.live if a.born == self.capture.peak_tick), None)

    @property
    def peak_step(self) -> int:
        """The step of the peak."""
        return self.peak_maker.step if self.peak_maker else 0

    @property
    def peak_phase(self) -> Phase:
        """The phase of the peak."""
        return self.peak_maker.phase if self.peak_maker else Phase.OTHER

    def category(self, allocation: Allocation) -> Category:
        """What `allocation` is for."""
        return self._categories.of(allocation)

    @cached_property
    def by_birth(self) -> Mapping[int, Allocation]:
        """Every allocation of the run by the tick of its birth."""
        return {allocation.born: allocation for allocation in self.capture.allocations}

    @cached_property
    def backward_began(self) -> list[int]:
        """The ticks at which the backward passes of the run began, in their order."""
        return sorted(tick for step in self.capture.steps for tick in step.backward_began)

    @cached_property
    def pass_ends(self) -> Mapping[int, int]:
        """The tick at which each backward pass is over, by its number: where the next block is born outside of it."""
        others = [a.born for a in self.capture.allocations if a.phase is not Phase.BACKWARD]
        last = self.capture.steps[-1].last_tick if self.capture.steps else 0
        following = {fact.number: bisect_right(others, fact.tick) for fact in self.capture.backwards}
        return {number: others[place] - 1 if place < len(others) else last for number, place in following.items()}

    def step_ends_outlived(self, allocation: Allocation) -> int:
        """At the ends of how many steps `allocation` is alive: an output at one, what later steps use at more."""
        last = len(self._step_ends) if allocation.died is None else bisect_left(self._step_ends, allocation.died)
        return last - bisect_left(self._step_ends, allocation.born)

    @cached_property
    def _step_ends(self) -> list[int]:
        return sorted(peaks.last_tick for peaks in self.capture.steps if peaks.complete)

    def alive(self, tick: int) -> tuple[Allocation, ...]:
        """What is alive after `tick`."""
        return tuple(alive_at(self.capture, tick))

    def born_between(self, first: int, end: int) -> tuple[Allocation, ...]:
        """What was born at `first` or later, and before `end`."""
        return self.capture.allocations[bisect_left(self.births, first) : bisect_left(self.births, end)]

    @cached_property
    def births(self) -> list[int]:
        """The ticks at which something was born, in order."""
        return [allocation.born for allocation in self.capture.allocations]

    # What would be.

    @cached_property
    def lifetimes(self) -> Lifetimes:
        """The course of the run."""
        return Lifetimes(self.capture)

    @cached_property
    def reserved(self) -> Reserved:
        """What is reserved beside the tensors."""
        return Reserved(self.capture)

    def saved_without(self, allocations: Iterable[Allocation]) -> int:
        """By how many bytes the peak of the run falls if `allocations` were never made."""
        return self.lifetimes.peak_bytes - self.lifetimes.without(allocations)

    def saved_by_freeing(self, frees: Mapping[Allocation, int]) -> int:
        """By how many bytes the peak falls if each of `frees` were given back at its tick there."""
        return self.lifetimes.peak_bytes - self.lifetimes.with_earlier_frees(frees)

    # Who holds.

    @cached_property
    def holds(self) -> Mapping[int, tuple[Hold, ...]]:
        """The names by which the block born at a tick was reached, in order of the looks."""
        by_birth: dict[int, list[Hold]] = defaultdict(list)
        for hold in self.capture.holds:
            by_birth[hold.born].append(hold)
        return {born: tuple(holds) for born, holds in by_birth.items()}

    @cached_property
    def saved_by_pass(self) -> Mapping[int, tuple[Allocation, ...]]:
        """What each backward pass used first, by its number."""
        by_pass: dict[int, list[Allocation]] = defaultdict(list)
        for allocation in self.capture.allocations:
            if allocation.backward and allocation.role is Role.UNMARKED:
                by_pass[allocation.backward].append(allocation)
        return {number: tuple(allocations) for number, allocations in by_pass.items()}

    def holds_of(self, allocations: Iterable[Allocation]) -> tuple[Hold, ...]:
        """All looks at which one of `allocations` had a name."""
        return tuple(hold for allocation in allocations for hold in self.holds.get(allocation.born, ()))

    # In words.

    def share(self, num_bytes: int) -> str:
        """`1.20 GiB (30 % of the peak)`."""
        return f"{format_bytes(num_bytes)} ({100 * num_bytes / max(self.peak_bytes, 1):.0f} % of the peak)"


def largest_lines(allocations: Iterable[Allocation], num_lines: int = NUM_LINES) -> tuple[str, ...]:
    """`1.20 GiB at train.py:20 in 12 blocks (float32[8, 512, 768])`, for the lines that hold most."""
    groups: dict[str, list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        groups[allocation.source].append(allocation)
    ordered = sorted(groups.items(), key=lambda item: (-_total(item[1]), item[0]))
    return tuple(_line(source, members) for source, members in ordered[:num_lines] if source)


def main_line(allocations: Iterable[Allocation]) -> str:
    """The line that holds most of `allocations`, empty where none has one."""
    sizes: dict[str, int] = defaultdict(int)
    for allocation in allocations:
        sizes[allocation.source] += allocation.allocated_bytes
    sizes.pop("", None)
    return max(sizes, key=lambda source: (sizes[source], source), default="")


def total_bytes(allocations: Iterable[Allocation]) -> int:
    """The sum of their blocks."""
    return sum(allocation.allocated_bytes for allocation in allocations)


_total = total_bytes


def _line(source: str, members: list[Allocation]) -> str:
    largest = max(members, key=lambda allocation: allocation.allocated_bytes)
    blocks = f" in {len(members)} blocks" if len(members) > 1 else ""
    of = f", the largest {largest.tensor}" if largest.tensor and len(members) > 1 else ""
    alone = f" ({largest.tensor})" if largest.tensor and len(members) == 1 else ""
    return f"{format_bytes(_total(members))} at {source}{blocks}{of}{alone}"
