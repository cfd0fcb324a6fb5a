"""Reads a pickle of numbers, strings and plain containers, piece by piece; whatever could run code is refused.

The opcodes are those of Lib/pickletools.py, protocols 0 to 5. What C++ and `pickle.dump` write most is dealt with in
`_run` itself, the rest in `plain_opcodes`.
"""

import re
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final, Protocol

from peaksight.postmortem.snapshots.plain_opcodes import HANDLERS, Malformed

CHUNK_BYTES: Final = 1 << 22
# No opcode of `_run` reads further than this.
_MARGIN_BYTES = 300
_PADDING = bytes(_MARGIN_BYTES + 1)
# What no snapshot comes near: a gigabyte of entries leaves half a million objects and 24 million places in the memo.
_MAX_DEPTH = 1000
# Hashing a tuple goes down into its tuples without looking for the end of the C stack.
_MAX_TUPLES_DEEP = 100
_MAX_STACK = 5_000_000
_MAX_MEMO = 150_000_000
_MAX_NEW_OBJECTS = 10_000_000
# A list of things seen before, as stacks of frames are; picklers write at most 1000 at a time.
_LIST_OF_REFERENCES = re.compile(rb"\](?:\x94|q.|r.{4})?\(((?:h.|j.{4}){2,999})e", re.DOTALL)
_REFERENCE = re.compile(rb"h(.)|j(.{4})", re.DOTALL)

FORGOTTEN: Final = object()


class Sink(Protocol):
    """Takes items out of the stream, so that they need not be kept."""

    def take(self, target: list[Any], items: list[Any]) -> bool:
        """Whether `items`, which were to be appended to `target`, were taken; `target` may then get others."""


