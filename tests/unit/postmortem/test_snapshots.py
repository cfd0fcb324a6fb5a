"""From a snapshot to a capture: lives, sizes of blocks, roles, and what a recording leaves open."""

from collections import Counter

from peaksight.attribution import live_at_peak
from peaksight.records import Category, Phase, Role

from .snapshot_builder import (
    APPLY,
    CALL,
    MIB,
    SCRIPT,
    STEP,
    Script,
    address,
    block,
    frame,
    of_torch,
    recording_of,
    recordings_of,
    segment,
)

LINEAR = of_torch("nn/modules/linear.py", "forward", 134)
FORWARD = (LINEAR, CALL, SCRIPT)
INSIDE_MODEL = (LINEAR, CALL, frame("model.py", "forward", 7), CALL, SCRIPT)
OPTIMIZER = (of_torch("optim/adamw.py", "_init_group", 120), STEP, SCRIPT | {"line": 44})


def training():
    """A parameter, and a step: an activation, a gradient that waits for the optimizer, its state and a temporary."""
    script = Script()
    for slot in range(6):
        script.segment(slot)
    script.alloc(0, 4 * MIB, of_torch("nn/modules/module.py", "convert"), APPLY, SCRIPT | {"line": 12})
    script.alloc(1, 3 * MIB, *INSIDE_MODEL)
    script.alloc(2, 4 * MIB)  # the thread of the backward pass has no frames
    script.free(1, 3 * MIB)
    script.alloc(3, 8 * MIB, *OPTIMIZER)
    script.alloc(4, 5 * MIB, of_torch("optim/adamw.py", "_multi_tensor_adamw"), STEP, SCRIPT | {"line": 44})
    script.free(4, 5 * MIB)
    script.free(2, 4 * MIB)
    return script.alloc(5, 2 * MIB, *FORWARD)


def test_roles_and_phases(tmp_path):
    """From the stacks, and from how long a block lives."""
    capture = recording_of(training().snapshot(), tmp_path).capture
    told = [(a.role, a.phase, a.step, a.source) for a in capture.allocations]

    assert told == [
        (Role.PARAMETER, Phase.INIT, 1, "train.py:12"),
        (Role.UNMARKED, Phase.FORWARD, 1, "model.py:7"),
        (Role.GRADIENT, Phase.BACKWARD, 1, ""),
        (Role.OPTIMIZER_STATE, Phase.OPTIMIZER, 1, "train.py:44"),
        (Role.UNMARKED, Phase.OPTIMIZER, 1, "train.py:44"),
        (Role.UNMARKED, Phase.FORWARD, 2, "train.py:40"),
    ]
    assert "torch/nn/modules/linear.py:134" == capture.allocations[1].library
    assert [(1, True), (2, False)] == [(step.step, step.complete) for step in capture.steps]


def test_the_live_set(tmp_path):
    """Adds up to the peak, by category."""
    capture = recording_of(training().snapshot(), tmp_path).capture
    held = Counter()
    for holder in live_at_peak(capture):
        held[holder.category] += holder.bytes

    assert held == {
        Category.PARAMETER: 4 * MIB,
        Category.GRADIENT: 4 * MIB,
        Category.OPTIMIZER_STATE: 8 * MIB,
        Category.TEMPORARY: 5 * MIB,
    }
    assert 21 * MIB == capture.peak_allocated_bytes
    assert 120 * MIB == capture.peak_reserved_bytes


def test_steps_of_annotations(tmp_path):
    """An optimizer that allocates nothing is seen where torch annotates its steps."""
    script = Script().segment(0).alloc(0, MIB, *FORWARD)
    started = script.now + 1
    script.add("snapshot", 0, 0)
    script.alloc(0, MIB, *FORWARD, offset=2 * MIB)
    told = [
        {"name": "Optimizer.step#SGD.step", "stage": stage, "device": 0, "time_us": time_us}
        for stage, time_us in (("START", started), ("END", started + 11))
    ]
    capture = recording_of(script.snapshot(external_annotations=told), tmp_path).capture

    assert [1, 2] == [allocation.step for allocation in capture.allocations]


def test_a_backward_that_no_optimizer_follows(tmp_path):
    """Gradients and what is temporary cannot be told apart: neither is claimed."""
    script = Script().segment(0).segment(1).alloc(0, MIB, *FORWARD).alloc(1, MIB)
    script.oom(90 * MIB, 3 * MIB)
    capture = recording_of(script.snapshot(), tmp_path).capture

    assert [Role.UNMARKED, Role.UNKNOWN] == [allocation.role for allocation in capture.allocations]
    assert Category.OTHER in {holder.category for holder in live_at_peak(capture)}
    assert [0, 0] == [allocation.step for allocation in capture.allocations]


def test_the_buckets_of_ddp(tmp_path):
    """Which its reducer makes anew in the forward of the second step and keeps: no output that somebody forgot."""
    script = training().segment(6).alloc(6, 4 * MIB, of_torch("nn/parallel/distributed.py", "_pre_forward"), SCRIPT)
    bucket = recording_of(script.snapshot(), tmp_path).capture.allocations[-1]

    assert (Role.COMMUNICATION, 2) == (bucket.role, bucket.step)


