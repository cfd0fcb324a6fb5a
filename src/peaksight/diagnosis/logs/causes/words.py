"""Causes that words point to, from words.toml."""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from peaksight.diagnosis.logs.case import Case, Finding, quoted
from peaksight.records import Cause, Clue, Confidence

# Lines from the failure within which a word is taken to be about it.
_NEAR = 60
# The innermost lines of the traceback are nearer to the failure than a word anywhere.
_INNERMOST = 20


def words(case: Case) -> Iterator[Finding]:
    """Every entry of words.toml whose clues the log has; only for a device's memory.

    A post-mortem in prose names what its author believes: its words are no evidence.
    """
    if not case.is_device or case.is_prose or _is_an_ordinary_log(case):
        return
    for entry in _entries():
        if _applies(entry, case):
            yield _finding(entry, case)


def _is_an_ordinary_log(case: Case) -> bool:
    """A long text without a message that does not even mention memory: its words explain nothing."""
    return case.message is None and case.evidence.num_lines > _NEAR and case.clue("mentions-memory") is None


def _applies(entry: dict[str, Any], case: Case) -> bool:
    wanted = (entry["clues"], *entry.get("also", ()))
    if not all(case.clue(*slugs) for slugs in wanted) or any(case.clue(slug) for slug in entry.get("without", ())):
        return False
    phases = entry.get("phases")
    return phases is None or case.phase in phases


def _finding(entry: dict[str, Any], case: Case) -> Finding:
    """Words far from the failure only make a cause possible; those on the innermost lines of the stack weigh more."""
    clues = [clue for slugs in (entry["clues"], *entry.get("also", ())) if (clue := case.clue(*slugs))]
    distance = min(_distance(clue, case) for clue in clues)
    cause = Cause(
        kind=entry["kind"],
        title=entry["title"],
        confidence=Confidence(entry["confidence"]) if distance <= _NEAR else Confidence.POSSIBLE,
        evidence=(*map(quoted, clues), *([f"it failed in the phase: {case.phase}"] if entry.get("phases") else [])),
        try_first=entry["try_first"],
    )
    nearness = _INNERMOST if case.message and distance == 0 else 0 if distance <= _NEAR else -_INNERMOST
    return Finding(cause, entry["weight"] + nearness)


def _distance(clue: Clue, case: Case) -> int:
    """Lines from a clue to the message; to the nearer end of a text without one."""
    at = case.message.line if case.message else min(_NEAR, case.evidence.num_lines)
    return abs(at - clue.line)


@cache
def _entries() -> list[dict[str, Any]]:
    text = (files("peaksight.diagnosis.logs.causes") / "words.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text).values())
