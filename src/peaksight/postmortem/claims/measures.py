"""What was tried or is proposed: what was in place already, what had no effect, and what half a batch saves."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peaksight.postmortem.claims.parts import GB, Budget, budgets, line_of
from peaksight.records import Check, Claim

_TRIED = re.compile(
    r"\b(?:even (?:after|with)|despite) (?P<a>(?:[^.\n]|\.\d){4,120}?),? (?:[\w-]+ ){0,3}still (?:[\w-]+ ){0,3}?"
    r"(?:oom|out of memory|fail|crash|run)"
    r"|\b(?:tried|tested) (?P<b>(?:[^.\n]|\.\d){4,120}?),? (?:but|and) (?:\w+ ){0,2}"
    r"(?:still|not help|n't help|no (?:effect|difference|change)|same|nothing)"
    r"|(?P<c>[^.\n|]{4,80}?) (?:had|made) (?:absolutely )?no (?:effect|difference)",
    re.I,
)
_SAME = re.compile(
    r"(?P<name>\b\w+)\s?=\s?(?P<value>[\w.]+)`?[^.\n]{0,20}\bcurrent(?:ly)?\b[^.\n]{0,20}?(?P=name)\s?=\s?(?P=value)\b",
    re.I,
)
_ALREADY = re.compile(r"^\s{0,6}(?:[-*]\s+)?\**already (?:enabled|active|on\b|in use|used|set|applied)", re.I | re.M)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
_FENCED = re.compile(r"^```[\s\S]*?^```", re.M)
_PERCENT_ROW = re.compile(r"^\|\s?\**([^|]{3,60}?)\**\s?\|[^|\n]{0,10}?(\d{1,2})(?:\s?[-\u2013]\s?\d{1,2})?\s?%", re.M)
_PERCENT = re.compile(
    r"(?:memory|peak)[^.\n|]{0,30}?\bby ~?(\d{2})\s?%|(?<![-\u2013\d])~?(\d{2})\s?% (?:peak |of )?memory\b", re.I
)
_IN_ROW = re.compile(r"batch(?:[_ ]size)?\s?=\s?(\d+)", re.I)
_HALF = range(45, 56)
_WORDS = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading and what stands under it, from `start` on."""

    heading: str
    body: str
    start: int


def check_measures(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """Each measure of the text whose effect can be judged."""
    sections = _sections(text)
    yield from _tried(text)
    yield from _as_it_is(text)
    yield from _counted_again(text, sections)
    yield from _half_the_batch(text, sections, rows)


def _sections(text: str) -> list[_Section]:
    heads = list(_HEADING.finditer(_FENCED.sub(lambda fenced: fenced[0].replace("#", " "), text)))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [_Section(h[1].strip("# *"), text[h.end() : end], h.end()) for h, end in zip(heads, ends, strict=False)]


def _tried(text: str) -> Iterator[Check]:
    for match in _TRIED.finditer(text):
        what = " ".join(next(group for group in match.groups() if group).replace("*", "").split()).lstrip("-# ")
        yield Check(name="tried", text=f"line {line_of(text, match.start())}: {what}", holds=True)


def _as_it_is(text: str) -> Iterator[Check]:
    """A setting that is proposed, with the value that it has."""
    for match in _SAME.finditer(text):
        said = f"line {line_of(text, match.start())} proposes {match['name']}={match['value']}, which it is already"
        yield Check(name="already-in-place", text=f"{said}: nothing is saved.", holds=False)


def _counted_again(text: str, sections: Sequence[_Section]) -> Iterator[Check]:
    """What was on already when it failed, and is in a table of what was saved."""
    for section in sections:
        already = _ALREADY.search(section.body)
        row = already and next((r for r in _PERCENT_ROW.finditer(text) if _is_of(r[1], section.heading)), None)
        if already and row:
            line = line_of(text, section.start + already.end())
            said = f"{row[1].strip()} was in place already (line {line}): it is part of the peak that failed"
            text_ = f"{said}, and the {row[2]} % of line {line_of(text, row.end())} are not saved from that."
            yield Check(name="already-in-place", text=text_, holds=False)


def _is_of(label: str, heading: str) -> bool:
    """Whether both name one thing: every word of three letters of the shorter is in the other."""
    one, other = (set(_WORDS.findall(words.lower())) for words in (label, heading))
    return bool(one) and one <= other


def _half_the_batch(text: str, sections: Sequence[_Section], rows: Sequence[Claim]) -> Iterator[Check]:
    """`batch 8 -> 4: 50 % of the memory`: only what depends on the batch is halved."""
    line = next(_halves(text, sections), None)
    if line is None:
        return
    said = f"line {line} says that half the batch halves memory"
    scaled = next((found for budget in budgets(rows) if (found := _of_the_batch(budget))), None)
    if scaled is None:
        why = "parameters, gradients and optimizer state do not depend on it, only activations do"
        yield Check(name="belief", text=f"{said}: {why}.", holds=False)
        return
    half, whole = scaled[0] / 2, scaled[1]
    share = f"of {whole / GB:.3g} GB only {2 * half / GB:.3g} GB are said to depend on it"
    holds = half / whole > 0.45
    yield Check(name="half-the-batch", text=f"{said}; {share}: it saves {100 * half / whole:.0f} %.", holds=holds)


def _of_the_batch(budget: Budget) -> tuple[float, float] | None:
    """The bytes of the rows that name a batch, and of all."""
    scaled = sum(row.high_bytes for row in budget.parts if _IN_ROW.search(row.label))
    return (scaled, sum(row.high_bytes for row in budget.parts)) if scaled else None


def _halves(text: str, sections: Sequence[_Section]) -> Iterator[int]:
    for section in sections:
        if "batch" in section.heading.lower():
            for match in _PERCENT.finditer(section.body):
                if int(match[1] or match[2]) in _HALF:
                    yield line_of(text, section.start + match.start())
    for row in _PERCENT_ROW.finditer(text):
        if re.search(r"\bbatch", row[1], re.I) and int(row[2]) in _HALF:
            yield line_of(text, row.end())
