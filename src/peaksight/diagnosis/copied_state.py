"""Copies of parameters, buffers and optimizer states on the card, and when they were made."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping

from peaksight.diagnosis.evidence import Evidence
from peaksight.records import Allocation, Phase, Role

_OF_THE_MODEL = {Role.PARAMETER, Role.BUFFER, Role.OPTIMIZER_STATE}


def copies_of_state(evidence: Evidence) -> Iterator[tuple[Allocation, Allocation]]:
    """Each copy of a block of the model or of its optimizer that is there beside its original, and the original.

    What a call of a model makes, as casts under autocast, is none; nor is what an optimizer makes in its step.
    """
    born = evidence.by_birth
    for allocation in evidence.capture.allocations:
        original = _original(allocation, born)
        if original is not None and _is_beside(allocation, original) and not _is_inside(evidence, allocation):
            yield allocation, original


def _original(allocation: Allocation, born: Mapping[int, Allocation]) -> Allocation | None:
    """What `allocation` is a copy of, or a copy of a copy."""
    original = born.get(allocation.copy_of)
    while original is not None and original.role not in _OF_THE_MODEL:
        original = born.get(original.copy_of)
    return original


def _is_beside(copy: Allocation, original: Allocation) -> bool:
    """Whether the copy is of the whole, and lives beside what it was made of: a model that is cast is none."""
    if copy.phase in (Phase.OPTIMIZER, Phase.BACKWARD) or copy.role in (Role.GRADIENT, Role.OPTIMIZER_STATE):
        return False
    return original.died is None or (copy.died is not None and original.died >= copy.died)


def _is_inside(evidence: Evidence, allocation: Allocation) -> bool:
    """Whether a call of a model made it, be it one that an out-of-memory error cut short, which is no pass."""
    if allocation.module and allocation.role not in _OF_THE_MODEL:
        return True
    calls = evidence.capture.passes
    place = bisect_right([call.first_tick for call in calls], allocation.born)
    return place > 0 and calls[place - 1].last_tick >= allocation.born
