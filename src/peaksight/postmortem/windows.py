"""Reads a log of any size in one pass and keeps the places that matter: windows around messages about memory."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from peaksight.postmortem.dialects import DIALECTS
from peaksight.postmortem.grammar import Dialect
from peaksight.postmortem.growth import find_samples
from peaksight.records import MemorySample

BLOCK_BYTES = 1 << 20
# Tracebacks stand before a message, the rest of it and what the launcher says stand behind.
BEFORE_BYTES = 24 << 10
AFTER_BYTES = 8 << 10
MAX_WINDOW_BYTES = 96 << 10
HEAD_BYTES = 64 << 10
TAIL_BYTES = 16 << 10

NUM_FIRST = 24
NUM_LAST = 8
NUM_WARNING_WINDOWS = 6
# Words such as "cudnn" may stand everywhere: so often per block they are looked at more closely.
MAX_LOOKS = 64
_LOOK_BEFORE = 200
_LOOK_AFTER = 400
_COLOURS = re.compile(r"(?:\x1b|\\u001b|\\x1b|\\033)\[[\d;]{0,12}[A-Za-z]")
_QUOTED = re.compile(r"^ {0,3}(?:>(?: |(?=[>\n])))+", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A piece of a log; `first_line` counts from 1."""

    text: str
    first_line: int


@dataclass(slots=True, kw_only=True)
class Windows:
    """What is kept of a log: `head` and `tail`, the `first` and `last` windows with failures, some `warnings`.

    `samples` are lines that tell the memory of a step.
    """

    head: str = ""
    tail: str = ""
    first: list[Window] = field(default_factory=list)
    last: deque[Window] = field(default_factory=lambda: deque(maxlen=NUM_LAST))
    warnings: list[Window] = field(default_factory=list)
    num_bytes: int = 0
    num_lines: int = 0
    num_hits_passed: int = 0
    samples: list[MemorySample] = field(default_factory=list)

    def in_order(self) -> list[Window]:
        """Every window kept, as they stand in the log."""
        return sorted((*self.first, *self.last, *self.warnings), key=lambda window: window.first_line)

    def add(self, window: Window, num_hits: int, *, is_failure: bool) -> None:
        """Keep `window` if there is room for it, and count what is not kept."""
        if not is_failure:
            if len(self.warnings) < NUM_WARNING_WINDOWS:
                self.warnings.append(window)
        elif len(self.first) < NUM_FIRST:
            self.first.append(window)
        else:
            self.num_hits_passed += num_hits if len(self.last) == NUM_LAST else 0
            self.last.append(window)


def read_windows(stream: BinaryIO) -> Windows:
    """One pass over `stream` in blocks; memory is bounded whatever its lines are like."""
    kept = Windows()
    buffer, scanned, line = b"", 0, 1
    while True:
        block = stream.read(BLOCK_BYTES)
        buffer += block
        kept.num_bytes += len(block)
        if kept.num_bytes <= BLOCK_BYTES:
            kept.head = decode(buffer[:HEAD_BYTES])
        end = len(buffer) - (AFTER_BYTES if block else 0)
        if end > scanned:
            _keep(buffer, scanned, end, line, kept)
            kept.samples += find_samples(buffer[scanned:end])
            scanned = end
        cut = max(scanned - BEFORE_BYTES, 0)
        line += buffer.count(b"\n", 0, cut)
        buffer, scanned = buffer[cut:], scanned - cut
        if not block:
            kept.tail = decode(buffer[-TAIL_BYTES:])
            kept.num_lines = line - 1 + buffer.count(b"\n") + (1 if buffer and not buffer.endswith(b"\n") else 0)
            return kept


def decode(text: bytes) -> str:
    """Text of any encoding near enough to ASCII; what is not UTF-8 becomes a replacement character.

    Colours are left out, also those that JSON escapes, and the marks of quoted lines, as mails and issues have them.
    """
    return _QUOTED.sub("", _COLOURS.sub("", text.decode("utf-8", errors="replace")))


