"""What the memory of the card is for at the peak, part by part."""

from collections import Counter
from collections.abc import Sequence

from peaksight.gpus import Room
from peaksight.records import Budget, BudgetPart, Category, Holder


def budget_of(
    live: Sequence[Holder], room: Room, *, held_bytes: int, outside_bytes: int, reservable_bytes: int, fits: bool | None
) -> Budget:
    """The card of `room` with the categories of `live`, where the allocator holds `held_bytes` at most.

    `outside_bytes` are held by libraries, `reservable_bytes` is what they and the script leave to the allocator. Of a
    run that fits because the allocator gives cached blocks back, it holds no more than that.
    """
    if fits:
        held_bytes = min(held_bytes, reservable_bytes)
    by_category = Counter[Category]()
    for holder in live:
        by_category[holder.category] += holder.bytes
    parts: dict[str, int] = {category: by_category[category] for category in Category}
    parts["unallocated"] = max(0, held_bytes - by_category.total())
    parts["context"] = room.context_bytes
    parts["libraries"] = outside_bytes
    parts["other_processes"] = room.others_bytes
    parts["withheld"] = max(0, room.usable_bytes - outside_bytes) - reservable_bytes
    left_bytes = room.card.total_bytes - sum(parts.values())
    parts["free"] = max(0, left_bytes)
    return Budget(
        total_bytes=room.card.total_bytes,
        parts=tuple(BudgetPart(part=str(part), bytes=size) for part, size in parts.items() if size),
        over_bytes=max(0, -left_bytes),
    )