class PlainPickleReader:
    """One pickle; `stack`, `metastack` and `memo` are as in Lib/pickle.py."""

    def __init__(self, file: BinaryIO, sink: Sink | None = None, progress: Callable[[], None] | None = None) -> None:
        """Read from `file`; `progress` is called for each 4 MiB."""
        self.stack: list[Any] = []
        self.metastack: list[list[Any]] = []
        self.memo: list[Any] = []
        self._file = file
        self._sink = sink
        self._progress = progress
        self._buffer = b""
        self._end = 0
        self._is_all = False
        self._swept = 0
        self._texts: dict[bytes, str] = {}
        self._lists: dict[bytes, list[Any]] = {}
        self._tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._nested: dict[int, tuple[int, tuple[Any, ...]]] = {}
        self._most_objects = sys.getallocatedblocks() + _MAX_NEW_OBJECTS

    def read(self) -> Any:
        """The object.

        Raises:
            Malformed: the stream is cut short, holds something else, or is absurd.
            OSError, EOFError, zlib.error: as `file` does.
        """
        try:
            self._run()
            return self.stack.pop()
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise Malformed(f"it makes no sense ({error})") from error

    def _run(self) -> None:
        """Until STOP. Bytes behind the end of the file are zeros, which no opcode is."""
        at, stack, metastack, memo = 0, self.stack, self.metastack, self.memo
        buffer, safe_end = self._buffer, -1
        while True:
            if at > safe_end:
                at = self.need(at, _MARGIN_BYTES)
                buffer, safe_end = self._buffer, len(self._buffer) - _MARGIN_BYTES
            opcode = buffer[at]
            at += 1
            if opcode == 0x68:  # BINGET
                stack.append(memo[buffer[at]])
                at += 1
            elif opcode == 0x94:  # MEMOIZE
                memo.append(stack[-1])
            elif opcode == 0x6A:  # LONG_BINGET
                stack.append(memo[int.from_bytes(buffer[at : at + 4], "little")])
                at += 4
            elif opcode == 0x8A:  # LONG1
                start = at + 1
                at = start + buffer[at]
                stack.append(int.from_bytes(buffer[start:at], "little", signed=True))
            elif opcode == 0x4B:  # BININT1
                stack.append(buffer[at])
                at += 1
            elif opcode == 0x28:  # MARK
                metastack.append(stack)
                self.stack = stack = []
            elif opcode == 0x75:  # SETITEMS
                items = stack
                self.stack = stack = metastack.pop()
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            elif opcode == 0x7D:  # EMPTY_DICT
                stack.append({})
            elif opcode == 0x4D:  # BININT2
                stack.append(buffer[at] | buffer[at + 1] << 8)
                at += 2
            elif opcode == 0x4A:  # BININT
                stack.append(int.from_bytes(buffer[at : at + 4], "little", signed=True))
                at += 4
            elif opcode == 0x5D:  # EMPTY_LIST
                found = _LIST_OF_REFERENCES.match(buffer, at - 1, self._end)
                if found is None:
                    stack.append([])
                else:
                    at = self._list_of_references(found, at)
            elif opcode == 0x8C:  # SHORT_BINUNICODE
                start = at + 1
                at = start + buffer[at]
                stack.append(self.text(buffer[start:at]))
            elif opcode == 0x65:  # APPENDS
                items = stack
                self.stack = stack = metastack.pop()
                self.extend(stack[-1], items)
            elif opcode == 0x2E:  # STOP
                return
            else:
                at = self._other(opcode, at)
                stack, buffer, safe_end = self.stack, self._buffer, len(self._buffer) - _MARGIN_BYTES

    def _other(self, opcode: int, at: int) -> int:
        if at > self._end:
            raise Malformed("it is cut short")
        handler = HANDLERS.get(opcode)
        if handler is None:
            raise Malformed(f"it has the opcode {bytes([opcode])!r}, which plain data needs nowhere")
        return handler(self, at)

    # What the handlers use too.

    def need(self, at: int, num_bytes: int) -> int:
        """Have `num_bytes` behind `at` in the buffer, or all there are and zeros; where `at` is now."""
        if at > self._end:
            raise Malformed("it is cut short")
        parts = [self._buffer[at : self._end]]
        missing = num_bytes + _MARGIN_BYTES - len(parts[0])
        while missing > 0 and not self._is_all:
            parts.append(self._file.read(CHUNK_BYTES))
            missing -= len(parts[-1])
            self._is_all = not parts[-1]
            self._check_room()
        self._buffer = b"".join(parts)
        self._end = len(self._buffer)
        if self._is_all:
            self._buffer += _PADDING
        return 0

    def take(self, at: int, num_bytes: int) -> tuple[bytes, int]:
        """The `num_bytes` behind `at`, and what follows them."""
        if at + num_bytes > self._end:
            at = self.need(at, num_bytes)
        if at + num_bytes > self._end:
            raise Malformed("it is cut short")
        return self._buffer[at : at + num_bytes], at + num_bytes

    def line(self, at: int, longest: int = 1 << 16) -> tuple[bytes, int]:
        """The text up to the next newline, and what follows it."""
        end = self._buffer.find(b"\n", at, self._end)
        if end < 0:
            at = self.need(at, longest)
            end = self._buffer.find(b"\n", at, self._end)
        if end < 0:
            raise Malformed("a line of it does not end")
        return self._buffer[at:end], end + 1

    def text(self, encoded: bytes) -> str:
        """The text of UTF-8: equal ones are one object."""
        text = self._texts.get(encoded)
        if text is None:
            text = self._texts[encoded] = str(encoded, "utf-8", "surrogatepass")
        return text

    def since_mark(self) -> list[Any]:
        """What was pushed since the last MARK, which is taken away."""
        items, self.stack = self.stack, self.metastack.pop()
        return items

    def push_tuple(self, items: list[Any]) -> None:
        """Push a tuple of `items`; equal pairs of numbers, as the ids of memory pools are, are one object."""
        made = tuple(items)
        if set(map(type, items)) == {int}:
            made = self._tuples.setdefault(made, made)
        deep = 1 + max((self._nested[id(item)][0] for item in items if id(item) in self._nested), default=0)
        if deep > _MAX_TUPLES_DEEP:
            raise Malformed(f"its tuples lie more than {_MAX_TUPLES_DEEP} deep in each other")
        if tuple in map(type, items):
            self._nested[id(made)] = (deep, made)
        self.stack.append(made)

    def put(self, index: int) -> None:
        """Remember the top of the stack as `index`."""
        if index < len(self.memo):
            self.memo[index] = self.stack[-1]
            return
        if index - len(self.memo) > _MARGIN_BYTES:
            raise Malformed("it remembers more than it holds")
        self.memo += [FORGOTTEN] * (index - len(self.memo)) + [self.stack[-1]]

    def extend(self, target: list[Any], items: list[Any]) -> None:
        """Append `items` to `target`, unless the sink takes them: then nothing keeps them."""
        if self._sink is None or not items or not self._sink.take(target, items):
            target.extend(items)
            return
        taken = set(map(id, items))
        for index in range(self._swept, len(self.memo)):
            if id(self.memo[index]) in taken:
                self.memo[index] = FORGOTTEN
        self._swept = len(self.memo)

    def _list_of_references(self, found: re.Match[bytes], at: int) -> int:
        """Push the list; equal ones are one object. Where it ends, or where its memory does."""
        references = found[1]
        items = self._lists.get(references)
        if items is None:
            pairs = _REFERENCE.findall(references)
            items = [self.memo[int.from_bytes(short or long, "little")] for short, long in pairs]
            self._lists[references] = items
        self.stack.append(items)
        memory = self._buffer[at : found.start(1) - 1]
        if memory == b"\x94":
            self.memo.append(items)
        elif memory:
            self.put(int.from_bytes(memory[1:], "little"))
        return found.end()

    def _check_room(self) -> None:
        """Whether this grows beyond any snapshot: by marks, by what waits on the stack, by what was made so far."""
        if len(self.metastack) > _MAX_DEPTH:
            raise Malformed(f"its containers lie more than {_MAX_DEPTH} deep in each other")
        too_many = (
            sum(map(len, self.metastack)) + len(self.stack) > _MAX_STACK
            or len(self.memo) > _MAX_MEMO
            or sys.getallocatedblocks() > self._most_objects
        )
        if too_many:
            raise Malformed("it unfolds into more objects than any snapshot has")
        if self._progress is not None:
            self._progress()
