"""Schedules: how often something happens that a run does every so many steps, and not during a warm-up."""

import re
from collections.abc import Iterator

from peaksight.postmortem.claims.rows import number
from peaksight.records import Check

_COUNT = r"\d[\d,]{0,8}"
_STEPS = re.compile(rf"(?<!every )(?<![-\u2013\d,])\b({_COUNT}) (?:training |optimi[sz]er )?steps\b", re.I)
_EVERY = re.compile(r"\bevery (\d{1,7}) (?:training |optimi[sz]er )?steps\b", re.I)
_WARM_UP = re.compile(
    r"warm-?up[ _]?(?:steps)?\W{0,4}(?:steps 0\s?(?:-|\u2013|to)\s?(\d{1,7})|(?:of |= ?|: ?)(\d{1,7}))\b", re.I
)
_SKIPPED = re.compile(
    r"(?:\b(?:skip\w*|after|until|without)\b|\bnot (?:during|in)\b)[^.\n]{0,50}warm-?up|step > \S{0,20}warm", re.I
)
_TIMES = re.compile(rf"({_COUNT})\s?/\s?({_COUNT})\s?=\s?\**\s?({_COUNT}) times", re.I)
_SAVED = re.compile(
    rf"saves? (?:about |some |roughly |~)?({_COUNT}) [^.\n]{{0,50}}?\b(?:passes|calls|runs)\b[^.\n]{{0,60}}?"
    r"steps (\d{1,7})\s?(?:-|\u2013|to)\s?(\d{1,7})",
    re.I,
)
_CARDS = re.compile(r"\b(\d{1,5})\s?(?:x |\u00d7 ?)?(?:[A-Z]\d{2,3} )?GPUs\b")


def check_schedules(text: str) -> Iterator[Check]:
    """What is done every so many steps: how often in the run, and how often in the steps that are left out."""
    intervals = {int(match[1]) for match in _EVERY.finditer(text)}
    if len(intervals) != 1 or 0 in intervals:
        return
    (every,) = intervals
    yield from _in_the_run(text, every)
    yield from _left_out(text, every)


def _in_the_run(text: str, every: int) -> Iterator[Check]:
    """`2000 / 100 = 20 times`, of which those of a skipped warm-up are none."""
    total = max((int(number(match[1])) for match in _STEPS.finditer(text)), default=0)
    warm_up = next((int(match[1] or match[2]) for match in _WARM_UP.finditer(text)), None)
    if warm_up is None or not _SKIPPED.search(text) or not warm_up < total:
        return
    for match in _TIMES.finditer(text):
        steps, interval, said = (int(number(group)) for group in match.groups())
        if (steps, interval) == (total, every):
            left = range((warm_up // every + 1) * every, total, every)
            which = f" (steps {left[0]} to {left[-1]})" if left else ""
            happens = f"Every {every} of {total} steps, after a warm-up of {warm_up}, is {len(left)} times{which}"
            yield Check(name="schedule", text=f"{happens}; the text says {said}.", holds=said == len(left))


def _left_out(text: str, every: int) -> Iterator[Check]:
    """`saves 800 passes (steps 0-200)`: no more than there are on all cards together."""
    cards = max((int(match[1]) for match in _CARDS.finditer(text)), default=1)
    for match in _SAVED.finditer(text):
        said, first, last = (int(number(group)) for group in match.groups())
        count = sum(step % every == 0 for step in range(first, min(last, first + 10**6) + 1))
        on_all = f", {count * cards} on {cards} GPUs" if cards > 1 else ""
        happens = f"Every {every} steps is {count} times in steps {first} to {last}{on_all}"
        yield Check(name="schedule", text=f"{happens}; the text says {said}.", holds=said <= count * cards)
