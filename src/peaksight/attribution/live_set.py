"""The live set: what is alive at the peak, grouped into rows that add up to it."""

from collections import defaultdict
from collections.abc import Iterable

from peaksight.attribution.categories import Categories
from peaksight.attribution.keepers import Keepers
from peaksight.records import Allocation, Capture, Category, Holder, Phase

_Row = tuple[Category, str, str, str, Phase, int, str, str, str]


def live_set(capture: Capture, tick: int) -> tuple[Holder, ...]:
    """What is alive after `tick` of `capture`, largest first; bytes are block sizes and add up to what is allocated."""
    groups: dict[_Row, list[int]] = defaultdict(list)
    categories, keepers = Categories(capture), Keepers(capture)
    for allocation in alive_at(capture, tick):
        groups[_row(allocation, categories, keepers)].append(allocation.allocated_bytes)
    return tuple(sorted((_holder(row, sizes) for row, sizes in groups.items()), key=_largest_first))


def live_at_peak(capture: Capture) -> tuple[Holder, ...]:
    """What is alive once the allocation that made the peak is handed out: it adds up to the peak exactly."""
    holders = live_set(capture, capture.peak_tick)
    assert sum(holder.bytes for holder in holders) == capture.peak_allocated_bytes, "the live set must add up"
    return holders


def alive_at(capture: Capture, tick: int) -> Iterable[Allocation]:
    """The allocations alive after `tick`, in order of birth."""
    return (allocation for allocation in capture.allocations if is_alive(allocation, tick))


def is_alive(allocation: Allocation, tick: int) -> bool:
    """Whether `allocation` is there after `tick`."""
    return allocation.born <= tick and (allocation.died is None or allocation.died > tick)


def _row(allocation: Allocation, categories: Categories, keepers: Keepers) -> _Row:
    category, kept_by = categories.of(allocation), keepers.of(allocation)
    born = allocation.module, allocation.source, allocation.op, allocation.phase, allocation.step
    return category, *born, allocation.library, kept_by, allocation.tensor


def _holder(row: _Row, sizes: list[int]) -> Holder:
    category, module, source, op, phase, step, library, kept_by, tensor = row
    return Holder(
        bytes=sum(sizes),
        count=len(sizes),
        category=category,
        module=module,
        source=source,
        op=op,
        phase=phase,
        step=step,
        library=library,
        kept_by=kept_by,
        tensor=tensor,
    )


def _largest_first(holder: Holder) -> tuple[int, str, str, str, str]:
    return -holder.bytes, holder.category, holder.module, holder.source, holder.op
