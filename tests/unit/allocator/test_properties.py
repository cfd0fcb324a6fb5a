"""What holds after any sequence of calls, under any settings."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.allocator import BlockState, CachingAllocator, DeviceOutOfMemory, Settings
from peaksight.allocator.device import KEPT_BY_DRIVER
from peaksight.units import MIB

TOTAL = 150 * MIB
LIMIT = 120 * MIB

sizes = st.one_of(st.integers(1, 4096), st.integers(1, 3 * MIB), st.integers(12 * MIB, 60 * MIB))
calls = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), sizes, st.integers(0, 1)),
        st.tuples(st.just("malloc"), st.sampled_from([15, 25, 26, 45]).map(lambda mb: mb * MIB), st.just(0)),
        st.tuples(st.sampled_from(["free", "free_requested", "free_completed"]), st.integers(0, 50), st.just(0)),
        st.tuples(st.sampled_from(["empty_cache", "switch_segments"]), st.just(0), st.just(0)),
        st.tuples(st.just("take_outside"), st.integers(1, 10 * MIB), st.just(0)),
    ),
    min_size=12,
    max_size=60,
)
divisions = st.sampled_from([0, 2, 4]).map(lambda division: (division,) * 16)
some_settings = st.builds(
    Settings,
    expandable_segments=st.booleans(),
    max_split_size_bytes=st.sampled_from([None, 24 * MIB, 40 * MIB]),
    max_non_split_rounding_bytes=st.sampled_from([20 * MIB, 30 * MIB]),
    roundup_power2_divisions=divisions,
    garbage_collection_threshold=st.sampled_from([0.0, 0.3, 0.8]),
    large_segment_size_bytes=st.sampled_from([12 * MIB, 20 * MIB]),
    per_process_memory_fraction=st.sampled_from([1.0, 0.9, 0.4]),
    throw_on_cudamalloc_oom=st.booleans(),
)


class Script:
    """Makes calls of an allocator, and keeps the blocks that it holds."""

    def __init__(self, settings):
        self.settings = settings
        self.allocator = CachingAllocator(limit_bytes=LIMIT, total_bytes=TOTAL, settings=settings)
        self.live = []
        self.awaiting = []

    def call(self, name, argument, stream):
        if name == "malloc":
            self.malloc(argument, stream)
        elif name == "take_outside":
            self.allocator.take_outside(argument)
        elif name == "empty_cache":
            self.allocator.empty_cache()
        elif name == "switch_segments":
            self.switch_segments()
        elif name == "free_completed":
            self.take(self.awaiting, argument, self.allocator.free_completed)
        else:
            block = self.take(self.live, argument, getattr(self.allocator, name))
            if name == "free_requested" and block is not None:
                self.awaiting.append(block)

    def malloc(self, nbytes, stream):
        try:
            block = self.allocator.malloc(nbytes, stream)
        except DeviceOutOfMemory as error:
            check_error(error, self.allocator)
        else:
            assert block.size >= block.requested_size == nbytes
            assert block.stream == stream
            self.live.append(block)

    def switch_segments(self):
        allocator = self.allocator
        allocator.apply(Settings(expandable_segments=not allocator.settings.expandable_segments))

    def take(self, blocks, index, call):
        if not blocks:
            return None
        block = blocks.pop(index % len(blocks))
        call(block)
        return block


def check_error(error, allocator):
    """An error is raised only where nothing could be released, and the segment would go beyond the cap or the limit."""
    allowed = TOTAL if error.allowed_bytes is None else error.allowed_bytes
    wanted = error.reserved_bytes + error.segment_bytes
    if error.is_rejected:
        assert wanted > allocator.settings.per_process_memory_fraction * TOTAL
    elif not allocator.settings.expandable_segments:
        assert wanted > allowed or wanted + error.outside_bytes + KEPT_BY_DRIVER > LIMIT
    if not error.is_rejected:
        assert allocator.release_cached_blocks() == 0


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
    assert allocator.allocated_bytes <= allocator.active_bytes <= allocator.reserved_bytes
    assert {id(block) for block in allocated} == {id(block) for block in live}
    assert all(left.end <= right.address for left, right in pairwise(blocks))
    for segment in segments:
        assert all(left.end == right.address for left, right in pairwise(segment.blocks))
        assert not any(left.state is right.state is BlockState.INACTIVE for left, right in pairwise(segment.blocks))


def check_bounds(allocator, expandable_segments):
    """What the device has is enough, and the cap holds, but for the pages of an expandable segment.

    As in C++, those are held to the size of the request, which can be less than the pages.
    """
    held = allocator.peak_reserved_bytes + allocator.outside_bytes
    assert allocator.reserved_bytes + allocator.outside_bytes + KEPT_BY_DRIVER <= LIMIT or held == 0
    if allocator.allowed_bytes is not None and not expandable_segments:
        assert allocator.peak_reserved_bytes <= allocator.allowed_bytes


def check_statistics(allocator):
    """The counts are those of the segments as they are."""
    segments = allocator.segments()
    classic = [segment for segment in segments if not segment.blocks[0].page_size]
    stuck = [
        block
        for segment in classic
        for block in segment.blocks
        if block.state is BlockState.INACTIVE and len(segment.blocks) > 1
    ]
    live = [b for segment in segments for b in segment.blocks if b.state is BlockState.ACTIVE_ALLOCATED]
    stats = allocator.memory_stats()

    assert stats["segment.all.current"] == len(classic)
    assert stats["inactive_split.all.current"] == len(stuck)
    assert stats["inactive_split_bytes.all.current"] == sum(block.size for block in stuck)
    assert stats["allocation.all.current"] == len(live)
    for name in ("reserved_bytes", "allocated_bytes", "active_bytes", "segment", "inactive_split_bytes"):
        parts = [stats[f"{name}.{pool}.current"] for pool in ("small_pool", "large_pool")]
        assert stats[f"{name}.all.current"] == sum(parts)


def check_oversize(allocator):
    """The counts of oversize blocks and segments are those of the segments, while no settings change."""
    limit = allocator.settings.max_split_size
    segments = allocator.segments()
    stats = allocator.memory_stats()
    live = [b for segment in segments for b in segment.blocks if b.state is BlockState.ACTIVE_ALLOCATED]

    assert stats["oversize_allocations.current"] == sum(block.size >= limit for block in live)
    assert stats["oversize_segments.current"] == sum(
        segment.total_size >= limit for segment in segments if not segment.blocks[0].page_size
    )


@pytest.mark.parametrize("expandable_segments", [False, True])
@given(calls=calls)
def test_properties(expandable_segments, calls):
    """Bytes are conserved, blocks do not overlap, free neighbours are merged, the limit is kept."""
    script = Script(Settings(expandable_segments=expandable_segments))
    for call in calls:
        script.call(*call)
        check(script.allocator, script.live)
        check_statistics(script.allocator)
        check_bounds(script.allocator, expandable_segments=True)


@given(calls=calls, settings=some_settings)
def test_properties_under_settings(calls, settings):
    """The same with settings, and with a cap."""
    script = Script(settings)
    switches = any(name == "switch_segments" for name, _, _ in calls)
    for call in calls:
        script.call(*call)
        check(script.allocator, script.live)
        check_statistics(script.allocator)
        check_bounds(script.allocator, expandable_segments=settings.expandable_segments or switches)
        if not switches:
            check_oversize(script.allocator)


@given(calls=calls, settings=some_settings)
def test_everything_can_be_given_back(calls, settings):
    """When every block is freed, emptying the cache leaves nothing."""
    script = Script(settings)
    for call in calls:
        if call[0] != "switch_segments":
            script.call(*call)
    for block in script.live:
        script.allocator.free(block)
    script.allocator.empty_cache()
    stats = script.allocator.memory_stats()

    assert script.allocator.segments() == []
    assert all(value == 0 for key, value in stats.items() if key.endswith(".current"))
