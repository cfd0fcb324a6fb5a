"""The rarer opcodes of a plain pickle, and the refusal of those that could run code.

Each handler does its part on the reader and returns where the next opcode is.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from peaksight.postmortem.snapshots.plain_pickle import PlainPickleReader

_HIGHEST_PROTOCOL = 5
_MAX_TEXT_BYTES = 1 << 24
_MAX_NUMBER_BYTES = 1024
_LINE_FALSE, _LINE_TRUE = b"00", b"01"


class Malformed(Exception):
    """The stream is no plain pickle; the message is a clause about `it`, the file."""


def _protocol(reader: "PlainPickleReader", at: int) -> int:
    version, at = reader.take(at, 1)
    if version[0] > _HIGHEST_PROTOCOL:
        raise Malformed(f"it is of pickle protocol {version[0]}, and {_HIGHEST_PROTOCOL} is the highest")
    return at


def _frame(reader: "PlainPickleReader", at: int) -> int:
    """Framing only says how much to read at once."""
    return reader.take(at, 8)[1]


# Scalars.


def _constant(value: Any, reader: "PlainPickleReader", at: int) -> int:
    reader.stack.append(value)
    return at


def _int_line(reader: "PlainPickleReader", at: int) -> int:
    line, at = reader.line(at)
    reader.stack.append(line == _LINE_TRUE if line in (_LINE_FALSE, _LINE_TRUE) else int(line))
    return at


def _long_line(reader: "PlainPickleReader", at: int) -> int:
    line, at = reader.line(at)
    reader.stack.append(int(line.removesuffix(b"L")))
    return at


def _long4(reader: "PlainPickleReader", at: int) -> int:
    length, at = _length(reader, at, 4, _MAX_NUMBER_BYTES)
    encoded, at = reader.take(at, length)
    reader.stack.append(int.from_bytes(encoded, "little", signed=True))
    return at


def _float_line(reader: "PlainPickleReader", at: int) -> int:
    line, at = reader.line(at)
    reader.stack.append(float(line))
    return at


def _binary_float(reader: "PlainPickleReader", at: int) -> int:
    encoded, at = reader.take(at, 8)
    reader.stack.append(struct.unpack(">d", encoded)[0])
    return at


def _unicode_line(reader: "PlainPickleReader", at: int) -> int:
    line, at = reader.line(at, _MAX_TEXT_BYTES)
    reader.stack.append(str(line, "raw-unicode-escape"))
    return at


def _text(width: int, reader: "PlainPickleReader", at: int) -> int:
    length, at = _length(reader, at, width, _MAX_TEXT_BYTES)
    encoded, at = reader.take(at, length)
    reader.stack.append(reader.text(encoded))
    return at


def _bytes(width: int, reader: "PlainPickleReader", at: int) -> int:
    length, at = _length(reader, at, width, _MAX_TEXT_BYTES)
    encoded, at = reader.take(at, length)
    reader.stack.append(encoded)
    return at


def _length(reader: "PlainPickleReader", at: int, width: int, most: int) -> tuple[int, int]:
    encoded, at = reader.take(at, width)
    length = int.from_bytes(encoded, "little")
    if length > most:
        raise Malformed(f"one text or number of it claims {length} bytes")
    return length, at


# Containers.


def _tuple(reader: "PlainPickleReader", at: int) -> int:
    reader.push_tuple(reader.since_mark())
    return at


def _short_tuple(length: int, reader: "PlainPickleReader", at: int) -> int:
    items = reader.stack[-length:]
    del reader.stack[-length:]
    reader.push_tuple(items)
    return at


def _list(reader: "PlainPickleReader", at: int) -> int:
    items = reader.since_mark()
    reader.stack.append(items)
    return at


def _dict(reader: "PlainPickleReader", at: int) -> int:
    items = reader.since_mark()
    reader.stack.append(dict(zip(items[::2], items[1::2], strict=True)))
    return at


def _append(reader: "PlainPickleReader", at: int) -> int:
    item = reader.stack.pop()
    reader.extend(reader.stack[-1], [item])
    return at


def _set_item(reader: "PlainPickleReader", at: int) -> int:
    value, key = reader.stack.pop(), reader.stack.pop()
    reader.stack[-1][key] = value
    return at


# Memory.


def _get_line(reader: "PlainPickleReader", at: int) -> int:
    line, at = reader.line(at)
    reader.stack.append(reader.memo[_index(line)])
    return at


def _put_line(reader: "PlainPickleReader", at: int) -> int:
    line, at = reader.line(at)
    reader.put(_index(line))
    return at


def _index(line: bytes) -> int:
    if not line.isdigit():
        raise Malformed("it remembers things by something else than a number")
    return int(line)


def _put(width: int, reader: "PlainPickleReader", at: int) -> int:
    encoded, at = reader.take(at, width)
    reader.put(int.from_bytes(encoded, "little"))
    return at


# What could run code, or needs what is not in the file.


def _global(reader: "PlainPickleReader", at: int) -> int:
    module, at = reader.line(at)
    name, at = reader.line(at)
    raise _refused(module.decode(errors="replace"), name.decode(errors="replace"))


def _stack_global(reader: "PlainPickleReader", at: int) -> int:
    raise _refused(*reader.stack[-2:])


def _refused(module: Any, name: Any) -> Malformed:
    return Malformed(f"it asks for {_shown(module)}.{_shown(name)}, and no snapshot needs code")


def _shown(name: Any) -> str:
    """A name out of the file, without what could play tricks in a terminal."""
    return ascii(name[:60])[1:-1] if isinstance(name, str) else "something"


def _code(reader: "PlainPickleReader", at: int) -> int:
    raise Malformed("it asks to call or build something, and no snapshot needs code")


def _outside(reader: "PlainPickleReader", at: int) -> int:
    raise Malformed("it refers to something outside of the file")


def _set(reader: "PlainPickleReader", at: int) -> int:
    raise Malformed("it holds a set or a bytearray, which no snapshot does")


_Handler = Callable[["PlainPickleReader", int], int]

_BY_OPCODE: dict[str, _Handler] = {
    **{"\x80": _protocol, "\x95": _frame},
    **{"N": partial(_constant, None), "\x88": partial(_constant, True), "\x89": partial(_constant, False)},
    **{"I": _int_line, "L": _long_line, "\x8b": _long4, "F": _float_line, "G": _binary_float},
    **{"V": _unicode_line, "X": partial(_text, 4), "\x8d": partial(_text, 8)},
    **{"C": partial(_bytes, 1), "B": partial(_bytes, 4), "\x8e": partial(_bytes, 8)},
    **{"t": _tuple, ")": partial(_constant, ()), "\x85": partial(_short_tuple, 1)},
    **{"\x86": partial(_short_tuple, 2), "\x87": partial(_short_tuple, 3)},
    **{"l": _list, "d": _dict, "a": _append, "s": _set_item},
    **{"g": _get_line, "p": _put_line, "q": partial(_put, 1), "r": partial(_put, 4)},
    **{"c": _global, "\x93": _stack_global},
    **dict.fromkeys(("R", "b", "i", "o", "\x81", "\x92", "\x82", "\x83", "\x84"), _code),
    **dict.fromkeys(("P", "Q", "\x97", "\x98"), _outside),
    **dict.fromkeys(("\x8f", "\x90", "\x91", "\x96"), _set),
}

HANDLERS: Final = {ord(opcode): handler for opcode, handler in _BY_OPCODE.items()}
