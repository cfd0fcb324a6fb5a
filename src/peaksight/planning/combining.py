"""Candidates joined, and what their join is expected to come to before it is simulated."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from peaksight.records import Phase
from peaksight.records.plan import worst_effect
from peaksight.records.proposals import Candidate, Outcome, Tried

NOTHING = Candidate(kinds=(), title="as it is", slots=(), effect=worst_effect(()))


def joined(candidates: Sequence[Candidate]) -> Candidate:
    """One candidate of several, which have no slot in common."""
    if len(candidates) == 1:
        return candidates[0]
    return Candidate(
        kinds=tuple(kind for each in candidates for kind in each.kinds),
        title=" + ".join(each.title for each in candidates) or NOTHING.title,
        slots=tuple(slot for each in candidates for slot in each.slots),
        effect=worst_effect(tuple(each.effect for each in candidates)),
        changes=tuple(change for each in candidates for change in each.changes),
        arguments=next((each.arguments for each in candidates if each.arguments is not None), None),
        cautions=tuple(dict.fromkeys(caution for each in candidates for caution in each.cautions)),
    )


def is_part(candidate: Candidate, whole: Candidate) -> bool:
    """Whether `whole` is a join that has `candidate` in it, or is it."""
    same_arguments = candidate.arguments is None or candidate.arguments == whole.arguments
    changes_as_much = all(change in whole.changes for change in candidate.changes)
    return same_arguments and changes_as_much and set(candidate.kinds) <= set(whole.kinds)


def all_but_one(whole: Candidate, candidates: Iterable[Candidate]) -> list[tuple[Candidate, Candidate]]:
    """Each of `candidates` that is a part of `whole`, with the join of the others."""
    parts = [each for each in candidates if is_part(each, whole)]
    return [(part, joined([each for each in parts if each is not part])) for part in parts]


def combinations(tried: Iterable[Tried]) -> Iterator[tuple[Tried, ...]]:
    """Every choice of at most one of `tried` for each slot, the empty one too."""
    by_slot: dict[tuple[str, ...], list[Tried]] = {}
    for each in tried:
        by_slot.setdefault(each.candidate.slots, []).append(each)
    for choice in product(*([None, *options] for options in by_slot.values())):
        chosen = tuple(each for each in choice if each is not None)
        slots = [slot for each in chosen for slot in each.candidate.slots]
        if len(slots) == len(set(slots)):
            yield chosen


def expected_bytes(original: Outcome, parts: Sequence[Tried]) -> int:
    """The reserved peak of the join: in every phase what each part saves there by itself is saved.

    What lies between allocated and reserved is taken to stay as it is in proportion.
    """
    phases = _phases(original)
    left = dict(phases)
    for part in parts:
        found = _phases(part.outcome)
        for phase, size in phases.items():
            left[phase] -= size - found.get(phase, 0)
    peak = max([*left.values(), 0])
    slack = original.reserved_bytes / max(1, original.allocated_bytes)
    return round(peak * slack)


def expected_cost(original: Outcome, parts: Sequence[Tried]) -> float:
    """The cost of a step with the join: the slow-down of each part by itself, multiplied."""
    cost = original.cost
    for part in parts:
        if original.cost and part.outcome.cost:
            cost *= part.outcome.cost / original.cost
    return cost


def _phases(outcome: Outcome) -> Mapping[Phase, int]:
    return {each.phase: each.allocated_bytes for each in outcome.phases}
