"""Whatever the allocator is asked, its snapshot is read as what it did."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peaksight.allocator import CachingAllocator, parse_settings
from peaksight.allocator.blocks import ACTIVE_ALLOCATED, INACTIVE

from .snapshot_builder import MIB, recordings_of

PAGE = 2 * MIB
SIZES = st.sampled_from([100, 512, MIB, 3 * MIB - 1, 9 * MIB, 15 * MIB, 50 * MIB])
CALLS = st.lists(st.tuples(st.sampled_from(["take", "take", "request", "complete", "empty"]), SIZES), max_size=40)
SETTINGS = ("", "expandable_segments:True", "roundup_power2_divisions:4", "max_split_size_mb:30")


class Recorder:
    """An allocator and the trace entries of what it does."""

    def __init__(self, text):
        self.allocator = CachingAllocator(settings=parse_settings(text))
        self.entries = []
        self.pages = set()

    def note(self, action, address, size, stream=0):
        self.entries.append({"action": action, "addr": address, "size": size, "stream": stream})

    def note_segments(self):
        """Classic ones as a whole, of expandable ones each page."""
        pages = set()
        for segment in self.allocator.segments():
            ends = range(segment.address, segment.address + segment.total_size, PAGE)
            whole = [(segment.address, segment.total_size, False)]
            pages |= {(page, PAGE, True) for page in ends} if segment.is_expandable else set(whole)
        for address, size, is_page in sorted(self.pages - pages):
            self.note("segment_unmap" if is_page else "segment_free", address, size)
        for address, size, is_page in sorted(pages - self.pages):
            self.note("segment_map" if is_page else "segment_alloc", address, size)
        self.pages = pages

    def take(self, size, stream):
        block = self.allocator.malloc(size, stream)
        self.note_segments()
        self.note("alloc", block.address, block.requested_size, stream)
        return block

    def request(self, block):
        self.note("free_requested", block.address, block.requested_size)
        self.allocator.free_requested(block)

    def complete(self, block):
        self.note("free_completed", block.address, block.requested_size)
        self.allocator.free_completed(block)

    def snapshot(self, first):
        """With the entries from `first` on."""
        now = self.allocator.settings
        divisions = {str(1 << power): division for power, division in enumerate(now.roundup_power2_divisions)}
        most = -1 if now.max_split_size_bytes is None else now.max_split_size_bytes
        told = {"max_split_size": most, "roundup_power2_divisions": divisions}
        segments = [_told(segment) for segment in self.allocator.segments()]
        return {"segments": segments, "device_traces": [self.entries[first:]], "allocator_settings": told}


def _told(segment):
    states = {ACTIVE_ALLOCATED: "active_allocated", INACTIVE: "inactive"}
    blocks = [
        {"size": b.size, "requested_size": b.requested_size, "state": states.get(b.state, "active_awaiting_free")}
        for b in segment.blocks
    ]
    facts = {"device": 0, "address": segment.address, "total_size": segment.total_size}
    return facts | {"is_expandable": segment.is_expandable, "blocks": blocks}


@pytest.mark.parametrize("text", SETTINGS)
@settings(max_examples=25)
@given(calls=CALLS, chance=st.randoms(use_true_random=False), part=st.sampled_from([0, 0, 0.3, 0.8]))
def test_any_calls(tmp_path_factory, text, calls, chance, part):
    """Streams, blocks that wait for another stream, emptied caches; of a trace that lost its beginning, the end."""
    recorder, alive, waiting = Recorder(text), [], []
    for call, size in calls:
        if call == "take":
            alive.append(recorder.take(size, chance.randrange(2)))
        elif call == "request" and alive:
            waiting.append(alive.pop(chance.randrange(len(alive))))
            recorder.request(waiting[-1])
        elif call == "complete" and waiting:
            recorder.complete(waiting.pop(chance.randrange(len(waiting))))
        elif call == "empty":
            while waiting:
                recorder.complete(waiting.pop())
            recorder.allocator.empty_cache()
            recorder.note_segments()
    if not recorder.entries:
        return
    snapshot = recorder.snapshot(int(part * len(recorder.entries)))
    (recording,) = recordings_of(snapshot, tmp_path_factory.mktemp("snapshot"))
    allocator, capture = recorder.allocator, recording.capture
    final = [a.allocated_bytes for a in capture.allocations if a.died is None]

    assert sorted(final) == sorted(block.size for block in alive)
    if part == 0:
        assert (
            allocator.peak_allocated_bytes,
            allocator.peak_reserved_bytes,
            allocator.peak_requested_bytes,
            allocator.peak_active_bytes,
        ) == (
            capture.peak_allocated_bytes,
            capture.peak_reserved_bytes,
            capture.peak_requested_bytes,
            capture.peak_active_bytes,
        )
