"""From the file of a capsule to its records and to what a snapshot would hold; docs/capsule-format.md."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from peaksight import __version__
from peaksight.errors import CaptureFileError
from peaksight.postmortem.capsules.lines import (
    BEGINNING,
    KINDS,
    AllocatorSettings,
    Annotations,
    End,
    Events,
    Head,
    Holders,
    Line,
    NewStacks,
    Segment,
    Steps,
    TensorNames,
    lines_in,
)
from peaksight.postmortem.snapshots.loading import Loaded, loaded_from
from peaksight.postmortem.snapshots.places import printable
from peaksight.postmortem.snapshots.plain_opcodes import Malformed
from peaksight.postmortem.snapshots.tables import TableSink
from peaksight.records.capsule import (
    CAPSULE_FORMAT,
    CAPSULE_VERSION,
    Capsule,
    CapsuleEnding,
    CapsuleFailure,
    CapsuleRun,
    TensorName,
)


def is_capsule(path: Path) -> bool:
    """Whether `path` begins as a capsule does."""
    try:
        return next(lines_in(path), b"").startswith(BEGINNING)
    except OSError:
        return False


def load_capsule(path: Path) -> tuple[Capsule, Loaded | None, dict[int, TensorName]]:
    """The capsule at `path` as far as it goes, what its snapshot holds, and the names of tensors by address.

    There is no snapshot where some of the segments are missing, or where it makes no sense.

    Raises:
        CaptureFileError: it is none, of a later version, or cut short before it says anything.
    """
    found = _Found()
    try:
        lines = lines_in(path)
        _check_head(path, next(lines, b""))
        for line in lines:
            found.take(line)
    except OSError as error:
        raise CaptureFileError(
            f"Can't read the capsule '{path}': {error.strerror}; name another one.", slug="bad-capsule"
        ) from error
    except (msgspec.MsgspecError, Malformed, LookupError, TypeError, ValueError):
        pass  # what comes before it counts
    capsule = found.capsule(path)
    try:
        return capsule, found.loaded(), found.names
    except (Malformed, LookupError, TypeError, ValueError, OverflowError):
        return replace(capsule, is_whole=False), None, found.names


def _check_head(path: Path, line: bytes) -> None:
    try:
        head = msgspec.json.decode(msgspec.json.decode(line, type=Line).content, type=Head)
    except msgspec.MsgspecError as error:
        raise CaptureFileError(
            f"'{path}' is no capsule ({error}): give a file that `peaksight watch` wrote when memory ran out.",
            slug="bad-capsule",
        ) from error
    if head.format != CAPSULE_FORMAT or head.version > CAPSULE_VERSION:
        raise CaptureFileError(
            f"Can't read the capsule '{path}': it is of version {head.version}, written by peaksight "
            f"{head.peaksight}, and this is {__version__}, which reads up to version {CAPSULE_VERSION}: update "
            "peaksight.",
            slug="capsule-version",
        )


def _shown(content: Any) -> Any:
    """`content` with texts that can play no tricks in a terminal: a capsule is somebody else's file."""
    return msgspec.convert(_printable(msgspec.to_builtins(content)), type=type(content))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return "\n".join(map(printable, value.split("\n")))
    if isinstance(value, dict):
        return {_printable(key): _printable(inner) for key, inner in value.items()}
    return [_printable(inner) for inner in value] if isinstance(value, list | tuple) else value


class _Found:
    """What the lines so far say."""

    def __init__(self) -> None:
        self.names: dict[int, TensorName] = {}
        self._about: dict[str, Any] = {}
        self._stacks: list[list[dict[str, Any]]] = []
        self._frames: list[dict[str, Any]] = []
        self._segments: list[dict[str, Any]] = []
        self._traces: dict[int, list[list[dict[str, Any]]]] = {}
        self._annotations: list[dict[str, Any]] = []
        self._settings: dict[str, Any] = {}
        self._num_segments: int | None = None
        self._is_whole = self._left_out = False

    def take(self, text: bytes) -> None:
        """One line; those of kinds that this release does not know are skipped."""
        line = msgspec.json.decode(text, type=Line)
        if line.line not in KINDS:
            return
        content: Any = msgspec.json.decode(line.content, type=KINDS[line.line])
        match content:
            case CapsuleRun() | CapsuleFailure() | CapsuleEnding():
                self._about[line.line] = _shown(content)
            case Steps(steps):
                self._about["steps"] = steps
            case Holders():
                self._about["holders"] = _shown(content).holders
            case TensorNames(names):
                self.names = {name.address: name for name in names}
            case AllocatorSettings(settings, num_segments):
                self._settings, self._num_segments = settings, num_segments
            case NewStacks():
                self._take_stacks(content)
            case Segment():
                self._segments.append(self._segment(content))
            case Events():
                self._traces.setdefault(content.device, []).append(self._events(content))
            case Annotations(annotations):
                self._annotations = annotations
            case End(left_out):
                self._is_whole, self._left_out = True, left_out

    def capsule(self, path: Path) -> Capsule:
        """The records; CaptureFileError where it is cut short before them."""
        if not {"run", "failure"} <= set(self._about):
            raise CaptureFileError(
                f"The capsule '{path}' is cut short before it says what failed: read the log of that rank instead.",
                slug="bad-capsule",
            )
        return Capsule(file=path.name, is_whole=self._is_whole, left_out=self._left_out, **self._about)

    def loaded(self) -> Loaded | None:
        """The snapshot, as that of a file; the events that come last were written first. None without all segments."""
        if len(self._segments) != self._num_segments:
            return None
        sink = TableSink()
        told: dict[str, Any] = {"segments": [], "device_traces": [], "allocator_settings": self._settings}
        for segment in self._segments:
            blocks: list[Any] = []
            if segment["blocks"]:
                sink.take(blocks, segment["blocks"])
            told["segments"].append({**segment, "blocks": blocks})
        for device in range(max(self._traces, default=-1) + 1):
            trace: list[Any] = []
            for events in reversed(self._traces.get(device, [])):
                if events:
                    sink.take(trace, events)
            told["device_traces"].append(trace)
        if self._annotations:
            sink.take([], self._annotations)
        return loaded_from(told, sink)

    def _take_stacks(self, told: NewStacks) -> None:
        """Those with a number that is none are another file's."""
        self._frames += [{"filename": file, "line": line, "name": name} for file, line, name in told.frames]
        for stack in told.stacks:
            if stack and not 0 <= min(stack) <= max(stack) < len(self._frames):
                raise Malformed("a stack names a frame that is not there")
            self._stacks.append([self._frames[number] for number in stack])

    def _stack(self, number: int) -> list[dict[str, Any]] | None:
        return None if number < 0 else self._stacks[number]

    def _segment(self, told: Segment) -> dict[str, Any]:
        columns = zip(told.addresses, told.sizes, told.requested, told.states, told.stacks, strict=True)
        return {
            "device": told.device,
            "address": told.address,
            "total_size": told.total_size,
            "is_expandable": told.is_expandable,
            "blocks": [
                {"address": a, "size": size, "requested_size": asked, "state": state, "frames": self._stack(stack)}
                for a, size, asked, state, stack in columns
            ],
        }

    def _events(self, told: Events) -> list[dict[str, Any]]:
        columns = zip(
            told.actions, told.addresses, told.sizes, told.streams, told.stacks, told.times_us, strict=True
        )  # fmt: skip
        return [
            {"action": a, "addr": at, "size": size, "stream": stream, "frames": self._stack(stack), "time_us": time}
            for a, at, size, stream, stack, time in columns
        ]
