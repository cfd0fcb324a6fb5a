"""Losses that are one backward pass for several graphs: what a backward pass for each would free."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, TermFact
from peaksight.units import format_bytes

MIN_MICRO_BATCHES = 3


def terms_finding(evidence: Evidence, rule: str, counts: Callable[[int], bool]) -> Finding | None:
    """A finding of `rule` where terms wait for one backward pass, as many as `counts` takes; None where none do."""
    sums = [terms for terms in _sums(evidence) if counts(len(terms))]
    waiting = {a: tick for terms in sums for a, tick in _done_earlier(evidence, terms)}
    saved = evidence.saved_by_freeing(waiting)
    if not sums or not is_notable(evidence, saved):
        return None
    held = [a for a in evidence.live if a in waiting]
    passes = {fact.number: fact for fact in evidence.capture.backwards}
    at = next((passes[a.backward].at for a in held if a.backward in passes), "")
    num_terms = max(map(len, sums))
    return Finding(
        rule=rule,
        title=f"{num_terms} graphs wait for one backward pass, {format_bytes(total_bytes(held))} before the last one",
        bytes=saved,
        evidence=(
            f"the backward pass at {at} goes through {num_terms} terms that have no node in common",
            *largest_lines(held),
        ),
        fixes=(
            Fix(
                kind="backward-each",
                text="Call backward() on each term before the forward of the next; gradients add up.",
                effect=Effect.ROUNDING,
                saves_bytes=saved,
            ),
        ),
        basis=Basis.LIFETIME,
        at=main_line(held),
    )


def _sums(evidence: Evidence) -> Iterator[Sequence[TermFact]]:
    """The terms of each backward pass that has several."""
    for _, terms in groupby(evidence.capture.terms, key=lambda term: term.backward):
        yield tuple(terms)


def _done_earlier(evidence: Evidence, terms: Sequence[TermFact]) -> Iterator[tuple[Allocation, int]]:
    """What each term saves, with the tick at which the next one begins."""
    begins = [term.first_born for term in terms]
    for allocation in evidence.saved_by_pass.get(terms[0].backward, ()):
        following = bisect_right(begins, allocation.born)
        if 0 < following < len(begins):
            yield allocation, begins[following] - 1
