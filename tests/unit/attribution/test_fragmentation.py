"""What keeps reserved memory from being given back."""

from helpers import allocation_of, capture_of, failure_of
from peaksight.attribution.fragmentation import fragmentation
from peaksight.records import Role
from peaksight.records.recording import HeldSegment, Recording
from peaksight.units import MIB


def recording_of(segments, *allocations, **about):
    """A recording at whose moment `segments` lists total bytes and the places of what is alive in it."""
    facts = {
        "device": 0,
        "capture": capture_of(*allocations, **about),
        "curve": (),
        "moment": 1,
        "largest_free_bytes": 7 * MIB,
        "num_events": 9,
        "num_before": 0,
        "num_inexact": 0,
        "has_stacks": True,
        "inner_lines": (),
        "settings": "",
        "script": "train.py",
    }
    held = (
        HeldSegment(address=number << 30, total_bytes=total, is_expandable=False, allocations=places)
        for number, (total, places) in enumerate(segments)
    )
    return Recording(segments=tuple(held), **facts)


BLOCKS = (
    allocation_of(12 * MIB, born=1, source="train.py:1", role=Role.PARAMETER),
    allocation_of(2 * MIB, born=2, source="train.py:2", role=Role.INPUT),
    allocation_of(4 * MIB, born=3, source="train.py:2", role=Role.INPUT),
)
SEGMENTS = [(20 * MIB, (0, 1)), (20 * MIB, (2,)), (20 * MIB, ()), (12 * MIB, (0,))]


def test_sums():
    """What is not allocated is in segments that something keeps, or in whole ones."""
    found = fragmentation(recording_of(SEGMENTS, *BLOCKS))

    assert (72 * MIB, 30 * MIB) == (found.reserved_bytes, found.allocated_bytes)
    assert (42 * MIB, 22 * MIB) == (found.unused_bytes, found.inactive_split_bytes)
    assert (4, 7 * MIB, False) == (found.num_segments, found.largest_free_bytes, found.at_failure)


def test_pins():
    """A line keeps what is free in its segments: alone where nothing else is in them. Full segments do not count."""
    pins = fragmentation(recording_of(SEGMENTS, *BLOCKS)).pins
    told = [(p.source, p.category, p.held_bytes, p.count, p.num_segments, p.kept_bytes, p.alone_bytes) for p in pins]

    assert told == [
        ("train.py:2", "input", 6 * MIB, 2, 2, 22 * MIB, 16 * MIB),
        ("train.py:1", "parameter", 12 * MIB, 1, 1, 6 * MIB, 0),
    ]


def test_segments():
    """Those that are partly free, with their largest holders first."""
    segments = fragmentation(recording_of(SEGMENTS, *BLOCKS)).segments

    assert [(16 * MIB, ("train.py:2",)), (6 * MIB, ("train.py:1", "train.py:2"))] == [
        (segment.free_bytes, segment.holders) for segment in segments
    ]


def test_what_has_no_line():
    """Is told as what is known of it."""
    blocks = (
        allocation_of(MIB, born=1, source="", library="torch/nn/functional.py:5"),
        allocation_of(MIB, born=2, source=""),
    )
    recording = recording_of([(20 * MIB, (0,)), (20 * MIB, (1,))], *blocks, failures=(failure_of(MIB, tick=3),))
    found = fragmentation(recording)

    assert {"torch/nn/functional.py:5", "no line"} == {pin.source for pin in found.pins}
    assert found.at_failure