def _keep(buffer: bytes, start: int, end: int, line: int, kept: Windows) -> None:
    """Cut windows around the hits in `buffer[start:end]`, none overlapping another."""
    hits = sorted(find_hits(buffer, start, end))
    border = 0
    for group in _clusters(hits):
        first, last = group[0][0], group[-1][0]
        begin = _line_start(buffer, max(border, first - BEFORE_BYTES, last - MAX_WINDOW_BYTES))
        border = min(last + AFTER_BYTES, len(buffer))
        text = decode(buffer[begin:border])
        window = Window(text=text, first_line=line + buffer.count(b"\n", 0, begin))
        kept.add(window, len(group), is_failure=any(is_failure for _, is_failure in group))


def _line_start(buffer: bytes, position: int) -> int:
    """The beginning of the line at `position` or, in a very long line, the position."""
    found = buffer.rfind(b"\n", max(position - 2000, 0), position)
    return found + 1 if found >= 0 else position


def _clusters(hits: list[tuple[int, bool]]) -> Iterator[list[tuple[int, bool]]]:
    """Hits whose windows would touch, up to the size of one window."""
    group: list[tuple[int, bool]] = []
    for hit in hits:
        if group and (hit[0] - group[-1][0] > AFTER_BYTES or hit[0] - group[0][0] > MAX_WINDOW_BYTES - BEFORE_BYTES):
            yield group
            group = []
        group.append(hit)
    if group:
        yield group


def find_hits(buffer: bytes, start: int, end: int) -> set[tuple[int, bool]]:
    """Positions in `buffer[start:end]` where a message begins, and whether it is a failure."""
    lowered = buffer[start:end].lower()
    return {hit for needle in needles_in(lowered) for hit in _look(buffer, lowered, start, needle, _BY_NEEDLE[needle])}


def _look(
    buffer: bytes, lowered: bytes, start: int, needle: bytes, dialects: Iterable[Dialect]
) -> Iterator[tuple[int, bool]]:
    """Where `needle` stands and one of the `dialects` begins."""
    position = -_LOOK_AFTER
    for _ in range(MAX_LOOKS):
        position = lowered.find(needle, max(position + len(needle), 0))
        if position < 0:
            return
        at = start + position
        text = decode(buffer[max(at - _LOOK_BEFORE, 0) : at + _LOOK_AFTER])
        matching = next((dialect for dialect in dialects if dialect.start.search(text)), None)
        if matching:
            yield at, not matching.is_warning
            position += _LOOK_BEFORE


def needles_in(lowered: bytes) -> list[bytes]:
    """The needles that stand in `lowered`: one is looked for only where the part that it shares with others stands."""
    present: set[bytes] = {b""}
    for word, part in _PARTS.items():
        if part in present and word in lowered:
            present.add(word)
    return [word for word in present if word in _BY_NEEDLE]


def _by_needle() -> dict[bytes, list[Dialect]]:
    table: dict[bytes, list[Dialect]] = {}
    for dialect in DIALECTS:
        for needle in dialect.needles:
            table.setdefault(needle.encode(), []).append(dialect)
    for dialects in table.values():
        dialects.sort(key=lambda dialect: dialect.is_warning)
    return table


def _parts() -> dict[bytes, bytes]:
    """Each needle and shared part, shortest first, with the longest other one that it contains."""
    words = sorted({*_BY_NEEDLE, *_SHARED}, key=lambda word: (len(word), word))
    return {
        word: max((part for part in words if part in word and part != word), key=len, default=b"") for word in words
    }


# Parts of needles that are rarer than the needles are many.
_SHARED = tuple(
    b"out of mem,of_mem,ofmem,memory:,memory ,kill,cuda,nccl,rccl,alloc,exit,code,oom-,oom_,oomk,buffer,mib,pin,unable,"
    b"cu,shared,kv,torch,fail,resource,exceeded,limit,signal,enough,ran ,out of ,worker,cusp".split(b",")
)
_BY_NEEDLE = _by_needle()
_PARTS = _parts()
