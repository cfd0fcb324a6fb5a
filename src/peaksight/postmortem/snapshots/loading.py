"""From the file of `torch.cuda.memory._dump_snapshot()` to a recording of each device."""

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from peaksight.allocator import Settings
from peaksight.allocator.settings import ROUNDUP_INTERVALS
from peaksight.errors import SnapshotError
from peaksight.postmortem.snapshots.places import printable
from peaksight.postmortem.snapshots.plain_opcodes import Malformed
from peaksight.postmortem.snapshots.plain_pickle import PlainPickleReader
from peaksight.postmortem.snapshots.rewinding import Segment
from peaksight.postmortem.snapshots.tables import MOST_BYTES, Annotation, Block, Stacks, TableSink, Trace, checked

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
# How the containers of a snapshot begin in protocols 0 and 1, without a head.
_BARE = (b"(dp0\n", b"(lp0\n", b"}q\x00", b"]q\x00")
_WAY_OUT = "give the file of torch.cuda.memory._dump_snapshot()"

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """One snapshot: the segments and the trace of each device, by its index."""

    segments: dict[int, list[Segment]]
    traces: dict[int, Trace]
    stacks: Stacks
    annotations: dict[int, list[Annotation]]
    settings: Settings
    settings_text: str


def is_snapshot(path: Path) -> bool:
    """Whether `path` is a pickle, or an archive as torch.save writes: nothing that a log could be."""
    try:
        with path.open("rb") as raw, _unpacked(raw) as file:
            head = file.read(8)
    except (OSError, EOFError, zlib.error):
        return False
    return head.startswith((_ZIP, *_BARE)) or (head[:1] == b"\x80" and head[1:2] <= b"\x05")


def load_snapshot(path: Path, progress: Progress | None = None) -> Loaded:
    """Read `path`, which may be gzipped; `progress` hears how much of it was read, from 0 to 1.

    Raises:
        SnapshotError: the file cannot be read, holds what no snapshot does, or is cut short.
    """
    try:
        return loaded_from(*_read(path, progress))
    except (Malformed, OSError, EOFError, zlib.error, LookupError, TypeError, ValueError, OverflowError) as error:
        why = str(error) if isinstance(error, Malformed) else f"it is no memory snapshot ({error})"
        if isinstance(error, OSError):
            why = error.strerror or str(error)
        raise SnapshotError(f"Can't read the snapshot '{path}': {why}; {_WAY_OUT}.", slug="bad-snapshot") from error


def _read(path: Path, progress: Progress | None) -> tuple[Any, TableSink]:
    sink, size = TableSink(), max(1, path.stat().st_size)
    with path.open("rb") as raw, _unpacked(raw) as file:
        if raw.peek(4)[:4] == _ZIP:
            raise Malformed("it is an archive as torch.save writes, not a pickle")
        told = None if progress is None else lambda: progress(raw.tell() / size)
        return PlainPickleReader(file, sink, told).read(), sink


def _unpacked(raw: Any) -> BinaryIO:
    return gzip.open(raw) if raw.peek(2)[:2] == _GZIP else raw  # type: ignore[return-value]


def loaded_from(snapshot: Any, sink: TableSink) -> Loaded:
    """What `snapshot` holds, whose lists `sink` took; before torch 2.0 it is the list of its segments.

    Raises:
        Malformed, LookupError, TypeError, ValueError, OverflowError: it holds what no snapshot does.
    """
    told = {"segments": snapshot} if isinstance(snapshot, list) else checked(snapshot, dict)
    if not {"segments", "device_traces"} & set(told):
        raise Malformed("it has neither segments nor traces of devices")
    segments: dict[int, list[Segment]] = {}
    for segment in checked(told.get("segments", []), list):
        device = checked(checked(segment, dict).get("device", 0), int)
        segments.setdefault(device, []).append(_segment(segment))
    annotations: dict[int, list[Annotation]] = {}
    for annotation in sink.annotations:
        annotations.setdefault(annotation.device, []).append(annotation)
    settings = checked(told.get("allocator_settings", {}), dict)
    return Loaded(
        segments=segments,
        traces=_traces(told),
        stacks=sink.stacks,
        annotations=annotations,
        settings=_settings(settings),
        settings_text=printable(str(settings.get("PYTORCH_CUDA_ALLOC_CONF") or "")),
    )


def _traces(told: dict[str, Any]) -> dict[int, Trace]:
    """Those with events, by device."""
    found = {}
    for index, trace in enumerate(checked(told.get("device_traces", []), list)):
        if checked(trace, list):
            found[index] = checked(trace[0], Trace)
            found[index].check()
    return found


def _segment(told: dict[str, Any]) -> Segment:
    """Before torch 2.1 blocks have no address: they follow each other."""
    address = start = checked(told["address"], int)
    blocks = []
    for block in checked(told["blocks"], list):
        blocks.append(checked(block, Block)._replace(address=address))
        address += block.nbytes
    size = checked(told["total_size"], int)
    if not 0 < size < MOST_BYTES or not 0 <= start < 1 << 63 or address - start > size:
        raise Malformed("one of its segments has an absurd size, or blocks larger than it is")
    return Segment(start, size, bool(told.get("is_expandable", False)), tuple(blocks))


def _settings(told: dict[str, Any]) -> Settings:
    """What decides the size of blocks; -1 is no limit."""
    max_split_size = checked(told.get("max_split_size", -1), int)
    divisions = checked(told.get("roundup_power2_divisions", {}), dict)
    of_intervals = [checked(divisions.get(str(1 << power), 0), int) for power in range(ROUNDUP_INTERVALS)]
    return Settings(
        max_split_size_bytes=None if max_split_size < 0 else max_split_size,
        roundup_power2_divisions=tuple(of_intervals),
    )
