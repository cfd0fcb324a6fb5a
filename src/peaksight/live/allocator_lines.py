"""A snapshot of the allocator as lines of a capsule: every frame and stack once, the latest events first.

Cut short anywhere, what is there is a snapshot with a shorter history: `docs/capsule-format.md`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peaksight.records.capsule import CapsuleHolder

ROWS_A_LINE = 5000
NUM_HOLDERS = 200
_LIBRARY = re.compile(r"(?:.*[/\\])?(?:site-packages|dist-packages|lib[/\\]python\d[\d.]*)[/\\]|<(?!ipython)")

Line = tuple[str, dict[str, Any]]
Frames = Sequence[Mapping[str, Any]]


def holders_of(snapshot: Mapping[str, Any], device: int, names: Mapping[int, str]) -> list[CapsuleHolder]:
    """What is alive on `device` by module and line, largest first; `names` has the modules of addresses."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for segment in snapshot.get("segments", ()):
        if segment.get("device", 0) != device:
            continue
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                held = sums[names.get(block.get("address", 0), ""), source_of(block.get("frames") or ())]
                held[0] += block["size"]
                held[1] += 1
    rows = sorted(sums.items(), key=lambda row: -row[1][0])
    return [CapsuleHolder(bytes=b, count=n, module=m, source=s) for (m, s), (b, n) in rows[:NUM_HOLDERS]]


def lines_of(snapshot: Mapping[str, Any]) -> Iterator[Line]:
    """The settings, the segments of all devices, then their events, the last ones first."""
    stacks = _Stacks()
    segments = snapshot.get("segments", ())
    yield "settings", {"settings": _plain(snapshot.get("allocator_settings", {})), "num_segments": len(segments)}
    for segment in segments:
        row = _segment(segment, stacks)
        yield from stacks.new()
        yield "segment", row
    yield from _annotations(snapshot)
    for device, trace in enumerate(snapshot.get("device_traces", ())):
        for end in range(len(trace), 0, -ROWS_A_LINE):
            events = _events(device, trace[max(0, end - ROWS_A_LINE) : end], stacks)
            yield from stacks.new()
            yield "events", events


class _Stacks:
    """Numbers for stacks; torch hands out one dictionary for each different frame."""

    def __init__(self) -> None:
        self._frames: dict[int, int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._new_frames: list[tuple[str, int, str]] = []
        self._new_stacks: list[tuple[int, ...]] = []

    def number(self, frames: Frames | None) -> int:
        """-1 for None, as of a block without a stack."""
        if frames is None:
            return -1
        key = tuple(map(self._frame, frames))
        if key not in self._stacks:
            self._stacks[key] = len(self._stacks)
            self._new_stacks.append(key)
        return self._stacks[key]

    def new(self) -> Iterator[Line]:
        """What was numbered since the last call, as a line."""
        if self._new_stacks:
            yield "stacks", {"frames": self._new_frames, "stacks": self._new_stacks}
            self._new_frames, self._new_stacks = [], []

    def _frame(self, frame: Mapping[str, Any]) -> int:
        number = self._frames.get(id(frame))
        if number is None:
            number = self._frames[id(frame)] = len(self._frames)
            self._new_frames.append((frame["filename"], frame["line"], frame["name"]))
        return number


def _segment(segment: Mapping[str, Any], stacks: _Stacks) -> dict[str, Any]:
    blocks = segment["blocks"]
    return {
        "device": segment.get("device", 0),
        "address": segment["address"],
        "total_size": segment["total_size"],
        "is_expandable": bool(segment.get("is_expandable", False)),
        "addresses": [block.get("address", 0) for block in blocks],
        "sizes": [block["size"] for block in blocks],
        "requested": [block.get("requested_size", block["size"]) for block in blocks],
        "states": [block["state"] for block in blocks],
        "stacks": [stacks.number(block.get("frames")) for block in blocks],
    }


def _events(device: int, trace: Sequence[Mapping[str, Any]], stacks: _Stacks) -> dict[str, Any]:
    """In the order of time; the address of `oom` is what the device had free."""
    return {
        "device": device,
        "actions": [event["action"] for event in trace],
        "addresses": [event.get("addr") or event.get("device_free") or 0 for event in trace],
        "sizes": [event.get("size", 0) for event in trace],
        "streams": [event.get("stream", 0) for event in trace],
        "stacks": [stacks.number(event.get("frames")) for event in trace],
        "times_us": [event.get("time_us", 0) for event in trace],
    }


def _annotations(snapshot: Mapping[str, Any]) -> Iterator[Line]:
    """Where optimizers stepped, which tells steps apart."""
    found = [a for a in snapshot.get("external_annotations", ()) if a["name"].startswith("Optimizer.step")]
    if found:
        keys = ("name", "stage", "device", "time_us")
        yield "annotations", {"annotations": [{key: a[key] for key in keys if key in a} for a in found]}


def _plain(value: Any) -> Any:
    """`value` as JSON can have it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def source_of(frames: Frames) -> str:
    """The innermost line that is no library's; empty where there is none."""
    frame = next((frame for frame in frames if not _LIBRARY.match(frame["filename"])), None)
    return f"{frame['filename']}:{frame['line']}" if frame else ""
