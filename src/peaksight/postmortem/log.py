"""One log, from bytes to evidence."""

import codecs
import gzip
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO, TypeVar

from peaksight.postmortem.aborts import find_abort
from peaksight.postmortem.cards import find_card_names
from peaksight.postmortem.claims import read_claims
from peaksight.postmortem.facts import find_clues, find_command, find_facts, find_shapes
from peaksight.postmortem.messages import is_same, parse_window
from peaksight.postmortem.windows import Window, Windows, read_windows
from peaksight.records import Clue, Fact, LogEvidence, OomMessage

# Words are looked for in the head and around the first and the last failures, up to this many characters.
MAX_SEARCHED = 160_000
MAX_FACTS = 120
_NUM_INNERMOST = 3
_MAX_WITH_FRAMES = 8

# The summary that torchrun prints at its end names the rank that failed first.
_ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\)[\s\S]{0,400}?\brank\s{0,8}:\s{0,4}(\d{1,6})")

T = TypeVar("T")


def read_log(stream: BinaryIO, source: str) -> LogEvidence:
    """What the log in `stream` contains, read in one pass; `source` is what it is called."""
    kept = read_windows(as_utf8(stream))
    messages = _unrepeated([message for window in kept.in_order() for message in parse_window(window)])
    searched = _searched(kept)
    texts = [window.text for window in searched]
    facts = _facts(searched)
    root_cause = _root_cause_rank([*texts, kept.tail])
    has_figures = any(message.requested_bytes is not None for message in messages)
    claims, claim_checks = ((), ()) if has_figures else read_claims(kept.head, facts)
    return LogEvidence(
        sources=(source,),
        num_bytes=kept.num_bytes,
        num_lines=kept.num_lines,
        messages=messages,
        num_more_messages=kept.num_hits_passed,
        clues=_first_of([*_of_frames(messages), *_of_windows(searched)]),
        facts=facts,
        shapes=tuple(dict.fromkeys(shape for text in texts for shape in find_shapes(text))),
        claims=claims,
        claim_checks=claim_checks,
        samples=tuple(kept.samples),
        first_failing_rank=_first_rank(messages) if root_cause is None else root_cause,
        root_cause_rank=root_cause,
        command=find_command(texts),
        card_names=find_card_names(texts),
        abort=find_abort([*texts, kept.tail]),
    )


def _searched(kept: Windows) -> list[Window]:
    """The head, and windows as far as they are not in it; the last come before those in the middle."""
    head = Window(text=kept.head, first_line=1)
    seen_lines = kept.head.count("\n")
    windows = [window for window in kept.in_order() if window.first_line + window.text.count("\n") > seen_lines]
    chosen, size = [head], len(kept.head)
    for window in (*windows[:2], *reversed(windows[2:])):
        size += len(window.text)
        if size <= MAX_SEARCHED:
            chosen.append(window)
    return chosen


def _facts(windows: Iterable[Window]) -> tuple[Fact, ...]:
    """Each name and value once, where it stands first."""
    found: dict[tuple[str, int], Fact] = {}
    for window in windows:
        for fact in find_facts(window.text, window.first_line):
            found.setdefault((fact.name, fact.value), fact)
    return tuple(found.values())[:MAX_FACTS]


def _of_frames(messages: Iterable[OomMessage]) -> Iterator[Clue]:
    """Clues in the innermost lines of the tracebacks, which are nearest to the failure; their line is the message's."""
    for message in [message for message in messages if message.frames][:_MAX_WITH_FRAMES]:
        for frame in reversed(message.frames[-_NUM_INNERMOST:]):
            yield from (replace(clue, line=message.line) for clue in find_clues(frame, message.line))


def _of_windows(windows: Iterable[Window]) -> Iterator[Clue]:
    for window in windows:
        yield from find_clues(window.text, window.first_line)


def _first_of(clues: Iterable[Clue]) -> tuple[Clue, ...]:
    found: dict[str, Clue] = {}
    for clue in clues:
        found.setdefault(clue.slug, clue)
    return tuple(found.values())


def _root_cause_rank(texts: Iterable[str]) -> int | None:
    """The rank that failed first, as torchrun says it."""
    return next((int(match[1]) for text in texts if (match := _ROOT_CAUSE.search(text))), None)


def _first_rank(messages: tuple[OomMessage, ...]) -> int | None:
    """The rank of the first failure that has one."""
    return next((message.rank for message in messages if message.rank is not None and not message.is_warning), None)


def _unrepeated(messages: list[OomMessage]) -> tuple[OomMessage, ...]:
    """Python prints an exception again in every log that it passes: one is enough."""
    kept: list[OomMessage] = []
    for message in messages:
        if not any(is_same(message, earlier) for earlier in kept[-20:]):
            kept.append(message)
    return tuple(kept)


def as_utf8(stream: BinaryIO) -> BinaryIO:
    """`stream` unpacked if it is gzip, and as UTF-8 if it is UTF-16, as PowerShell writes what is redirected."""
    buffered = io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream
    start = _peek(buffered)
    if start.startswith(b"\x1f\x8b"):
        return as_utf8(io.BufferedReader(gzip.GzipFile(fileobj=buffered)))
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.EncodedFile(buffered, "utf-8", "utf-16", errors="replace")
    return buffered


def _peek(stream: BinaryIO) -> bytes:
    peek = getattr(stream, "peek", None)
    return peek(2)[:2] if peek else b""
