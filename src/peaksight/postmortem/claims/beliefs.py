"""Statements that are often made about memory and are not so, from beliefs.toml."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from peaksight.records import Check

_QUOTE = 110


def check_beliefs(text: str) -> Iterator[Check]:
    """Each statement of the table that `text` makes, with what is so."""
    for pattern, truth in _beliefs():
        if match := pattern.search(text):
            quote = " ".join(match[0].replace("*", "").split())[:_QUOTE]
            line = text.count("\n", 0, match.start()) + 1
            yield Check(name="belief", text=f'line {line}, "{quote}": {truth}', holds=False)


@cache
def _beliefs() -> list[tuple[re.Pattern[str], str]]:
    table = tomllib.loads((files("peaksight.postmortem.claims") / "beliefs.toml").read_text(encoding="utf-8"))
    return [
        (re.compile("|".join(f"(?:{words})" for words in entry["words"]), re.I), entry["truth"])
        for entry in table.values()
    ]
