"""What is no snapshot is refused, and one that makes no sense is read as far as it does."""

import gzip
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.attribution import build_recording_report
from peaksight.errors import SnapshotError
from peaksight.postmortem.snapshots import is_snapshot, read_snapshot

from .snapshot_builder import CALL, MIB, SCRIPT, STEP, Script, address, block, frame, of_torch, recordings_of, segment

SOME = Script().segment(0).alloc(0, MIB, CALL, SCRIPT).snapshot()


NO_SNAPSHOTS = {
    "a checkpoint": pickle.dumps({"model": [1, 2, 3]}),
    "a number": pickle.dumps(5),
    "an archive of torch.save": b"PK\x03\x04" + bytes(50),
    "code": b"\x80\x04cos\nsystem\n.",
    "segments that are none": pickle.dumps({"segments": [5]}),
    "segments of another size": pickle.dumps({"segments": [segment(0, block(MIB, MIB)) | {"total_size": 5}]}),
    "traces that are none": pickle.dumps({"device_traces": [[1, 2]]}),
    "an event without action": pickle.dumps({"device_traces": [[{"action": "alloc", "size": 1}, {"size": 2}]]}),
    "an event of texts": pickle.dumps({"device_traces": [[{"action": "alloc", "addr": "x", "size": 1}]]}),
    "a size too large": pickle.dumps({"device_traces": [[{"action": "alloc", "addr": 1, "size": 1 << 80}]]}),
    "frames that are none": pickle.dumps({"device_traces": [[{"action": "alloc", "addr": 1, "frames": [5]}]]}),
    "nothing": pickle.dumps({"segments": [], "device_traces": [[]]}),
    "cut short": pickle.dumps(SOME)[:-20],
    "a cut gzip": gzip.compress(pickle.dumps(SOME))[:-20],
}


@pytest.mark.parametrize("kind", NO_SNAPSHOTS)
def test_what_is_no_snapshot(tmp_path, kind):
    """Is refused in one sentence that names the file."""
    path = tmp_path / "file"
    path.write_bytes(NO_SNAPSHOTS[kind])
    with pytest.raises(SnapshotError, match=r"(?s)^.*file.*\.$") as raised:
        read_snapshot(path)

    assert is_snapshot(path)
    assert "\n" not in str(raised.value)


ACTIONS = (
    "alloc free_requested free_completed segment_alloc segment_free segment_map segment_unmap oom snapshot "
    "annotate workspace_snapshot"
).split()
STACKS = [(CALL, SCRIPT), (of_torch("optim/adamw.py", "_init_group"), STEP, SCRIPT), (), (frame("train.py", "f"),)]
ADDRESSES = [address(slot) + offset * MIB for slot in (0, 1) for offset in (0, 1, 2, 30)]
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "action": st.sampled_from(ACTIONS),
            "addr": st.sampled_from(ADDRESSES),
            "size": st.sampled_from([0, 1, 512, MIB, 2 * MIB, 20 * MIB]),
        },
        optional={
            "frames": st.sampled_from(STACKS).map(list),
            "stream": st.integers(0, 2),
            "time_us": st.integers(0, 9),
        },
    ),
    max_size=30,
)
STATES = st.sampled_from(["inactive", "active_allocated", "active_pending_free"])
BLOCKS = st.builds(
    lambda size, requested, state: block(size, requested, state=state),
    st.sampled_from([512, MIB]),
    st.sampled_from([1, MIB]),
    STATES,
)


def check_course(report):
    """Its ticks rise, and its columns add up; there is none where nothing was ever allocated."""
    course = report.course
    if course is None:
        assert not report.num_allocations
        return
    assert list(course.ticks) == sorted(set(course.ticks))
    for part, allocated_bytes in enumerate(course.allocated_bytes):
        assert allocated_bytes == sum(column.bytes[part] for column in course.held)
    assert max(course.allocated_bytes) == report.peak.allocated_bytes
    assert course.peak_tick in course.ticks


@given(EVENTS, st.lists(st.lists(BLOCKS, min_size=1, max_size=4), max_size=2))
def test_traces_that_make_no_sense(tmp_path_factory, events, blocks):
    """Frees of what is not there, overlapping segments: what is told adds up all the same."""
    segments = [segment(slot, *of_segment) for slot, of_segment in enumerate(blocks)]
    if not events and not segments:
        return
    snapshot = {"segments": segments, "device_traces": [events]}
    recordings = recordings_of(snapshot, tmp_path_factory.mktemp("snapshot"))
    report = build_recording_report(recordings, "snapshot.pickle")

    assert report.peak.allocated_bytes == sum(holder.bytes for holder in report.live_at_peak)
    assert report.peak.reserved_bytes >= report.fragmentation.reserved_bytes >= 0
    check_course(report)


@pytest.mark.parametrize("text", [b"", b"CUDA out of memory.", b"{}", b"[1, 2]", b"\x80abc", "\u00e4".encode()])
def test_logs_are_no_snapshots(tmp_path, text):
    """Nor is what else a person may give."""
    path = tmp_path / "file"
    path.write_bytes(text)

    assert not is_snapshot(path)
