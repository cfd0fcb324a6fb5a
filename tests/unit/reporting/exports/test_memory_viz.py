"""The pickle for memory_viz: what its viewer needs, and that reading it gives the run back."""

import pickle
import pickletools

import pytest

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution import build_recording_report, memory_traces
from peaksight.gpus import find_card, room_on
from peaksight.postmortem.snapshots import read_snapshot
from peaksight.records import Action, AllocatorCall, Phase, Role
from peaksight.reporting.exports.memory_viz import snapshot_pickle
from peaksight.units import GIB, MIB

ROOM = room_on(find_card("t4"))
# Those of pickle's opcodes that the viewer's own reader has, in torch/utils/viz/MemoryViz.js.
VIEWER_READS = set(
    "APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPUT BINUNICODE DICT EMPTY_DICT EMPTY_LIST EMPTY_TUPLE "
    "FRAME LIST LONG1 LONG_BINGET LONG_BINPUT MARK MEMOIZE NEWFALSE NEWTRUE NONE PROTO SETITEM SETITEMS "
    "SHORT_BINUNICODE STOP TUPLE TUPLE1 TUPLE2 TUPLE3".split()
)


@pytest.fixture
def capture():
    """A step whose optimizer runs out of memory."""
    made = {"phase": Phase.INIT, "role": Role.PARAMETER, "library": "torch/nn/modules/linear.py:134"}
    forward = {"module": "Net.fc", "source": "net.py:5", "library": "torch/nn/functional.py:7", "op": "aten::mm"}
    backward = {"phase": Phase.BACKWARD, "grad_enabled": False, "source": "net.py:5", "role": Role.GRADIENT}
    failure = failure_of(40 * GIB, tick=6, phase=Phase.OPTIMIZER, source="train.py:9", op="aten::zeros", free_bytes=7)
    failure_call = AllocatorCall(tick=6, action=Action.FAILED, bytes=40 * GIB)
    return capture_of(
        allocation_of(GIB, born=1, source="train.py:3", tensor="float32[1, 2]", **made),
        allocation_of(3 * MIB + 1, born=2, died=5, **forward),
        allocation_of(GIB, born=3, **backward),
        allocation_of(MIB, born=4, source="train.py:9", phase=Phase.OPTIMIZER, library="torch/optim/adam.py:1"),
        steps=[step_of(1, 1, 6, backward_began=[2])],
        calls=(failure_call,),
        failures=(failure,),
        fatal=0,
    )


def snapshot_of(capture, room=ROOM):
    return snapshot_pickle(memory_traces([capture], room, capture.rank))


def test_the_viewer_can_read_it(capture):
    """It knows some opcodes, and fails on categories without `unknown`."""
    content = snapshot_of(capture)
    opcodes = [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(content)]
    snapshot = pickle.loads(content)

    assert VIEWER_READS >= {name for name, _ in opcodes}
    assert 4 == dict(opcodes)["PROTO"]
    assert "unknown" in {event["category"] for event in snapshot["device_traces"][0]}


def test_what_is_of_no_field_is_shown(capture):
    """Category, module and tensor are where the viewer prints them, innermost frame first."""
    events = pickle.loads(snapshot_of(capture))["device_traces"][0]
    parameter, activation = [event for event in events if event["action"] == "alloc"][:2]

    assert ("parameter", "parameter | float32[1, 2]") == (parameter["category"], parameter["user_metadata"])
    assert "activation | Net.fc" == activation["user_metadata"]
    assert [
        ("site-packages/torch/nn/functional.py", 7, "aten::mm"),
        ("net.py", 5, "forward of step 1"),
        ("site-packages/torch/nn/modules/module.py", 0, "_call_impl"),
        ("train.py", 0, "<module>"),
        ("module", 0, "Net.fc"),
        ("category", 0, "activation"),
    ] == [(frame["filename"], frame["line"], frame["name"]) for frame in activation["frames"]]


def test_reading_it_gives_the_run_back(capture, tmp_path):
    """The peaks to the byte, every line, and the failure."""
    path = tmp_path / "run.pickle"
    path.write_bytes(snapshot_of(capture))
    recordings = read_snapshot(path)
    report, read = build_recording_report(recordings, path.name), recordings[0].capture

    for name in ("allocated", "reserved", "requested", "active"):
        assert getattr(capture, f"peak_{name}_bytes") == getattr(read, f"peak_{name}_bytes")
    for name in ("source", "library", "phase", "step", "allocated_bytes", "requested_bytes"):
        assert [getattr(a, name) for a in capture.allocations] == [getattr(a, name) for a in read.allocations], name
    assert (40 * GIB, 7, "train.py:9", Phase.OPTIMIZER, 1) == (
        report.oom.requested_bytes, report.oom.free_bytes, report.oom.at, report.oom.phase, report.oom.step,
    )  # fmt: skip
    assert "train.py" == report.script


def test_devices_keep_their_numbers(capture):
    """The traces of a snapshot are by the number of the card."""
    snapshot = pickle.loads(snapshot_of(capture_of(allocation_of(GIB, born=1), device=2)))

    assert [0, 0, 2] == [len(trace) for trace in snapshot["device_traces"]]
    assert {2} == {segment["device"] for segment in snapshot["segments"]}
