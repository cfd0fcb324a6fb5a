"""The snapshot in a capsule: read as that of a file, cut short as one with a shorter history, never a wrong one."""

import pickle
from itertools import islice

import pytest

from helpers_capsules import failure_of, process_of, write_capsule
from peaksight.live import allocator_lines
from peaksight.live.allocator_lines import holders_of, lines_of
from peaksight.postmortem.capsules import read_capsule
from peaksight.postmortem.snapshots import read_snapshot
from peaksight.records import Role
from peaksight.records.capsule import TensorName
from peaksight.units import MIB

BASE = 140 << 40
LIBRARY = {"filename": "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", "line": 5, "name": "_call_impl"}
LINES = [{"filename": "/home/me/train.py", "line": line, "name": "<module>"} for line in range(20)]


def block(place, size, state="active_allocated", line=3):
    frames = [LIBRARY, LINES[line]]
    return {"address": BASE + place, "size": size, "requested_size": size - 100, "state": state, "frames": frames}


def event(action, place, size, **about):
    return {"action": action, "addr": BASE + place, "size": size, "stream": 0, "time_us": 1} | about


@pytest.fixture
def snapshot():
    """Two segments; one block was there before the trace, one came and went, one stayed; then the card was full."""
    segments = [
        {"device": 0, "address": BASE, "total_size": 20 * MIB, "is_expandable": False,
         "blocks": [block(0, 8 * MIB), block(8 * MIB, 12 * MIB, "inactive")]},
        {"device": 0, "address": BASE + (1 << 30), "total_size": 2 * MIB, "is_expandable": False,
         "blocks": [block(1 << 30, 2 * MIB, line=4)]},
    ]  # fmt: skip
    trace = [
        event("alloc", 8 * MIB, 4 * MIB, frames=[LIBRARY, LINES[7]]),
        event("free_requested", 8 * MIB, 4 * MIB),
        event("free_completed", 8 * MIB, 4 * MIB),
        event("segment_alloc", 1 << 30, 2 * MIB),
        event("alloc", 1 << 30, 2 * MIB - 100, frames=[LIBRARY, LINES[4]]),
        {"action": "oom", "size": 16 * MIB, "device_free": 3 * MIB, "stream": 0, "frames": [LINES[9]], "time_us": 9},
    ]
    return {"segments": segments, "device_traces": [trace], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""}}


def test_as_a_file_of_torch(snapshot, tmp_path, monkeypatch):
    """The same recording comes out of both, however many lines the events are cut into."""
    monkeypatch.setattr(allocator_lines, "ROWS_A_LINE", 2)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(snapshot))
    (of_file,) = read_snapshot(tmp_path / "snapshot.pickle")
    (recording,) = read_capsule(
        write_capsule(tmp_path, process_of(0), failure_of(), lines=lines_of(snapshot))
    ).recordings

    assert of_file.capture.allocations == recording.capture.allocations
    assert of_file.segments == recording.segments
    assert of_file.curve == recording.curve
    assert 16 * MIB == recording.capture.failures[-1].requested_bytes
    assert "train.py:9" == recording.capture.failures[-1].source


def test_cut_between_its_lines(snapshot, tmp_path, monkeypatch):
    """Without all segments there is no recording, without all events a shorter history: what is alive stays."""
    monkeypatch.setattr(allocator_lines, "ROWS_A_LINE", 2)
    lines, alive = list(lines_of(snapshot)), []
    for length in range(len(lines) + 1):
        folder = tmp_path / str(length)
        opened = read_capsule(write_capsule(folder, process_of(0), failure_of(), lines=islice(lines, length)))
        alive += [
            sum(a.allocated_bytes for a in recording.capture.allocations if a.died is None)
            for recording in opened.recordings
        ]

    assert {10 * MIB} == set(alive)
    assert len([kind for kind, _ in lines if kind == "events"]) < len(alive) < len(lines)


def test_names_of_tensors(snapshot, tmp_path):
    """Tell role and module of what has an address of theirs."""
    names = [TensorName(address=BASE, role=Role.PARAMETER, module="Net.\x1b[2Jup")]
    lines = [("names", {"names": names}), *lines_of(snapshot)]
    (recording,) = read_capsule(write_capsule(tmp_path, process_of(0), failure_of(), lines=lines)).recordings

    assert (Role.PARAMETER, "Net.?[2Jup") in {(a.role, a.module) for a in recording.capture.allocations}


def test_holders(snapshot):
    """By module and the innermost line of the script, largest first."""
    held = holders_of(snapshot, 0, {BASE: "Net.up"})

    assert [(8 * MIB, "Net.up", "/home/me/train.py:3"), (2 * MIB, "", "/home/me/train.py:4")] == [
        (row.bytes, row.module, row.source) for row in held
    ]
    assert [] == holders_of(snapshot, 1, {})


@pytest.mark.parametrize(
    "line",
    [
        ("stacks", {"frames": [], "stacks": [[3]]}),
        ("segment", {"device": 0}),
        ("segment", {"device": 0, "address": BASE, "total_size": 1 << 60, "is_expandable": False, "addresses": [],
                     "sizes": [], "requested": [], "states": [], "stacks": []}),
        ("events", {"device": 0, "actions": ["alloc"], "addresses": [BASE], "sizes": [-4], "streams": [0],
                    "stacks": [9], "times_us": [0]}),
        ("events", {"device": 0, "actions": ["alloc"], "addresses": [], "sizes": [], "streams": [], "stacks": [],
                    "times_us": []}),
        ("a kind of later releases", {"x": 1}),
    ],
)  # fmt: skip
def test_what_makes_no_sense(snapshot, tmp_path, line):
    """The failure is told all the same."""
    settings, *rest = lines_of(snapshot)
    opened = read_capsule(write_capsule(tmp_path, process_of(0), failure_of(), lines=[settings, line, *rest]))

    assert 4 == opened.capsule.failure.step
    assert "train.py:12" == opened.at
