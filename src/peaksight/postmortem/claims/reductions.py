"""Percentages: from one size to another, of a whole, and several together."""

import re
from collections.abc import Iterator

from peaksight.postmortem.claims.rows import NUMBER, UNITS, number
from peaksight.records import Check

_ARROW = r"(?:\u2192|->|=>)"
_CHANGE = re.compile(
    rf"(?<![\w.])({NUMBER})\s?(?:GB|MB|tokens)?\s?{_ARROW}\s?({NUMBER})\s?(?:GB|MB|tokens)?\s?[(|]\s?~?(\d{{1,2}}(?:\.\d+)?)\s?%\s?(?:reduction|less|smaller|saved|savings?)?",
    re.I,
)
_SHARE = re.compile(
    rf"({NUMBER})(?:\s?[-\u2013]\s?({NUMBER}))?\s?(GB|MB)\s?/\s?({NUMBER})\s?(GB|MB)\s?\((\d{{1,3}})(?:\s?[-\u2013]\s?(\d{{1,3}}))?\s?%",
    re.I,
)
_ROW = re.compile(r"^\|\s?\**([^|]{3,60}?)\**\s?\|\s?\**~?(\d{1,2})(?:\s?[-\u2013]\s?(\d{1,2}))?\s?%[^|]*\|\s*$", re.M)
_TOGETHER = re.compile(r"combined|total|overall", re.I)
_SQUARED = re.compile(r"quadratic|\bsquared\b|O\(n(?:\^2|\u00b2|\*\*2)\)", re.I)
_OF_ATTENTION = re.compile(r"(?<![\d-])(\d{1,2})(?:\s?[-\u2013]\s?(\d{1,2}))?\s?% (?:for|of|in) attention", re.I)
_LENGTHS = re.compile(
    rf"(?:input|target|source|length|len|tokens|sequence)\w*`?:?\s({NUMBER})\s?{_ARROW}\s?({NUMBER})\b", re.I
)
_POINTS = 1.5


def check_reductions(text: str) -> Iterator[Check]:
    """Each percentage that can be worked out."""
    for match in _CHANGE.finditer(text):
        yield from _change(match)
    for match in _SHARE.finditer(text):
        yield from _share(match)
    yield from _together(text)
    yield from _quadratic(text)


def _change(match: re.Match[str]) -> Iterator[Check]:
    before, after, said = number(match[1]), number(match[2]), float(match[3])
    if before > 0 and after < before:
        percent = 100 * (1 - after / before)
        text = f"{match[1]} to {match[2]} is {percent:.1f} % less; the text says {said:g} %."
        yield Check(name="percent", text=text, holds=abs(percent - said) <= _POINTS)


def _quadratic(text: str) -> Iterator[Check]:
    """What shorter sequences save where memory goes with the length squared, if the text says so."""
    said = _OF_ATTENTION.search(text)
    changes = [(number(m[1]), number(m[2])) for m in _LENGTHS.finditer(text) if number(m[2]) < number(m[1])]
    if said is None or not changes or not _SQUARED.search(text):
        return
    percents = [100 * (1 - (after / before) ** 2) for before, after in changes]
    low, high = float(said[1]), float(said[2] or said[1])
    holds = low - _POINTS <= min(percents) and max(percents) <= high + _POINTS
    shown = " and ".join(f"{percent:.0f} %" for percent in dict.fromkeys(percents))
    text_ = (
        f"Of matrices of length x length these lengths save {shown}; the text says {said[0].strip()}, of them alone."
    )
    yield Check(name="quadratic", text=text_, holds=holds)


def _share(match: re.Match[str]) -> Iterator[Check]:
    whole = number(match[4]) * UNITS[match[5].lower()]
    parts = [number(part) * UNITS[match[3].lower()] for part in (match[1], match[2]) if part]
    said = [float(part) for part in (match[6], match[7]) if part]
    if whole <= 0 or len(parts) != len(said):
        return
    percents = [100 * part / whole for part in parts]
    holds = all(abs(percent - claimed) <= _POINTS for percent, claimed in zip(percents, said, strict=True))
    shown = " to ".join(f"{percent:.1f}" for percent in percents)
    yield Check(name="percent", text=f"{match[0]} ...): it is {shown} %.", holds=holds)


def _together(text: str) -> Iterator[Check]:
    """Reductions multiply: two of 50 % leave a quarter."""
    low_left = high_left = 1.0
    count = 0
    for match in _ROW.finditer(text):
        low, high = float(match[2]), float(match[3] or match[2])
        if not _TOGETHER.search(match[1]):
            low_left, high_left, count = low_left * (1 - low / 100), high_left * (1 - high / 100), count + 1
        elif count >= 2:
            least, most = 100 * (1 - low_left), 100 * (1 - high_left)
            said = f"{match[2]}-{match[3]}" if match[3] else match[2]
            holds = low >= least - 3 and high <= most + 3
            together = f"{count} reductions multiply to {least:.0f} to {most:.0f} %; the text says {said} % together."
            yield Check(name="reductions-together", text=together, holds=holds)
            low_left = high_left = 1.0
            count = 0
