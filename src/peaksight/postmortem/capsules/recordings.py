"""What a capsule tells, as a recording: its snapshot, with what the snapshot itself does not say."""

from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from peaksight.postmortem.capsules.loading import load_capsule
from peaksight.postmortem.log import read_log
from peaksight.postmortem.snapshots.places import Names, Place, place_of, printable
from peaksight.postmortem.snapshots.recordings import recordings_of
from peaksight.postmortem.snapshots.tables import Frame
from peaksight.records import Capture, Failure, Phase
from peaksight.records.capsule import Capsule, CapsuleFailure, StackFrame
from peaksight.records.capsule_report import OpenedCapsule
from peaksight.records.recording import Recording


def read_capsule(path: Path) -> OpenedCapsule:
    """The capsule at `path`, as far as it goes.

    Raises:
        CaptureFileError: it is none, of a later version, or cut short before it says anything.
    """
    capsule, loaded, names = load_capsule(path)
    failure = capsule.failure
    stack, main = _place(failure.stack), _place(failure.main_stack)
    lines = Names((stack, main))
    is_backward = stack.phase is Phase.BACKWARD or not failure.stack
    told = _Told(
        at=lines.line(stack.source),
        backward_at=lines.line(main.source or stack.source) if is_backward else "",
        phase=Phase.BACKWARD if is_backward else stack.phase or _of_modules(stack),
    )
    recordings = recordings_of(loaded, path.name, names) if loaded else ()
    return OpenedCapsule(
        capsule=capsule,
        recordings=tuple(_with_failure(each, capsule, told) for each in recordings),
        at=told.at,
        backward_at=told.backward_at,
        phase=told.phase,
        message=read_log(BytesIO(failure.message.encode()), path.name),
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """Where the stacks of the failure lead to."""

    at: str
    backward_at: str
    phase: Phase


def _of_modules(place: Place) -> Phase:
    return Phase.FORWARD if place.runs_module else Phase.OTHER


def _place(stack: tuple[StackFrame, ...]) -> Place:
    return place_of(tuple(Frame(frame.filename, frame.line, frame.name) for frame in stack))


def _with_failure(recording: Recording, capsule: Capsule, told: _Told) -> Recording:
    """The failure as the capsule has it, on the card that it was of; what the script got over ended nothing."""
    capture, failure = recording.capture, capsule.failure
    if recording.device != failure.card.device:
        return recording
    known = capture.failures or (_failure_without_event(recording, failure, told),)
    last = known[-1]
    offset = failure.step - last.step if last.step else 0
    capture = _shifted(capture, offset)
    last = replace(
        last,
        message=printable(failure.message),
        step=failure.step,
        module=printable(failure.modules[-1]) if failure.modules else "",
        backward_source=told.backward_at,
        source=last.source or told.at,
        free_bytes=failure.card.free_bytes if failure.card.free_bytes is not None else last.free_bytes,
    )
    went_on = capsule.ending is not None and not capsule.ending.is_out_of_memory
    failures = (*known[:-1], last)
    return replace(
        recording, capture=replace(capture, failures=failures, fatal=None if went_on else len(failures) - 1)
    )  # fmt: skip


def _failure_without_event(recording: Recording, failure: CapsuleFailure, told: _Told) -> Failure:
    """Where no history was recorded, or a library failed and not the allocator: the moment is that of the snapshot."""
    capture, card = recording.capture, failure.card
    allocated = sum(a.allocated_bytes for a in capture.allocations if a.died is None)
    return Failure(
        tick=recording.num_events,
        message=failure.message,
        requested_bytes=failure.requested_bytes or 0,
        allocated_bytes=allocated,
        reserved_bytes=sum(segment.total_bytes for segment in recording.segments)
        if card.reserved_bytes is None
        else card.reserved_bytes,
        step=0,
        phase=told.phase,
        op="",
        module="",
        source=told.at,
        library="",
        backward_source=told.backward_at,
        free_bytes=card.free_bytes,
    )


def _shifted(capture: Capture, offset: int) -> Capture:
    """`capture` with steps counted from the beginning of the run instead of the recording."""
    if offset <= 0:
        return capture
    return replace(
        capture,
        allocations=tuple(replace(a, step=a.step + offset) if a.step else a for a in capture.allocations),
        steps=tuple(replace(step, step=step.step + offset) for step in capture.steps),
        failures=tuple(replace(f, step=f.step + offset) if f.step else f for f in capture.failures),
    )
