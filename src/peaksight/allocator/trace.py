"""Reads what an allocator did, event by event, from a file."""

import gzip
import pickle
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from peaksight.errors import CaptureFileError

_GZIP_MAGIC = b"\x1f\x8b"
# What reading, decompressing, unpickling and decoding raise on a file that is not what it should be.
_UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    pickle.UnpicklingError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)


class TraceEvent(NamedTuple):
    """One step of an allocator.

    `action` is one of PyTorch's words (`alloc`, `free_requested`, `free_completed`, `segment_alloc`, `segment_free`,
    `segment_map`, `segment_unmap`, ...); `nbytes` of an `alloc` are the requested bytes.
    """

    action: str
    address: int
    nbytes: int
    stream: int


class _SnapshotEntry(msgspec.Struct):
    action: str
    size: int = 0
    addr: int = 0
    stream: int = 0


class _Snapshot(msgspec.Struct):
    device_traces: list[list[_SnapshotEntry]]


class _PlainUnpickler(pickle.Unpickler):
    """Loads numbers, strings and containers: a snapshot holds nothing else, and anything else could run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds a {module}.{name}")


def read_trace(path: Path | str, *, device: int | None = None) -> list[TraceEvent]:
    """The events of one device, in order.

    Args:
        path: A list of `[action, address, bytes, stream]` as JSON, or a `torch.cuda.memory._snapshot()` as JSON or
            pickle (`_dump_snapshot`), each of them gzipped or not.
        device: The CUDA device of a snapshot; None is the only one with events.

    Raises:
        CaptureFileError: the file cannot be read, or is something else.
    """
    try:
        content = Path(path).read_bytes()
        if content.startswith(_GZIP_MAGIC):
            content = gzip.decompress(content)
        return _decode(content, device)
    except _UNREADABLE as error:
        raise CaptureFileError(
            f"Can't read the allocator trace '{path}': {error}. Give [action, address, bytes, stream] lists as JSON, "
            "or the file of torch.cuda.memory._dump_snapshot().",
            slug="bad-trace",
        ) from error


def _decode(content: bytes, device: int | None) -> list[TraceEvent]:
    kind = content.lstrip()[:1]
    if kind == b"[":
        return msgspec.json.decode(content, type=list[TraceEvent])
    if kind == b"{":
        return _events(msgspec.json.decode(content, type=_Snapshot), device)
    return _events(msgspec.convert(_PlainUnpickler(BytesIO(content)).load(), _Snapshot), device)


def _events(snapshot: _Snapshot, device: int | None) -> list[TraceEvent]:
    traces = {index: trace for index, trace in enumerate(snapshot.device_traces) if trace}
    if device is not None:
        traces = {index: trace for index, trace in traces.items() if index == device}
    if len(traces) != 1:
        raise ValueError(f"it has events of {len(traces)} devices {sorted(traces)}, not of one")
    (trace,) = traces.values()
    return [TraceEvent(entry.action, entry.addr, entry.size, entry.stream) for entry in trace]
