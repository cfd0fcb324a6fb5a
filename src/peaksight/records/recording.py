"""What a memory snapshot of a real run holds, and the answer of `peaksight read` to one."""

from dataclasses import dataclass

from peaksight.records.capture import Capture
from peaksight.records.course import Course
from peaksight.records.reading import Cause
from peaksight.records.report import Holder, OutOfMemory, Peak, StepReport


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSegment:
    """A segment at one moment; `allocations` are places in `Capture.allocations` of what was alive in it."""

    address: int
    total_bytes: int
    is_expandable: bool
    allocations: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The most that was allocated and reserved in one of equally many parts of the recorded events."""

    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a snapshot tells of one device.

    Ticks of `capture` count the events of its trace, 0 being what was there before: `num_before` allocations, of which
    `num_inexact` may have had larger blocks. Its steps count from the beginning of the recording and are empty where
    nothing shows them; `step` of an allocation is then 0. `segments` are those at `moment`: when the card could not
    serve a request for the last time, else when most was allocated; `largest_free_bytes` is the largest free piece in
    them. `has_stacks` is whether any allocation has one. `inner_lines` has for each allocation the innermost line
    outside of torch if that is a library's (`transformers/models/gpt2/modeling_gpt2.py:240`), else an empty text.
    `script` is the name of the file that the stacks begin in.
    """

    device: int
    capture: Capture
    curve: tuple[CurvePoint, ...]
    moment: int
    segments: tuple[HeldSegment, ...]
    largest_free_bytes: int
    num_events: int
    num_before: int
    num_inexact: int
    has_stacks: bool
    inner_lines: tuple[str, ...]
    settings: str
    script: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGpu:
    """What a snapshot shows of the card: in an out-of-memory event what PyTorch could have had, else nothing."""

    name: str
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A line whose blocks keep segments from being given back.

    `held_bytes` are those of its blocks there, `num_segments` how many it keeps, `kept_bytes` what is free in them, and
    `alone_bytes` what is free in those that nothing else keeps.
    """

    source: str
    category: str
    held_bytes: int
    count: int
    num_segments: int
    kept_bytes: int
    alone_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedSegment:
    """A segment that is partly free, and the largest of what is alive in it as `file.py:line`."""

    address: int
    total_bytes: int
    free_bytes: int
    holders: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    """What was reserved and not allocated, at one moment.

    `unused_bytes` is all of it: `inactive_split_bytes` in segments that something alive keeps, the rest in segments
    that could be given back. `at_failure` tells that the moment is that of the request that failed.
    """

    at_failure: bool
    reserved_bytes: int
    allocated_bytes: int
    unused_bytes: int
    inactive_split_bytes: int
    largest_free_bytes: int
    num_segments: int
    pins: tuple[Pin, ...]
    segments: tuple[PinnedSegment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDevice:
    """The peak of a device that the report is not about."""

    device: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingReport:
    """The answer for a memory snapshot; the names are those of `Report`, what no snapshot tells is None or empty.

    `live_in_libraries` is what of `live_at_peak` a library allocated for the person's line: its innermost line outside
    of torch is their `source`. `cannot_tell` has what the snapshot leaves open, in sentences. `timeline` is the whole
    recording, and so is `course`, whose `failed_tick` is that of `oom`. `script` is the file that the stacks begin in.
    `causes` are why it ran out of memory, and `run_next` the command that shows more.
    """

    schema: str
    file: str
    device: int
    gpu: KnownGpu
    fits: bool | None
    peak: Peak
    oom: OutOfMemory | None
    caught_ooms: int
    steps: tuple[StepReport, ...]
    live_at_peak: tuple[Holder, ...]
    live_in_libraries: tuple[Holder, ...]
    fragmentation: Fragmentation
    timeline: tuple[CurvePoint, ...]
    num_events: int
    num_allocations: int
    before_recording_bytes: int
    allocator_settings: str
    other_devices: tuple[OtherDevice, ...]
    cannot_tell: tuple[str, ...]
    script: str
    causes: tuple[Cause, ...] = ()
    run_next: str = ""
    course: Course | None = None
