"""Windows of a log -> messages, each with its rank, its place in the person's code, and the step."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from peaksight.postmortem.dialects import DIALECTS
from peaksight.postmortem.grammar import Dialect
from peaksight.postmortem.ranks import RankText, split_ranks
from peaksight.postmortem.times import time_of
from peaksight.postmortem.tracebacks import place_of, step_before
from peaksight.postmortem.windows import Window
from peaksight.records import OomMessage

MAX_MESSAGES = 400
MAX_WARNINGS = 40
# A traceback begins no further before its message than this.
_REACH = 24 << 10
# Messages of one rank that agree so far are one message printed again.
_SAME = 300


def parse_window(window: Window) -> list[OomMessage]:
    """Every message in `window`, in the order of the log."""
    messages = [message for own in split_ranks(window.text, window.first_line) for message in _parse_rank(own)]
    return sorted(messages, key=lambda message: message.line)


def _parse_rank(own: RankText) -> Iterator[OomMessage]:
    """The messages of one rank."""
    text = own.text
    line_starts = [0]
    for part in own.parts:
        line_starts.append(line_starts[-1] + len(part) + 1)
    begins = _beginnings(text)
    seen: set[str] = set()
    borders = [*(start for start, _, _ in begins), len(text)][1:]
    for (start, _, dialect), border in zip(begins, borders, strict=True):
        body = text[start : min(border, start + dialect.span)]
        if body[:_SAME] in seen:
            continue
        seen.add(body[:_SAME])
        line = own.lines[min(bisect_right(line_starts, start) - 1, len(own.lines) - 1)]
        message = dialect.parse(body, line)
        before = text[max(start - _REACH, 0) : start]
        place = {} if dialect.is_warning else _place(before, body)
        yield replace(message, rank=own.rank, **place)


def _place(before: str, body: str) -> dict[str, Any]:
    """Where and when a message was printed."""
    return place_of(before, body) | {"step": step_before(before), "time": time_of(before, body)}


def _beginnings(text: str) -> list[tuple[int, int, Dialect]]:
    """Where messages begin, the end of their first words, and their dialect; one begins at a place."""
    found: dict[int, tuple[int, Dialect]] = {}
    for dialect in DIALECTS:
        for start, end in dialect.starts(text):
            found.setdefault(start, (end, dialect))
    ordered = [(start, *found[start]) for start in sorted(found)]
    return _fewer_warnings(_without_repeats(ordered))


def _fewer_warnings(begins: list[tuple[int, int, Dialect]]) -> list[tuple[int, int, Dialect]]:
    """The first failures and the first warnings, in their order."""
    warnings = [begin for begin in begins if begin[2].is_warning][:MAX_WARNINGS]
    failures = [begin for begin in begins if not begin[2].is_warning][:MAX_MESSAGES]
    return sorted(warnings + failures, key=lambda begin: begin[0])


def _without_repeats(begins: list[tuple[int, int, Dialect]]) -> list[tuple[int, int, Dialect]]:
    """Leave out what begins inside the first words of the message before it."""
    kept: list[tuple[int, int, Dialect]] = []
    for start, end, dialect in begins:
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, dialect))
    return kept


def is_same(one: OomMessage, other: OomMessage) -> bool:
    """Whether `other` repeats `one`, as Python prints an exception that was raised again."""
    return (one.text[:200], one.rank, one.dialect) == (other.text[:200], other.rank, other.dialect)
