"""Recorded traces through the simulated allocator."""

import json
from pathlib import Path

import pytest

from peaksight.allocator import CachingAllocator, Replay, read_trace, replay
from peaksight.units import MIB

TRUTH = Path(__file__).parents[3] / "benchmarks" / "truth"
TRACES = sorted(path.name.removesuffix(".trace.json.gz") for path in TRUTH.glob("traces/*.trace.json.gz"))


def measured(workload):
    return json.loads((TRUTH / "measured" / f"{workload}.json").read_text())


def events_of(workload):
    return read_trace(TRUTH / "traces" / f"{workload}.trace.json.gz")


@pytest.mark.parametrize("workload", TRACES)
def test_measured_traces(workload):
    """Every address and both peaks are those of an H100 with torch 2.11, to the byte."""
    events = events_of(workload)
    truth = measured(workload)

    assert replay(events) == Replay(
        peak_allocated=truth["peak_allocated"],
        peak_reserved=truth["peak_reserved"],
        segments=sum(event.action == "segment_alloc" for event in events),
        num_allocations=sum(event.action == "alloc" for event in events),
        wrong_addresses=0,
        num_unknown_frees=0,
    )


@pytest.mark.parametrize("workload", ["lstm", "resnet50-b32", "vit_b-b64-bf16-ckpt", "wav2vec2"])
def test_own_addresses(workload):
    """With addresses in the order of the driver, the reserved peak is that of the H100 without its addresses."""
    allocator, blocks = CachingAllocator(), {}
    for action, address, nbytes, stream in events_of(workload):
        if action == "alloc":
            blocks[address] = allocator.malloc(nbytes, stream)
        elif action == "free_completed":
            allocator.free(blocks.pop(address))

    assert allocator.peak_reserved_bytes == measured(workload)["peak_reserved"]


def test_trace_from_the_middle_of_a_run():
    """Frees of blocks from before the trace are counted and change nothing else."""
    events = [
        ("free_requested", 4096, 100, 0),
        ("free_completed", 4096, 100, 0),
        ("alloc", 4096, 100, 0),
        ("free_requested", 4096, 100, 0),
        ("free_completed", 4096, 100, 0),
    ]
    result = replay(events)

    assert (result.num_unknown_frees, result.num_allocations, result.wrong_addresses) == (1, 1, 1)
    assert (result.peak_allocated, result.peak_reserved) == (512, 2 * MIB)


@pytest.mark.parametrize("start", [1000, 5000, 9000])
def test_real_trace_from_the_middle(start):
    """A real trace that lost its beginning is replayed to its end."""
    events = events_of("resnet50-b32")[start:]
    result = replay(events)

    assert result.num_allocations == sum(event.action == "alloc" for event in events)
    assert result.num_unknown_frees > 0


def test_trace_with_losses():
    """A trace that lost single events is replayed to its end."""
    events = events_of("lstm")
    del events[::10]

    assert replay(events).num_allocations == sum(event.action == "alloc" for event in events)


def test_announced_address_that_is_held():
    """An address that the simulation still holds is not given to a second segment."""
    events = [("segment_alloc", 0, 30 * MIB, 0), ("alloc", 0, 30 * MIB, 0)] * 2
    result = replay(events)

    assert (result.segments, result.wrong_addresses) == (2, 1)


def test_released_segments():
    """Segments are released where the trace releases them, and their addresses used again."""
    events = [
        ("segment_alloc", 0, 30 * MIB, 0),
        ("alloc", 0, 30 * MIB, 0),
        ("free_requested", 0, 30 * MIB, 0),
        ("free_completed", 0, 30 * MIB, 0),
        ("segment_free", 0, 30 * MIB, 0),
        ("segment_alloc", 0, 40 * MIB, 0),
        ("alloc", 0, 40 * MIB, 0),
        ("snapshot", 0, 0, 0),
    ]
    result = replay(events)

    assert (result.peak_reserved, result.segments, result.wrong_addresses) == (40 * MIB, 2, 0)


def test_expandable_trace():
    """A trace that maps pages is replayed with expandable segments."""
    base, page = 7 << 30, 20 * MIB
    events = [
        ("segment_map", base, 2 * page, 0),
        ("alloc", base, 30 * MIB, 0),
        ("segment_map", base + 2 * page, page, 0),
        ("alloc", base + 30 * MIB, 30 * MIB, 0),
        ("segment_map", base << 1, 2 * MIB, 0),
        ("alloc", base << 1, 100, 0),
    ]
    result = replay(events)

    assert (result.peak_reserved, result.segments, result.wrong_addresses) == (62 * MIB, 3, 0)
