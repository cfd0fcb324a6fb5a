"""The file of `jax.profiler.save_device_memory_profile`: who made what is alive on the devices."""

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from peaksight.errors import SnapshotError
from peaksight.postmortem.profiles.wire import Malformed, fields, integers
from peaksight.records.device_profile import DeviceProfile, DeviceTotal, ProfileHolder

SCHEMA = "peaksight.device-profile/1"
_GZIP = b"\x1f\x8b"
# Unpacked; a process with a million arrays has a tenth of it.
MOST_BYTES = 1 << 29
_WAY_OUT = "give the file of jax.profiler.save_device_memory_profile()"
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|^<|[/\\]jax[/\\]_src[/\\]")
_STACK = 8
# The numbers of fields in pprof's profile.proto.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6


@dataclass(slots=True)
class _Tables:
    """The parts of a profile that refer to each other by number."""

    strings: list[str] = field(default_factory=list)
    functions: dict[int, tuple[int, int]] = field(default_factory=dict)
    locations: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    samples: list[memoryview] = field(default_factory=list)
    types: list[int] = field(default_factory=list)

    def text(self, number: int) -> str:
        """The string of that number."""
        if number >= len(self.strings):
            raise Malformed("a string that is not there")
        return self.strings[number]


def is_profile(path: Path) -> bool:
    """Whether `path` is a gzipped profile, which begins with the type of its samples: nothing that a log could."""
    try:
        with path.open("rb") as raw:
            if raw.read(2) != _GZIP:
                return False
        with gzip.open(path) as file:
            head = file.read(3)
    except (OSError, EOFError, zlib.error):
        return False
    return len(head) == 3 and head[0] == 0x0A and head[1] < 0x20 and head[2] == 0x08


def read_profile(path: Path) -> DeviceProfile:
    """The report of the profile at `path`.

    Raises:
        SnapshotError: the file cannot be read, or is no such profile.
    """
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise Malformed("it is larger than any profile of live arrays")
        return _report(_tables(memoryview(data)), path.name)
    except (Malformed, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise SnapshotError(f"Can't read the profile '{path}': {why}; {_WAY_OUT}.", slug="bad-profile") from error


def _tables(data: memoryview) -> _Tables:
    tables = _Tables()
    for number, value in fields(data):
        if isinstance(value, int):
            continue
        if number == _STRING:
            tables.strings.append(bytes(value).decode())
        elif number == _SAMPLE:
            tables.samples.append(value)
        elif number == _SAMPLE_TYPE:
            tables.types.append(_first(value, 2))
        elif number == _FUNCTION:
            tables.functions[_first(value, 1)] = (_first(value, 2), _first(value, 4))
        elif number == _LOCATION:
            lines = [each for n, each in fields(value) if n == 4 and not isinstance(each, int)]
            tables.locations[_first(value, 1)] = [(_first(line, 1), _first(line, 2)) for line in lines]
    return tables


def _first(message: memoryview, field_number: int) -> int:
    """The number in that field of a message, 0 where it has none."""
    return next((value for number, value in fields(message) if number == field_number and isinstance(value, int)), 0)


def _report(tables: _Tables, name: str) -> DeviceProfile:
    if "bytes" not in [tables.text(unit) for unit in tables.types]:
        raise Malformed("it counts no bytes")
    sums: dict[tuple[str, str, str, tuple[str, ...]], list[int]] = defaultdict(lambda: [0, 0])
    for sample in tables.samples:
        key, num_bytes, count = _sample(sample, tables)
        sums[key][0] += num_bytes
        sums[key][1] += count
    holders = [
        ProfileHolder(bytes=size, count=count, kind=kind, device=device, source=source, stack=stack)
        for (kind, device, source, stack), (size, count) in sums.items()
        if size
    ]
    return DeviceProfile(
        schema=SCHEMA,
        source=name,
        live_bytes=sum(holder.bytes for holder in holders),
        totals=_totals(holders),
        holders=tuple(sorted(holders, key=lambda holder: (-holder.bytes, holder.source, holder.stack))),
    )


def _sample(sample: memoryview, tables: _Tables) -> tuple[tuple[str, str, str, tuple[str, ...]], int, int]:
    """Kind, device, line and stack of one sample, its bytes, and how many things these are."""
    locations: list[int] = []
    values: list[int] = []
    labels: dict[str, str] = {}
    for number, value in fields(sample):
        if number == 1:
            locations += integers(value)
        elif number == 2:
            values += integers(value)
        elif number == 3 and not isinstance(value, int):
            labels[tables.text(_first(value, 1))] = tables.text(_first(value, 2))
    if len(values) != len(tables.types):
        raise Malformed("a sample without its values")
    units = [tables.text(unit) for unit in tables.types]
    by_unit = dict(zip(units, values, strict=True))
    source, stack = _place(locations, tables)
    return (labels.get("kind", ""), labels.get("device", ""), source, stack), by_unit["bytes"], by_unit.get("count", 1)


def _place(locations: Iterable[int], tables: _Tables) -> tuple[str, tuple[str, ...]]:
    """The innermost line of the user's code, and the calls from the innermost outwards."""
    frames = []
    for number in locations:
        for function, line in tables.locations.get(number, ()):
            name, file = tables.functions.get(function, (0, 0))
            frames.append((tables.text(file), line, tables.text(name)))
    own = next(((file, line) for file, line, _ in frames if file and not _LIBRARY.search(file)), None)
    source = f"{_base(own[0])}:{own[1]}" if own else ""
    return source, tuple(f"{name} at {_base(file)}:{line}" for file, line, name in frames[:_STACK])


def _totals(holders: Iterable[ProfileHolder]) -> tuple[DeviceTotal, ...]:
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for holder in holders:
        sums[holder.device, holder.kind][0] += holder.bytes
        sums[holder.device, holder.kind][1] += holder.count
    ordered = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    return tuple(
        DeviceTotal(device=device, kind=kind, bytes=size, count=count) for (device, kind), (size, count) in ordered
    )


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
