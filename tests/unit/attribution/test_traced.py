"""A run as its allocator would have recorded it."""

from hypothesis import given
from hypothesis import strategies as st

from helpers import allocation_of, capture_of, failure_of
from peaksight.attribution import memory_traces
from peaksight.gpus import find_card, room_on
from peaksight.records import Action, AllocatorCall, Category, Role
from peaksight.units import GIB, MIB

ROOM = room_on(find_card("t4"))


def traced(*captures, room=ROOM, rank=0):
    return memory_traces(captures, room, rank)


def lives():
    """Sizes of blocks, and how many births later each dies; 0 for never."""
    return st.lists(st.tuples(st.sampled_from([512, MIB, 3 * MIB, 15 * MIB, 50 * MIB]), st.integers(0, 4)), max_size=30)


def capture_from(pairs):
    """A capture of blocks born at odd ticks; each dies at an even one."""
    deaths = iter(range(2, 10_000, 2))
    allocations = []
    for row, (size, life) in enumerate(pairs):
        born = 2 * row + 1
        died = next((tick for tick in deaths if tick > born + 2 * life), None) if life else None
        allocations.append(allocation_of(size, born=born, died=died))
    return capture_of(*allocations)


@given(pairs=lives())
def test_what_events_do_is_what_is_there_in_the_end(pairs):
    """Peaks are those of the capture, and no block lies outside of the segments or on another."""
    capture = capture_from(pairs)
    (trace,) = traced(capture)
    segments, blocks, allocated_bytes, most = {}, {}, 0, [(0, 0)]
    sizes = {a.born: a.allocated_bytes for a in capture.allocations}
    for event in trace.events:
        if event.action == "segment_alloc":
            segments[event.address] = event.size_bytes
        elif event.action == "alloc":
            size = sizes[capture.allocations[event.row].born]
            assert any(at <= event.address and event.address + size <= at + n for at, n in segments.items())
            assert all(event.address + size <= at or at + n <= event.address for at, n in blocks.items())
            blocks[event.address] = size
            allocated_bytes += size
        elif event.action == "free_completed":
            allocated_bytes -= blocks.pop(event.address)
        most.append((allocated_bytes, sum(segments.values())))

    assert capture.peak_allocated_bytes == max(allocated for allocated, _ in most)
    assert capture.peak_reserved_bytes == max(reserved for _, reserved in most)
    assert segments == {segment.address: segment.size_bytes for segment in trace.segments}
    held = [block for segment in trace.segments for block in segment.blocks if block.row >= 0]
    assert blocks == {block.address: block.size_bytes for block in held}


def test_a_failure_comes_after_the_cache_was_given_back():
    """As on a card, which asks the driver again before it raises."""
    call = AllocatorCall(tick=3, action=Action.FAILED, bytes=40 * GIB)
    failure = failure_of(40 * GIB, tick=3, free_bytes=5)
    (trace,) = traced(capture_of(allocation_of(GIB, born=1, died=2), calls=(call,), failures=(failure,), fatal=0))

    assert ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free", "oom"] == [
        event.action for event in trace.events
    ]
    assert (5, 40 * GIB, 0) == (trace.events[-1].address, trace.events[-1].size_bytes, trace.events[-1].row)


def test_a_run_without_a_limit_goes_on_without_one():
    """GIVEN one that took more than the card has, THEN its events up to its end."""
    (trace,) = traced(capture_of(allocation_of(10 * GIB, born=1), allocation_of(10 * GIB, born=2)))

    assert 20 * GIB == sum(segment.size_bytes for segment in trace.segments)


def test_the_cards_of_one_rank():
    """Of the run that a failure ended, not of the one without a limit that followed."""
    block = allocation_of(GIB, born=1, role=Role.PARAMETER)
    first = [capture_of(block, rank=rank, device=device) for rank in (0, 1) for device in (0, 1)]
    again = [capture_of(block, allocation_of(GIB, born=2), rank=1)]
    traces = traced(*first, *again, rank=1)

    assert [(1, 0), (1, 1)] == [(trace.capture.rank, trace.capture.device) for trace in traces]
    assert [(Category.PARAMETER,)] * 2 == [trace.categories for trace in traces]


def test_settings_are_those_of_the_run():
    """Pages of an expandable segment are mapped."""
    calls = (AllocatorCall(tick=1, action=Action.SETTINGS, what="expandable_segments:True"),)
    (trace,) = traced(capture_of(allocation_of(30 * MIB, born=2), calls=calls))

    assert {"segment_map", "alloc"} == {event.action for event in trace.events}
    assert "expandable_segments:True" == trace.settings["PYTORCH_CUDA_ALLOC_CONF"]
    assert all(segment.is_expandable for segment in trace.segments)


def test_blocks_that_other_streams_use():
    """The end of a free comes later than its request, at the latest before the cache is given back."""
    used = [allocation_of(50 * MIB, born=born, died=born + 1, reusable=reusable) for born, reusable in ((1, 3), (4, 7))]
    emptied = AllocatorCall(tick=6, action=Action.EMPTY_CACHE)
    (trace,) = traced(capture_of(*used, calls=(emptied,)))
    once = ["alloc", "free_requested", "free_completed"]

    assert [event.action for event in trace.events] == ["segment_alloc", *once, *once, "segment_free"]
