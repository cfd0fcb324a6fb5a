"""The file in which torchelastic keeps the error of a worker (TORCHELASTIC_ERROR_FILE)."""

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

_BEGINNING = b'{"message":'
_MOST_BYTES = 4 << 20
# Where torchrun puts it below its --log-dir: attempt_0/3/error.json.
_RANK = re.compile(r"attempt_\d{1,4}[/\\](\d{1,6})[/\\][^/\\]+$")


class _Extra(msgspec.Struct):
    timestamp: str | int | float = ""
    py_callstack: str = ""


class _Message(msgspec.Struct):
    message: str
    extra: _Extra = msgspec.field(name="extraInfo", default_factory=_Extra)


class _Content(msgspec.Struct):
    message: _Message | str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerError:
    """What a worker failed with, and when in whole seconds since 1970; None where the file does not say."""

    rank: int | None
    message: str
    time: float | None


def read_error_file(path: Path) -> WorkerError | None:
    """The error in `path`, None if it is no such file."""
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES)
    if not text.replace(b" ", b"").startswith(_BEGINNING):
        return None
    try:
        told = msgspec.json.decode(text, type=_Content).message
    except msgspec.MsgspecError:
        return None
    message = _Message(message=told) if isinstance(told, str) else told
    time = str(message.extra.timestamp)
    rank = _RANK.search(str(path))
    return WorkerError(
        rank=int(rank[1]) if rank else None,
        message=message.message,
        time=float(time) if time.replace(".", "", 1).isdecimal() else None,
    )
