"""What the allocator held when the recording began: what it holds in the end, less what the trace did."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from peaksight.postmortem.snapshots.ranges import Ranges
from peaksight.postmortem.snapshots.tables import NO_STACK, Block, Did, Trace


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of a snapshot; its blocks have addresses."""

    address: int
    nbytes: int
    is_expandable: bool
    blocks: tuple[Block, ...]


@dataclass(slots=True)
class Beginning:
    """The state before the first event.

    `blocks` are those in use by address; those of them that a free in the trace shows have no stack, and only the size
    asked for. `final_blocks` has the block that the allocation of an event ended in, by the place of the event. `freed`
    is the action that ends a block: of a trace that leaves out completed frees the requested ones.
    """

    blocks: dict[int, Block]
    ranges: Ranges
    freed: Did
    final_blocks: dict[int, Block] = field(default_factory=dict)


def rewind(trace: Trace, segments: Iterable[Segment]) -> Beginning:
    """Undo `trace`, the last event first, on what `segments` hold after it."""
    ranges, blocks = Ranges(), dict[int, Block]()
    for segment in segments:
        ranges.add(segment.address, segment.nbytes, is_expandable=segment.is_expandable)
        blocks |= {block.address or 0: block for block in segment.blocks if block.is_active}
    has_completed = trace.has(Did.FREE_COMPLETED) or not all(block.is_allocated for block in blocks.values())
    beginning = Beginning(blocks, ranges, Did.FREE_COMPLETED if has_completed else Did.FREE_REQUESTED)
    in_the_end = set(blocks)
    for place, event in zip(range(len(trace) - 1, -1, -1), reversed(trace), strict=True):
        match event.action:
            case Did.ALLOC:
                block = blocks.pop(event.address, None)
                if block is not None and event.address in in_the_end:
                    beginning.final_blocks[place] = block
            case Did.SEGMENT_ALLOC | Did.SEGMENT_MAP:
                ranges.remove(event.address, event.nbytes)
            case Did.SEGMENT_FREE | Did.SEGMENT_UNMAP:
                ranges.add(event.address, event.nbytes, is_expandable=event.action == Did.SEGMENT_UNMAP)
        if event.action == beginning.freed:
            in_the_end.discard(event.address)
            blocks[event.address] = _before(event.address, event.nbytes)
    return beginning


def _before(address: int, nbytes: int) -> Block:
    """A block that the trace frees: its event has the stack of the free."""
    return Block(address, 0, nbytes, True, True, NO_STACK)
