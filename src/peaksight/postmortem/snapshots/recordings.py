"""Recordings: the captures of a snapshot's devices, and what lay where at the moment that matters."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from peaksight.errors import SnapshotError
from peaksight.postmortem.snapshots.captures import Known, capture_of, known_of
from peaksight.postmortem.snapshots.lives import ALIVE, Lives, follow
from peaksight.postmortem.snapshots.loading import Loaded, Progress, load_snapshot
from peaksight.postmortem.snapshots.places import printable
from peaksight.postmortem.snapshots.ranges import Ranges
from peaksight.postmortem.snapshots.rewinding import rewind
from peaksight.postmortem.snapshots.tables import Did, Stacks, Trace
from peaksight.records import Allocation
from peaksight.records.capsule import TensorName
from peaksight.records.recording import CurvePoint, HeldSegment, Recording

_NUM_POINTS = 400


def read_snapshot(path: Path, progress: Progress | None = None) -> tuple[Recording, ...]:
    """A recording of each device that the snapshot `path` has anything of; `progress` hears from 0 to 1.

    Raises:
        SnapshotError: `path` is no snapshot, or one of nothing.
    """
    found = recordings_of(load_snapshot(path, progress), path.name)
    if not found:
        raise SnapshotError(
            f"The snapshot '{path}' is empty: no device had memory and nothing was recorded; call "
            "torch.cuda.memory._record_memory_history() before the work, and dump after it.",
            slug="empty-snapshot",
        )
    return found


def recordings_of(loaded: Loaded, name: str, names: Mapping[int, TensorName] | None = None) -> tuple[Recording, ...]:
    """A recording of each device that `loaded` has anything of, called `name`; `names` are of tensors by address."""
    known = known_of(loaded.stacks)
    devices = sorted(set(loaded.segments) | set(loaded.traces))
    return tuple(_recording(loaded, known, device, name, names or {}) for device in devices)


def _recording(loaded: Loaded, known: Known, device: int, name: str, names: Mapping[int, TensorName]) -> Recording:
    trace = loaded.traces.get(device) or Trace(Stacks())
    beginning = rewind(trace, loaded.segments.get(device, []))
    first_ranges = list(beginning.ranges)
    lives = follow(trace, beginning, loaded.settings)
    capture = capture_of(lives, known, trace, loaded.annotations.get(device, []), name)
    capture = replace(capture, device=device, allocations=_with_names(capture.allocations, lives, names))
    moment = capture.failures[-1].tick if capture.failures else capture.peak_tick
    alive = _alive(lives, moment)
    ranges = _ranges_at(trace, first_ranges, moment)
    return Recording(
        device=device,
        capture=capture,
        curve=tuple(_curve(lives)),
        moment=moment,
        segments=tuple(_segments(ranges, alive)),
        largest_free_bytes=max(_free_pieces(ranges, alive, lives), default=0),
        num_events=len(trace),
        num_before=lives.num_before,
        num_inexact=lives.num_inexact,
        has_stacks=any(map(loaded.stacks.of, set(lives.stack))),
        inner_lines=tuple(known.place(stack).inner for stack in lives.stack),
        settings=loaded.settings_text,
        script=known.script,
    )


def _with_names(
    allocations: tuple[Allocation, ...], lives: Lives, names: Mapping[int, TensorName]
) -> tuple[Allocation, ...]:
    """`allocations` with the role and the module of those alive at the end whose address is in `names`."""
    if not names:
        return allocations
    return tuple(
        _named(allocation, names.get(address)) if allocation.died is None else allocation
        for allocation, address in zip(allocations, lives.address, strict=True)
    )


def _named(allocation: Allocation, name: TensorName | None) -> Allocation:
    return allocation if name is None else replace(allocation, role=name.role, module=printable(name.module))


def _curve(lives: Lives) -> Iterator[CurvePoint]:
    """Parts of equal length, or one for each tick of a short recording."""
    num_ticks = len(lives.allocated_after)
    num_points = min(_NUM_POINTS, num_ticks)
    for first, end in pairwise(num_ticks * point // num_points for point in range(num_points + 1)):
        allocated, reserved = lives.most_between(first, end - 1)
        yield CurvePoint(allocated_bytes=allocated, reserved_bytes=reserved)


def _alive(lives: Lives, moment: int) -> list[tuple[int, int]]:
    """Address and row of what is alive at `moment`, by address."""
    rows = zip(lives.born, lives.died, strict=True)
    alive = (row for row, (born, died) in enumerate(rows) if born <= moment and (died == ALIVE or died > moment))
    return sorted((lives.address[row], row) for row in alive)


def _ranges_at(trace: Trace, first_ranges: Iterable[tuple[int, int, bool]], moment: int) -> Ranges:
    ranges = Ranges()
    for start, end, is_expandable in first_ranges:
        ranges.add(start, end - start, is_expandable=is_expandable)
    for _, event in zip(range(moment), trace, strict=False):
        match event.action:
            case Did.SEGMENT_ALLOC | Did.SEGMENT_MAP:
                ranges.add(event.address, event.nbytes, is_expandable=event.action == Did.SEGMENT_MAP)
            case Did.SEGMENT_FREE | Did.SEGMENT_UNMAP:
                ranges.remove(event.address, event.nbytes)
    return ranges


def _within(alive: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    return alive[bisect_left(alive, (start,)) : bisect_left(alive, (end,))]


def _segments(ranges: Ranges, alive: list[tuple[int, int]]) -> Iterator[HeldSegment]:
    for start, end, is_expandable in ranges:
        rows = tuple(row for _, row in _within(alive, start, end))
        yield HeldSegment(address=start, total_bytes=end - start, is_expandable=is_expandable, allocations=rows)


def _free_pieces(ranges: Ranges, alive: list[tuple[int, int]], lives: Lives) -> Iterator[int]:
    """The sizes of what is free between, before and behind what is alive."""
    for start, end, _ in ranges:
        at = start
        for address, row in _within(alive, start, end):
            yield address - at
            at = address + lives.allocated[row]
        yield end - at
