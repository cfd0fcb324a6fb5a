"""Reads what XLA writes about a compiled program: its buffers, when they live, and where they come from.

Files of `--xla_dump_to`: buffer-assignment (allocations; value, size and offset), live-range (first and last
instruction of each value) and the optimised HLO with its metadata. They are written once the memory is planned, before
any kernel is generated.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peaksight.jax.hlo import Hlo

_ASSIGNMENT, _RANGES, _HLO = "-buffer-assignment.txt", "-live-range.txt", ".txt"
_ALLOCATION = re.compile(r"allocation \d+: size (\d+), (.*?):?$")
_VALUE = re.compile(r"\s+value: <\d+ (\S+?)(?:\{([\d,]*)\})? (?:\(phi\) )?@\d+> \(size=(\d+),offset=(\d+)\): (.*)$")
_RANGE = re.compile(r"\s+(\S+?)\{([\d,]*)\}:(\d+)-(\d+)$")
# kHostMemorySpaceColor of xla/layout.h: what `jax.checkpoint` offloads.
_ON_HOST = "color 5,"
_SHAPE = re.compile(r"\w+\[[\d,]*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A piece of the temporary memory that is in use at the program's fullest moment.

    `born` is the number of the instruction that makes it, `op_name` the path of name scopes and transformations that
    JAX gave it, `source` its line in the user's code. What is a copy of an argument has neither, but the number of that
    as `argument`, which is else -1.
    """

    bytes: int
    born: int
    tensor: str
    op_name: str
    source: str
    argument: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """A compiled program on one device; all in bytes.

    `buffers` and `unused_bytes` add up to `temporary_bytes`, which are taken in one piece. Outputs of `aliased_bytes`
    are in donated arguments, by `aliases` from output to argument.
    """

    argument_bytes: int
    output_bytes: int
    aliased_bytes: int
    temporary_bytes: int
    buffers: tuple[Buffer, ...]
    unused_bytes: int
    aliases: tuple[tuple[int, int], ...] = ()
    output_shardings: tuple[Any, ...] = ()

    @property
    def total_bytes(self) -> int:
        """What a call needs: arguments, outputs of their own, and temporaries."""
        return self.argument_bytes + self.output_bytes - self.aliased_bytes + self.temporary_bytes


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of the temporary allocation, alive from instruction `first` to `last`."""

    name: str
    bytes: int
    offset: int
    tensor: str
    first: int
    last: int


def is_written(folder: Path) -> bool:
    """Whether everything that `read_dump` reads is in `folder`; XLA writes it in any order, and may still be at it."""
    stem = str(next(folder.glob(f"*{_ASSIGNMENT}"), "")).removesuffix(_ASSIGNMENT)
    return bool(stem) and all(_size(stem + ending) for ending in (_ASSIGNMENT, _RANGES, _HLO))


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def read_dump(folder: Path, *, output_shardings: tuple[Any, ...] = ()) -> CompiledProgram:
    """The program whose dump is in `folder`."""
    assignment = next(folder.glob(f"*{_ASSIGNMENT}"))
    stem = str(assignment).removesuffix(_ASSIGNMENT)
    values, sizes = _values(assignment, _live_ranges(Path(stem + _RANGES)))
    hlo = Hlo(Path(stem + _HLO))
    buffers = tuple(_at_peak(values, hlo))
    return CompiledProgram(
        argument_bytes=sizes["parameter"],
        output_bytes=sizes["maybe-live-out"],
        aliased_bytes=sizes["aliased"],
        temporary_bytes=sizes["preallocated-temp"],
        buffers=buffers,
        unused_bytes=sizes["preallocated-temp"] - sum(buffer.bytes for buffer in buffers),
        aliases=tuple(hlo.aliases.items()),
        output_shardings=output_shardings,
    )


def _live_ranges(path: Path) -> dict[tuple[str, str], tuple[int, int]]:
    with path.open(encoding="utf-8") as lines:
        found = (match for line in lines if (match := _RANGE.match(line)))
        return {(name, index): (int(first), int(last)) for name, index, first, last in (m.groups() for m in found)}


def _values(path: Path, ranges: dict[tuple[str, str], tuple[int, int]]) -> tuple[list[_Value], Counter[str]]:
    """The values of temporary memory whose life is known, and the bytes of the allocations of each kind."""
    values, sizes, kind = [], Counter[str](), ""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if match := _ALLOCATION.match(line):
                kind = "" if _ON_HOST in match[2] else match[2]
                sizes.update(dict.fromkeys(_kinds(kind), int(match[1])))
            elif "preallocated-temp" in kind and (match := _VALUE.match(line)):
                name, index, size, offset, shape = match.groups()
                if (life := ranges.get((name, index or ""))) and int(size):
                    tensor = found[0] if (found := _SHAPE.search(shape)) else ""
                    values.append(_Value(name, int(size), int(offset), tensor, *life))
    return values, sizes


def _kinds(text: str) -> list[str]:
    """Those of an allocation: `parameter`, `maybe-live-out`, both and then `aliased`, or `preallocated-temp`."""
    kinds = [kind for kind in ("parameter", "maybe-live-out", "preallocated-temp") if kind in text]
    return [*kinds, "aliased"] if kinds[:2] == ["parameter", "maybe-live-out"] else kinds


def _at_peak(values: list[_Value], hlo: Hlo) -> Iterator[Buffer]:
    """What is alive at the fullest moment, without the bytes that two values share.

    Not the moment that XLA's own text calls the peak: that counts state of loops twice, which has one place.
    """
    moment = max({value.first for value in values}, key=lambda at: (_used_bytes(values, at), -at), default=None)
    if moment is None:
        return
    alive = defaultdict(list)
    for value in values:
        if value.first <= moment <= value.last:
            alive[value.offset, value.bytes].append(value)
    end = 0
    for (offset, size), sharers in sorted(alive.items(), key=lambda item: (item[0][0], -item[0][1])):
        own = offset + size - max(end, offset)
        end = max(end, offset + size)
        if own > 0:
            teller = max(sharers, key=lambda value: hlo.says(value.name))
            op_name, source, argument = hlo.origin(teller.name)
            born = min(value.first for value in sharers)
            yield Buffer(bytes=own, born=born, tensor=teller.tensor, op_name=op_name, source=source, argument=argument)


def _used_bytes(values: Iterable[_Value], moment: int) -> int:
    """The union of the ranges in use at instruction `moment`."""
    used = end = 0
    for offset, size in sorted((v.offset, v.bytes) for v in values if v.first <= moment <= v.last):
        used += max(0, offset + size - max(offset, end))
        end = max(end, offset + size)
    return used
