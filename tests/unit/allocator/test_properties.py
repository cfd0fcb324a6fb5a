"""What holds after any sequence of calls."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.allocator import BlockState, CachingAllocator, DeviceOutOfMemory, Settings
from peaksight.units import MIB

LIMIT = 200 * MIB

sizes = st.one_of(st.integers(1, 4096), st.integers(1, 3 * MIB), st.integers(1, 60 * MIB))
calls = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), sizes, st.integers(0, 1)),
        st.tuples(st.sampled_from(["free", "free_requested", "free_completed"]), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


class Script:
    """Makes calls of an allocator, and keeps the blocks that it holds."""

    def __init__(self, allocator):
        self.allocator = allocator
        self.live = []
        self.awaiting = []

    def call(self, name, argument, stream):
        if name == "malloc":
            self.malloc(argument, stream)
        elif name == "free_completed":
            self.take(self.awaiting, argument, self.allocator.free_completed)
        elif name == "empty_cache":
            self.allocator.empty_cache()
        else:
            block = self.take(self.live, argument, getattr(self.allocator, name))
            if name == "free_requested" and block is not None:
                self.awaiting.append(block)

    def malloc(self, nbytes, stream):
        try:
            self.live.append(self.allocator.malloc(nbytes, stream))
        except DeviceOutOfMemory as error:
            assert error.reserved_bytes <= LIMIT

    def take(self, blocks, index, call):
        if not blocks:
            return None
        block = blocks.pop(index % len(blocks))
        call(block)
        return block


def check(allocator, live):
    """Every property, on the segments as they are."""
    segments = allocator.segments()
    blocks = [block for segment in segments for block in segment.blocks]
    active = [block for block in blocks if block.state is not BlockState.INACTIVE]
    allocated = [block for block in blocks if block.state is BlockState.ACTIVE_ALLOCATED]

    assert sum(block.size for block in blocks) == allocator.reserved_bytes
    assert sum(block.size for block in active) == allocator.active_bytes
    assert sum(block.size for block in allocated) == allocator.allocated_bytes
    assert sum(block.requested_size for block in active) == allocator.requested_bytes
    assert allocator.allocated_bytes <= allocator.active_bytes <= allocator.reserved_bytes <= LIMIT
    assert allocator.peak_reserved_bytes <= LIMIT
    assert {id(block) for block in allocated} == {id(block) for block in live}
    assert all(left.end <= right.address for left, right in pairwise(blocks))
    for segment in segments:
        assert all(left.end == right.address for left, right in pairwise(segment.blocks))
        assert not any(left.state is right.state is BlockState.INACTIVE for left, right in pairwise(segment.blocks))


@pytest.mark.parametrize("expandable_segments", [False, True])
@given(calls=calls)
def test_properties(expandable_segments, calls):
    """Bytes are conserved, blocks do not overlap, free neighbours are merged, the limit is kept."""
    script = Script(CachingAllocator(limit_bytes=LIMIT, settings=Settings(expandable_segments=expandable_segments)))
    for call in calls:
        script.call(*call)
        check(script.allocator, script.live)


@pytest.mark.parametrize("expandable_segments", [False, True])
@given(calls=calls)
def test_everything_can_be_given_back(expandable_segments, calls):
    """When every block is freed, emptying the cache leaves nothing."""
    script = Script(CachingAllocator(limit_bytes=LIMIT, settings=Settings(expandable_segments=expandable_segments)))
    for call in calls:
        script.call(*call)
    for block in script.live:
        script.allocator.free(block)
    script.allocator.empty_cache()
    stats = script.allocator.memory_stats()

    assert script.allocator.segments() == []
    assert all(value == 0 for key, value in stats.items() if key.endswith(".current"))
