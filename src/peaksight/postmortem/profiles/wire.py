"""Protocol buffers without a schema: the fields of a message, from bytes that nobody vouches for."""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_MOST_VARINT_BYTES = 10


class Malformed(Exception):
    """The bytes are no message."""


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The number of each field with its value: an integer, or the bytes of what it holds.

    Raises:
        Malformed: the message ends within a field, or has one of a kind that there is not.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at)
        elif kind in _FIXED_BYTES:
            size = _FIXED_BYTES[kind]
        else:
            raise Malformed(f"field of kind {kind}")
        if at + size > len(data):
            raise Malformed("cut short")
        yield key >> 3, data[at : at + size]
        at += size


def integers(value: int | memoryview) -> Iterator[int]:
    """The numbers of a repeated field: one, or many that are packed."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        yield number


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(_MOST_VARINT_BYTES):
        if at + shift >= len(data):
            raise Malformed("cut short")
        byte = data[at + shift]
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number, at + shift + 1
    raise Malformed("a number that does not end")
