"""The lines of a capsule: how each kind is read, and how they come out of a file that may be cut short."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from peaksight.records.capsule import CapsuleEnding, CapsuleFailure, CapsuleHolder, CapsuleRun, TensorName
from peaksight.records.watched import WatchedStep

_BLOCK_BYTES: Final = 1 << 20
# Far more than `live.capsule_file.MOST_BYTES` unpacks to.
_MOST_BYTES: Final = 4 << 30
BEGINNING: Final = b'{"line":"head","content":{"format":"peaksight.capsule"'
_GZIP: Final = 31


class Line(msgspec.Struct):
    """Any line."""

    line: str
    content: msgspec.Raw


class Head(msgspec.Struct):
    """The first line."""

    format: str
    version: int
    peaksight: str


class Steps(msgspec.Struct):
    """The last steps."""

    steps: tuple[WatchedStep, ...]


class Holders(msgspec.Struct):
    """What was alive by module and line."""

    holders: tuple[CapsuleHolder, ...]


class TensorNames(msgspec.Struct):
    """Whose tensors lie where."""

    names: tuple[TensorName, ...]


class AllocatorSettings(msgspec.Struct):
    """The allocator's settings, and how many segments follow."""

    settings: dict[str, Any]
    num_segments: int


class NewStacks(msgspec.Struct):
    """Frames and stacks, in the order of their numbers."""

    frames: list[tuple[str, int, str]]
    stacks: list[list[int]]


class Segment(msgspec.Struct):
    """One segment with its blocks as columns."""

    device: int
    address: int
    total_size: int
    is_expandable: bool
    addresses: list[int]
    sizes: list[int]
    requested: list[int]
    states: list[str]
    stacks: list[int]


class Events(msgspec.Struct):
    """Events of a device as columns; the latest were written first."""

    device: int
    actions: list[str]
    addresses: list[int]
    sizes: list[int]
    streams: list[int]
    stacks: list[int]
    times_us: list[int]


class Annotations(msgspec.Struct):
    """Where optimizers stepped."""

    annotations: list[dict[str, Any]]


class End(msgspec.Struct):
    """The last line of a capsule that is whole."""

    left_out: bool


KINDS: Final[dict[str, type]] = {
    "run": CapsuleRun,
    "failure": CapsuleFailure,
    "steps": Steps,
    "holders": Holders,
    "names": TensorNames,
    "settings": AllocatorSettings,
    "stacks": NewStacks,
    "segment": Segment,
    "events": Events,
    "annotations": Annotations,
    "end": End,
    "ending": CapsuleEnding,
}


def lines_in(path: Path) -> Iterator[bytes]:
    """The whole lines of a file that may be cut short, or end in what is no gzip."""
    rest, size = b"", 0
    with path.open("rb") as file:
        for block in _unpacked(iter(lambda: file.read(_BLOCK_BYTES), b"")):
            size += len(block)
            if size > _MOST_BYTES:
                return
            *lines, rest = (rest + block).split(b"\n")
            yield from lines


def _unpacked(blocks: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        for block in blocks:
            while block:
                yield unpacker.decompress(block, _BLOCK_BYTES)
                block = unpacker.unconsumed_tail or unpacker.unused_data
                if unpacker.eof:
                    unpacker = zlib.decompressobj(_GZIP)
    except zlib.error:
        return
