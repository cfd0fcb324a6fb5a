"""The live set as flame graphs for speedscope.app: https://www.speedscope.app/file-format-schema.json.

Widths are bytes. Each moment is there twice: from the module tree to the line to the tensor, and from the category.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from peaksight import __version__
from peaksight.records import Holder, Report
from peaksight.reporting.sentences import verdict

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_NO_MODULE, _NO_LINE = "(outside any module)", "(no line)"


class _Frame(NamedTuple):
    """What speedscope draws as one box; `file` is the path of a module where it is the box of one.

    `file` and `line` are empty and 0 where there are none.
    """

    name: str
    file: str = ""
    line: int = 0


_Stack = tuple[_Frame, ...]


def report_to_speedscope(report: Report) -> bytes:
    """The live set at the peak, and what was alive when memory ran out."""
    frames: dict[_Frame, int] = {}
    moments = [("peak", report.live_at_peak)]
    if report.oom is not None and report.oom.live:
        moments.append(("out of memory", report.oom.live))
    profiles = [
        _profile(f"{moment}, by {order}", holders, stack_of, frames)
        for moment, holders in moments
        for order, stack_of in (("module", _by_module), ("category", _by_category))
    ]
    file = {
        "$schema": _SCHEMA,
        "name": verdict(report),
        "exporter": f"peaksight {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [_told(frame) for frame in frames]},
        "profiles": profiles,
    }
    return msgspec.json.encode(file)


def _profile(
    name: str, holders: Sequence[Holder], stack_of: Callable[[Holder], Iterator[_Frame]], frames: dict[_Frame, int]
) -> dict[str, Any]:
    """A sample for each of `holders`, those of one module beside each other; `frames` numbers all."""
    stacks = sorted((tuple(stack_of(holder)), holder.bytes) for holder in holders)
    return {
        "type": "sampled",
        "name": name,
        "unit": "bytes",
        "startValue": 0,
        "endValue": sum(holder.bytes for holder in holders),
        "samples": [_numbered(stack, frames) for stack, _ in stacks],
        "weights": [size for _, size in stacks],
    }


def _numbered(stack: Iterable[_Frame], frames: dict[_Frame, int]) -> list[int]:
    return [frames.setdefault(frame, len(frames)) for frame in stack]


def _by_module(holder: Holder) -> Iterator[_Frame]:
    yield from _modules(holder.module)
    yield _line(holder.source)
    yield _Frame(f"{holder.category.replace('_', ' ')}: {_tensor(holder)}")


def _by_category(holder: Holder) -> Iterator[_Frame]:
    yield _Frame(holder.category.replace("_", " "))
    yield _line(holder.source)
    yield _Frame(holder.module or _NO_MODULE)
    yield _Frame(_tensor(holder))


def _modules(module: str) -> Iterator[_Frame]:
    """One for each part of the path, told from others of its name by the path."""
    if not module:
        yield _Frame(_NO_MODULE)
        return
    paths = accumulate(module.split("."), lambda path, part: f"{path}.{part}")
    yield from (_Frame(path.rpartition(".")[2], path) for path in paths)


def _line(source: str) -> _Frame:
    file, _, line = source.rpartition(":")
    return _Frame(source, file, int(line)) if line.isdigit() else _Frame(source or _NO_LINE)


def _tensor(holder: Holder) -> str:
    """The dtype and shape where they are known, and the operator that made it."""
    return " ".join(part for part in (holder.tensor, holder.op) if part)


def _told(frame: _Frame) -> dict[str, Any]:
    place = {"file": frame.file, "line": frame.line}
    return {"name": frame.name} | {key: value for key, value in place.items() if value}
