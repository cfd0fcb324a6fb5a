"""The events, blocks and stacks of a snapshot as columns, filled while it is read."""

from array import array
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from peaksight.postmortem.snapshots.plain_opcodes import Malformed

NO_STACK: Final = -1
# Far more than any device has.
MOST_BYTES: Final = 1 << 48


class Did(IntEnum):
    """The actions of trace entries that change what is alive or reserved, and the one that failed."""

    OTHER = 0
    ALLOC = 1
    FREE_REQUESTED = 2
    FREE_COMPLETED = 3
    SEGMENT_ALLOC = 4
    SEGMENT_FREE = 5
    SEGMENT_MAP = 6
    SEGMENT_UNMAP = 7
    OOM = 8


_ACTIONS: Final[dict[Any, int]] = {
    "alloc": Did.ALLOC,
    "free_requested": Did.FREE_REQUESTED,
    "free_completed": Did.FREE_COMPLETED,
    "segment_alloc": Did.SEGMENT_ALLOC,
    "segment_map": Did.SEGMENT_MAP,
    "segment_free": Did.SEGMENT_FREE,
    "segment_unmap": Did.SEGMENT_UNMAP,
    "oom": Did.OOM,
}


class Frame(NamedTuple):
    """One frame of a stack."""

    filename: str
    line: int
    name: str


class Event(NamedTuple):
    """One trace entry: `address` is the free bytes of the device for OOM, `stack` a number in `Stacks`."""

    action: int
    address: int
    nbytes: int
    stream: int
    stack: int
    time_us: int


class Block(NamedTuple):
    """One block of a segment; `address` is None in formats before torch 2.1."""

    address: int | None
    nbytes: int
    requested_bytes: int
    is_active: bool
    is_allocated: bool
    stack: int


class Annotation(NamedTuple):
    """Where the script, or torch, began or ended what it calls `name`."""

    name: str
    stage: str
    device: int
    time_us: int


class Stacks:
    """Every different stack once, innermost frame first, under its number."""

    def __init__(self) -> None:
        """None yet."""
        self.frames: list[Frame] = []
        self.stacks: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._frame_numbers: dict[Frame, int] = {}
        # By identity; what is known is kept, so that no other object takes its place.
        self._known: dict[int, tuple[int, Any]] = {}

    def number(self, frames: Any) -> int:
        """The number of a list of frames; NO_STACK for None."""
        if frames is None:
            return NO_STACK
        known = self._known.get(id(frames))
        if known is None:
            numbers = tuple(map(self._frame_number, checked(frames, list)))
            known = self._known[id(frames)] = self._numbered(numbers), frames
        return known[0]

    def of(self, number: int) -> tuple[Frame, ...]:
        """The frames of a stack."""
        return () if number == NO_STACK else tuple(self.frames[frame] for frame in self.stacks[number])

    def _numbered(self, numbers: tuple[int, ...]) -> int:
        if numbers not in self._numbers:
            self._numbers[numbers] = len(self.stacks)
            self.stacks.append(numbers)
        return self._numbers[numbers]

    def _frame_number(self, told: Any) -> int:
        known = self._known.get(id(told))
        if known is None:
            known = self._known[id(told)] = self._of_frame(checked(told, dict)), told
        return known[0]

    def _of_frame(self, told: dict[str, Any]) -> int:
        frame = Frame(checked(told["filename"], str), checked(told["line"], int), checked(told["name"], str))
        if frame not in self._frame_numbers:
            self._frame_numbers[frame] = len(self.frames)
            self.frames.append(frame)
        return self._frame_numbers[frame]


class Trace:
    """The events of one device, in order."""

    def __init__(self, stacks: Stacks) -> None:
        """None yet; `stacks` has those of all devices."""
        self._stacks = stacks
        self._streams: dict[int, int] = {}
        self._actions = array("b")
        self._columns = tuple(array(kind) for kind in "Qqqiq")

    def __len__(self) -> int:
        """How many."""
        return len(self._actions)

    def __iter__(self) -> Iterator[Event]:
        """The first one first."""
        return map(Event, self._actions, *self._columns)

    def __reversed__(self) -> Iterator[Event]:
        """The last one first."""
        return map(Event, *map(reversed, (self._actions, *self._columns)))

    def check(self) -> None:
        """Raise Malformed where a size is none."""
        sizes = self._columns[1]
        if sizes and not 0 <= min(sizes) <= max(sizes) < MOST_BYTES:
            raise Malformed("one of its events has an absurd size")

    @property
    def times_us(self) -> Sequence[int]:
        """When each event was, in microseconds since the epoch; 0 where the release does not tell."""
        return self._columns[4]

    def has(self, action: Did) -> bool:
        """Whether any event is an `action`."""
        return action in self._actions

    def extend(self, items: list[Any]) -> None:
        """Append trace entries as torch has them."""
        address, nbytes, stream, stack, time_us = (column.append for column in self._columns)
        actions, numbers, streams = self._actions.append, self._stacks.number, self._streams
        for item in items:
            actions(_ACTIONS.get(item["action"], Did.OTHER))
            # cudaMalloc, free memory for `oom`, nothing for `snapshot` in some releases.
            address(item.get("addr") or item.get("device_free") or 0)
            nbytes(item.get("size", 0))
            stream(streams.setdefault(item.get("stream", 0), len(streams)))
            stack(numbers(item.get("frames")))
            time_us(item.get("time_us", 0))


class TableSink:
    """Turns the items of a snapshot's lists into rows of the tables above, by what they look like."""

    def __init__(self) -> None:
        """Nothing taken yet."""
        self.stacks = Stacks()
        self.annotations: list[Annotation] = []

    def take(self, target: list[Any], items: list[Any]) -> bool:
        """Take trace entries, blocks and annotations; `target` then has one Trace, or one Block each."""
        first = items[0]
        if type(first) is not dict:
            return False
        if "action" in first:
            if not target:
                target.append(Trace(self.stacks))
            checked(target[0], Trace).extend(items)
            return True
        if "state" in first:
            target.extend(map(self._block, items))
            return True
        if "stage" in first and "time_us" in first:
            self.annotations += map(_annotation, items)
            return True
        return False

    def _block(self, told: dict[str, Any]) -> Block:
        """Before torch 2.1 a block has a `history`, whose first entry is the latest."""
        latest = (told.get("history") or [{}])[0]
        size = checked(told["size"], int)
        requested = checked(told.get("requested_size", latest.get("real_size", size)), int)
        if not 0 <= requested <= max(size, requested) < MOST_BYTES or size <= 0:
            raise Malformed("one of its blocks has an absurd size")
        frames = told["frames"] if "frames" in told else latest.get("frames")
        return Block(
            address=told.get("address", latest.get("addr")),
            nbytes=size,
            requested_bytes=requested,
            is_active=told["state"] != "inactive",
            is_allocated=told["state"] == "active_allocated",
            stack=self.stacks.number(frames),
        )


def _annotation(told: dict[str, Any]) -> Annotation:
    return Annotation(
        checked(told["name"], str),
        checked(told["stage"], str),
        checked(told.get("device", 0), int),
        checked(told["time_us"], int),
    )


def checked(value: Any, kind: type) -> Any:
    """`value`, which must be of `kind`."""
    if not isinstance(value, kind):
        raise Malformed(f"it has a {type(value).__name__} where a snapshot has a {kind.__name__}")
    return value
