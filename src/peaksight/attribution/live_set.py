"""The live set: what is alive at the peak, grouped into rows that add up to it."""

from collections import defaultdict
from collections.abc import Iterable

from peaksight.attribution.categories import Categories
from peaksight.records import Allocation, Capture, Category, Holder, Phase

_Row = tuple[Category, str, str, str, Phase, int]


def live_set(capture: Capture) -> tuple[Holder, ...]:
    """What is alive at the peak of `capture`, largest first; bytes are block sizes and add up to the peak exactly."""
    groups: dict[_Row, list[int]] = defaultdict(list)
    categories = Categories(capture)
    for allocation in alive_at_peak(capture):
        groups[_row(allocation, categories)].append(allocation.allocated_bytes)
    holders = sorted((_holder(row, sizes) for row, sizes in groups.items()), key=_largest_first)
    assert sum(holder.bytes for holder in holders) == capture.peak_allocated_bytes, "the live set must add up"
    return tuple(holders)


def alive_at_peak(capture: Capture) -> Iterable[Allocation]:
    """The allocations alive once the one that made the peak is handed out, in order of birth."""
    peak = capture.peak_tick
    return (a for a in capture.allocations if a.born <= peak and (a.died is None or a.died > peak))


def _row(allocation: Allocation, categories: Categories) -> _Row:
    category = categories.of(allocation)
    return category, allocation.module, allocation.source, allocation.op, allocation.phase, allocation.step


def _holder(row: _Row, sizes: list[int]) -> Holder:
    category, module, source, op, phase, step = row
    return Holder(
        bytes=sum(sizes),
        count=len(sizes),
        category=category,
        module=module,
        source=source,
        op=op,
        phase=phase,
        step=step,
    )


def _largest_first(holder: Holder) -> tuple[int, str, str, str, str]:
    return -holder.bytes, holder.category, holder.module, holder.source, holder.op
