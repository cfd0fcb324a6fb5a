"""Snapshots of older releases, of every pickle protocol, and gzipped."""

import gzip
import pickle

import pytest

from peaksight.postmortem.snapshots import is_snapshot, read_snapshot

from .snapshot_builder import CALL, MIB, SCRIPT, Script, address, frame, recording_of, recordings_of, segment

SOME = Script().segment(0).alloc(0, MIB, CALL, SCRIPT).alloc(0, MIB, offset=2 * MIB).free(0, MIB).snapshot()


def test_the_format_of_torch_2_0(tmp_path):
    """Blocks without addresses, with a history; no sizes that were asked for, no time, no stacks in the trace."""
    history = [{"addr": address(0), "real_size": 1000, "frames": [frame("train.py", "<module>", 9)]}]
    blocks = [
        {"size": 1024, "state": "active_allocated", "history": history},
        {"size": 2 * MIB - 1024, "state": "inactive"},
    ]
    events = [{"action": "alloc", "addr": address(0), "size": 1024, "stream": 0}]
    recording = recording_of({"segments": [segment(0, *blocks)], "device_traces": [events]}, tmp_path)
    (allocation,) = recording.capture.allocations

    assert (1, 1000, 1024, "train.py:9") == (
        allocation.born,
        allocation.requested_bytes,
        allocation.allocated_bytes,
        allocation.source,
    )


def test_the_format_before_torch_2_0(tmp_path):
    """A list of segments: what is alive then is the peak."""
    blocks = [{"size": 1024, "state": "active_allocated"}, {"size": 2 * MIB - 1024, "state": "inactive"}]
    recording = recording_of([segment(0, *blocks)], tmp_path)

    assert (1024, 2 * MIB) == (recording.capture.peak_allocated_bytes, recording.capture.peak_reserved_bytes)
    assert (0, False) == (recording.num_events, recording.has_stacks)


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol(tmp_path, protocol):
    """Gives the same."""
    expected = recording_of(SOME, tmp_path)

    assert (expected,) == recordings_of(SOME, tmp_path, protocol)


def test_a_gzipped_file(tmp_path):
    """Is read as it is; progress ends at the end of the file."""
    path, parts = tmp_path / "snapshot.pickle.gz", []
    path.write_bytes(gzip.compress(pickle.dumps(SOME)))

    assert is_snapshot(path)
    assert 1 == len(read_snapshot(path, parts.append))
    assert sorted(parts) == parts
    assert 1.0 == parts[-1]
