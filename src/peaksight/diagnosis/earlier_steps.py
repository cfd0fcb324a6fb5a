"""What steps before that of the peak have left behind, and who holds it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from peaksight.diagnosis.evidence import Evidence
from peaksight.records import Allocation, Category, Hold
from peaksight.units import format_bytes

NUM_NAMES = 3


def kept_from_earlier_steps(evidence: Evidence) -> tuple[Allocation, ...]:
    """The activations alive at the peak that a forward of an earlier step made."""
    return tuple(
        allocation
        for allocation in evidence.live
        if allocation.step < evidence.peak_step and evidence.category(allocation) is Category.ACTIVATION
    )


def outliving_their_step(evidence: Evidence) -> dict[Allocation, int]:
    """Every activation of the run that outlives its step, with the last tick of that step: where it should have died.

    What one step leaves is there in the peak of the next, in each of them: a cause is removed in all.
    """
    ends = {peaks.step: peaks.last_tick for peaks in evidence.capture.steps if peaks.complete}
    return {
        allocation: ends[allocation.step]
        for allocation in evidence.capture.allocations
        if _outlives(allocation, ends) and evidence.category(allocation) is Category.ACTIVATION
    }


def _outlives(allocation: Allocation, ends: Mapping[int, int]) -> bool:
    end = ends.get(allocation.step)
    return end is not None and (allocation.died is None or allocation.died > end)


def names_of(evidence: Evidence, allocations: Sequence[Allocation]) -> Iterator[str]:
    """The names that hold most of `allocations`: "`losses[0]` in train.py:main holds 1.20 GiB by its graph"."""
    sizes: dict[tuple[str, str, bool], int] = defaultdict(int)
    for allocation in allocations:
        if hold := last_hold(evidence, allocation):
            sizes[hold.name, hold.where, hold.by_graph] += allocation.allocated_bytes
    for (name, where, by_graph), size in sorted(sizes.items(), key=lambda item: -item[1])[:NUM_NAMES]:
        yield f"`{name}` in {where} holds {format_bytes(size)}{' by its graph' if by_graph else ''}"
    if allocations and not sizes and evidence.capture.observed:
        yield "no variable of the running functions leads to it: a reference cycle, or an object that C++ holds"


def last_hold(evidence: Evidence, allocation: Allocation) -> Hold | None:
    """By which name `allocation` was held in a step after its own, at the last look; None if none was found."""
    holds = [hold for hold in evidence.holds.get(allocation.born, ()) if hold.tick > allocation.born]
    later = [hold for hold in holds if hold.step > allocation.step]
    return next(iter(reversed(later or holds)), None)
