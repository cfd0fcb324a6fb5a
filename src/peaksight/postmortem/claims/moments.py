"""When it is said to fail: what a budget counts that does not exist yet at that time, and what was measured then."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from peaksight.postmortem.claims.parts import (
    GB,
    GRADIENTS,
    NUMBER,
    OPTIMIZER,
    Budget,
    budgets,
    cards,
    is_parameters,
    size,
)  # fmt: skip
from peaksight.records import Check, Claim

_FAILS = r"(?:\boom(?:s|ed)?\b|out of memory|\bfail\w*|\bcrash\w*)[^.\n]{0,80}?"
_INIT = re.compile(rf"{_FAILS}(?:\bduring|\bin|\bat) (?:\w+ )?init(?:iali[sz]ation|iali[sz]ing)?\b", re.I)
_FIRST_FORWARD = re.compile(rf"{_FAILS}\b(?:first|very first) forward", re.I)
_FIRST_STEP = re.compile(rf"{_FAILS}(?:\bfirst (?:batch|step|iteration)\b|\((?:batch|step|iteration) [01]\))", re.I)
_IN_FORWARD = re.compile(r"\bforward(?: pass)? alone\b|\b(?:during|in) the forward\b", re.I)
_ALLOCATED = re.compile(rf"({NUMBER})\s?(GB|GiB) (?:already |is |are )?allocated", re.I)
_CLEARLY = 1.15


@dataclass(frozen=True, slots=True)
class _Moment:
    """A time in a training: its name, what there is not yet, and whether a row is of that."""

    name: str
    missing: str
    is_missing: Callable[[Claim], bool]


def _not_in_forward(row: Claim) -> bool:
    return bool(GRADIENTS.search(row.label) or OPTIMIZER.search(row.label))


def _not_in_init(row: Claim) -> bool:
    return not (is_parameters(row) or OPTIMIZER.search(row.label))


_FORWARD = _Moment("In the first forward", "gradients and optimizer state", _not_in_forward)
_AT_START = _Moment(
    "While a model is initialized", "gradients, activations and caches", _not_in_init
)  # fmt: skip


def check_moments(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """The first budget of which something does not exist yet when it is said to fail."""
    moment = _moment(text)
    found = next((b for b in budgets(rows) if moment and any(map(moment.is_missing, b.parts))), None)
    if moment is None or found is None:
        return
    there = [row for row in found.parts if not moment.is_missing(row)]
    if there:
        yield from _explains(moment, found, there, cards(text))
        yield from _measured(moment, there, text)


def _moment(text: str) -> _Moment | None:
    if _FIRST_FORWARD.search(text) or (_FIRST_STEP.search(text) and _IN_FORWARD.search(text)):
        return _FORWARD
    return _AT_START if _INIT.search(text) else None


def _explains(moment: _Moment, budget: Budget, there: Sequence[Claim], sizes: Sequence[int]) -> Iterator[Check]:
    """Whether what exists by then fills the smallest card that is named."""
    if not sizes:
        return
    left = sum(row.high_bytes for row in there)
    said = f"{moment.name} there are no {moment.missing} yet: of {budget.total.printed} ({budget.total.label})"
    rest = f"{said} at most {left / GB:.3g} GB exist then, beside a card of {min(sizes) / GB:.0f} GB"
    holds = left >= 0.85 * min(sizes)
    verdict = "" if holds else ": this sum does not explain a failure there"
    yield Check(name="not-there-yet", text=f"{rest}{verdict}.", holds=holds)


def _measured(moment: _Moment, there: Sequence[Claim], text: str) -> Iterator[Check]:
    """Whether the rows reach what is said to have been allocated when it failed."""
    if match := _ALLOCATED.search(text):
        allocated, named = size(match[1], match[2]), sum(row.high_bytes for row in there)
        said = f"{match[1]} {match[2]} were allocated; the rows without {moment.missing} come to {named / GB:.3g} GB"
        holds = named / _CLEARLY <= allocated <= named * _CLEARLY
        rest = "" if holds else f": {abs(allocated - named) / GB:.3g} GB are {_where(allocated, named)}"
        yield Check(name="rows-and-measured", text=f"{said}{rest}.", holds=holds)


def _where(allocated: float, named: float) -> str:
    return "in no row" if allocated > named else "in rows and not on the card"