def test_recomputing(tmp_path):
    """What a checkpoint recomputes in the thread of the backward pass has frames, and is an activation."""
    unpack = of_torch("utils/checkpoint.py", "unpack_hook")
    script = Script().segment(0).alloc(0, MIB, LINEAR, CALL, unpack)
    (allocation,) = recording_of(script.snapshot(), tmp_path).capture.allocations

    assert (Phase.BACKWARD, True, "") == (allocation.phase, allocation.grad_enabled, allocation.source)


def test_before_the_recording(tmp_path):
    """What the end of the recording holds less what it did: with a line only where the block still has one."""
    script = Script()
    script.free(1, 5 * MIB - 100)
    script.alloc(2, 3 * MIB, *FORWARD)
    segments = [
        segment(0, block(4 * MIB, 4 * MIB, frame("train.py", "<module>", 12))),
        segment(1, block(20 * MIB, 0, state="inactive")),
        segment(2, block(3 * MIB, 3 * MIB, *FORWARD), block(17 * MIB, 0, state="inactive")),
    ]
    recording = recording_of(script.snapshot(segments), tmp_path)
    told = [(a.born, a.died, a.allocated_bytes, a.role, a.source) for a in recording.capture.allocations]

    assert told == [
        (0, None, 4 * MIB, Role.UNKNOWN, "train.py:12"),
        (0, 1, 5 * MIB, Role.UNKNOWN, ""),
        (3, None, 3 * MIB, Role.UNMARKED, "train.py:40"),
    ]
    assert (2, 1) == (recording.num_before, recording.num_inexact)
    assert 0 == recording.capture.peak_tick
    assert 9 * MIB == recording.capture.peak_allocated_bytes


def test_sizes_of_blocks(tmp_path):
    """What is left behind a block and is not split off belongs to it; the end of a segment and blocks behind count."""
    script = Script().segment(0, 2 * MIB).segment(1, 20 * MIB).segment(2, 12 * MIB)
    script.alloc(0, 1000)
    script.alloc(1, 19 * MIB + 1)
    script.alloc(2, 2 * MIB)
    script.alloc(2, 2 * MIB, offset=3 * MIB)
    script.free(2, 2 * MIB)
    script.alloc(2, 2 * MIB + 512)
    sizes = [a.allocated_bytes for a in recording_of(script.snapshot(), tmp_path).capture.allocations]

    assert [1024, 20 * MIB, 2 * MIB, 2 * MIB, 3 * MIB] == sizes


def test_settings_change_the_sizes(tmp_path):
    """Rounding to divisions of a power of two."""
    settings = {"roundup_power2_divisions": {str(1 << power): 4 for power in range(16)}, "max_split_size": -1}
    script = Script().segment(0).alloc(0, 5 * MIB + 1)
    snapshot = script.snapshot() | {"allocator_settings": settings}

    assert [6 * MIB] == [a.allocated_bytes for a in recording_of(snapshot, tmp_path).capture.allocations]


def test_expandable_segments(tmp_path):
    """Pages that are mapped one after the other are one range, and each can be given back."""
    script = Script()
    script.add("segment_map", address(0), 20 * MIB).add("segment_map", address(0) + 20 * MIB, 20 * MIB)
    script.alloc(0, 30 * MIB)
    script.add("segment_unmap", address(0) + 32 * MIB, 8 * MIB)
    recording = recording_of(script.snapshot(), tmp_path)

    assert 40 * MIB == recording.capture.peak_reserved_bytes
    assert [(40 * MIB, True)] == [(one.total_bytes, one.is_expandable) for one in recording.segments]
    assert 10 * MIB == recording.largest_free_bytes


def test_a_failure(tmp_path):
    """Is fatal unless something was allocated afterwards; the moment of the segments is its."""
    script = Script().segment(0).alloc(0, 15 * MIB, *FORWARD)
    script.oom(90 * MIB, 3 * MIB, LINEAR, CALL, SCRIPT | {"line": 41})
    recording = recording_of(script.snapshot(), tmp_path)
    (failure,) = recording.capture.failures

    assert (90 * MIB, 15 * MIB, 20 * MIB, 3 * MIB, "train.py:41") == (
        failure.requested_bytes,
        failure.allocated_bytes,
        failure.reserved_bytes,
        failure.free_bytes,
        failure.source,
    )
    assert (0, 3) == (recording.capture.fatal, recording.moment)
    assert 5 * MIB == recording.largest_free_bytes

    went_on = recording_of(script.alloc(0, MIB, offset=16 * MIB).snapshot(), tmp_path)

    assert went_on.capture.fatal is None


def test_several_devices(tmp_path):
    """Each with what it has: a device without anything is left out."""
    first, third = Script().segment(0).alloc(0, MIB), Script().segment(0).alloc(0, 2 * MIB)
    snapshot = {"segments": [segment(9, block(MIB, MIB), device=3)]}
    snapshot["device_traces"] = [first.events, [], third.events, []]
    found = {r.device: r.capture.peak_allocated_bytes for r in recordings_of(snapshot, tmp_path)}

    assert {0: MIB, 2: 2 * MIB, 3: MIB} == found


def test_streams_are_numbered(tmp_path):
    """A stream is told as the address of something: the first one seen is 0."""
    script = Script().segment(0)
    for offset, stream in ((0, 0x7F0000001000), (4, 0), (8, 0x7F0000001000)):
        script.add("alloc", address(0) + offset * MIB, MIB, stream=stream)
    recording = recording_of(script.snapshot(), tmp_path)

    assert [1, 0, 1] == [allocation.stream for allocation in recording.capture.allocations]
