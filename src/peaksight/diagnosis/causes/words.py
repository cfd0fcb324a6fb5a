"""Causes that words point to, from words.toml."""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from peaksight.diagnosis.rules import Case, Finding, quoted
from peaksight.records import Cause, Confidence


def words(case: Case) -> Iterator[Finding]:
    """Every entry of words.toml whose clues the log has; only for a device's memory.

    A post-mortem in prose names what its author believes: its words are no evidence.
    """
    if not case.is_device or case.is_prose:
        return
    for entry in _entries():
        if _applies(entry, case):
            yield _finding(entry, case)


def _applies(entry: dict, case: Case) -> bool:
    wanted = (entry["clues"], *entry.get("also", ()))
    if not all(case.clue(*slugs) for slugs in wanted) or any(case.clue(slug) for slug in entry.get("without", ())):
        return False
    phases = entry.get("phases")
    return phases is None or case.phase in phases


def _finding(entry: dict, case: Case) -> Finding:
    clues = [case.clue(*slugs) for slugs in (entry["clues"], *entry.get("also", ()))]
    evidence = [quoted(clue) for clue in clues if clue]
    if entry.get("phases") and case.phase:
        evidence.append(f"it failed in the phase: {case.phase}")
    cause = Cause(
        kind=entry["kind"],
        title=entry["title"],
        confidence=Confidence(entry["confidence"]),
        evidence=tuple(evidence),
        try_first=entry["try_first"],
    )
    return Finding(cause, entry["weight"])


@cache
def _entries() -> list[dict]:
    text = (files("peaksight.diagnosis.causes") / "words.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text).values())
