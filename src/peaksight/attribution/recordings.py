"""Puts the answer for a memory snapshot together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peaksight.attribution.course import course_of
from peaksight.attribution.failing import out_of_memory
from peaksight.attribution.fragmentation import fragmentation
from peaksight.attribution.levels import Levels
from peaksight.attribution.live_set import alive_at, is_alive, live_at_peak, live_set
from peaksight.records import Allocation, Capture, Holder, Peak, Phase, StepReport
from peaksight.records.recording import KnownGpu, OtherDevice, Recording, RecordingReport
from peaksight.units import format_bytes

RECORDING_SCHEMA = "peaksight.recording/1"


def build_recording_report(recordings: Sequence[Recording], file: str) -> RecordingReport:
    """The report of the device that ran out of memory, else of that with the largest peak; `file` is the snapshot."""
    recording = max(recordings, key=_urgency)
    capture = recording.capture
    alive = tuple(alive_at(capture, capture.peak_tick))
    return RecordingReport(
        schema=RECORDING_SCHEMA,
        file=file,
        device=recording.device,
        gpu=_gpu(capture),
        fits=None if capture.fatal is None else False,
        peak=_peak(capture),
        oom=out_of_memory(capture, capture.failures[-1]) if capture.failures else None,
        caught_ooms=len(capture.failures) - (capture.fatal is not None),
        steps=tuple(
            StepReport(peak_allocated_bytes=step.peak_allocated_bytes, peak_reserved_bytes=step.peak_reserved_bytes)
            for step in capture.steps
            if step.complete
        ),
        live_at_peak=live_at_peak(capture),
        live_in_libraries=_in_libraries(recording),
        fragmentation=fragmentation(recording),
        timeline=recording.curve,
        num_events=recording.num_events,
        num_allocations=len(capture.allocations),
        before_recording_bytes=sum(a.allocated_bytes for a in alive if a.born == 0),
        allocator_settings=recording.settings,
        other_devices=tuple(_other(other) for other in recordings if other is not recording),
        script=recording.script,
        cannot_tell=tuple(_cannot_tell(recording, alive)),
        course=course_of(capture, Levels(capture), capture.failures[-1].tick if capture.failures else None),
    )


def _urgency(recording: Recording) -> tuple[bool, bool, int]:
    capture = recording.capture
    return capture.fatal is not None, bool(capture.failures), capture.peak_reserved_bytes


def _other(recording: Recording) -> OtherDevice:
    return OtherDevice(
        device=recording.device,
        peak_allocated_bytes=recording.capture.peak_allocated_bytes,
        peak_reserved_bytes=recording.capture.peak_reserved_bytes,
    )


def _in_libraries(recording: Recording) -> tuple[Holder, ...]:
    """What libraries allocated of the live set, by their lines."""
    capture = recording.capture
    pairs = zip(capture.allocations, recording.inner_lines, strict=True)
    inside = ((allocation, inner) for allocation, inner in pairs if inner and is_alive(allocation, capture.peak_tick))
    theirs = tuple(replace(allocation, source=inner) for allocation, inner in inside)
    return live_set(replace(capture, allocations=theirs), capture.peak_tick)


def _gpu(capture: Capture) -> KnownGpu:
    """What the last failure shows: the allocator could have had what it had, and what was free."""
    if not capture.failures:
        return KnownGpu(name="", total_bytes=None, usable_bytes=None)
    last = capture.failures[-1]
    return KnownGpu(name="", total_bytes=None, usable_bytes=last.reserved_bytes + (last.free_bytes or 0))


def _peak(capture: Capture) -> Peak:
    maker = next((a for a in capture.allocations if a.born == capture.peak_tick and a.born), None)
    return Peak(
        allocated_bytes=capture.peak_allocated_bytes,
        reserved_bytes=capture.peak_reserved_bytes,
        requested_bytes=capture.peak_requested_bytes,
        process_bytes=None,
        step=maker.step if maker else 0,
        phase=maker.phase if maker else Phase.OTHER,
        at=maker.source if maker else "",
    )


def _cannot_tell(recording: Recording, alive: Sequence[Allocation]) -> Iterator[str]:
    """What the snapshot leaves open, and how to record what decides it."""
    capture = recording.capture
    if not recording.num_events:
        yield (
            "What happened before: no event was recorded, so the peak is that of the moment of the snapshot. Call "
            "torch.cuda.memory._record_memory_history() before the work."
        )
    if not recording.has_stacks:
        yield "Which lines hold memory: no stack was recorded. Leave context='all' as it is."
    before = [a for a in alive if a.born == 0 and not a.source]
    if recording.num_events and before:
        yield (
            f"Where {format_bytes(sum(a.allocated_bytes for a in before))} at the peak come from: they are older than "
            "the recording. Start it before the model is made, or give it more max_entries."
        )
    backward = sum(a.allocated_bytes for a in alive if a.phase is Phase.BACKWARD and not a.source)
    if backward:
        yield (
            f"Which lines of the forward {format_bytes(backward)} of the backward pass belong to: it runs in a thread "
            "without Python frames."
        )
    if recording.num_events and not any(step.complete for step in capture.steps):
        yield "Which step this is: no optimizer stepped during the recording."
    elif recording.num_before:
        yield "Which step of the training this is: steps are counted from the beginning of the recording."
    if recording.num_inexact:
        yield (
            f"How large {recording.num_inexact} blocks were that are older than the recording and ended in it: they "
            "are taken as what was asked for, rounded up."
        )
    if not capture.failures:
        yield "Whether it ran out of memory: the snapshot has no such event."
    yield "The card, the release of torch, and what the process held outside PyTorch's allocator."
