"""What is there because of the batch: its size decides over these bytes, that of the model over the rest."""

from collections.abc import Iterator

from peaksight.diagnosis.evidence import Evidence
from peaksight.records import Allocation, Category, Phase, Role

_CATEGORIES = {Category.ACTIVATION, Category.TEMPORARY, Category.INPUT}
_PHASES = {Phase.FORWARD, Phase.BACKWARD, Phase.EVALUATION, Phase.INIT}


def depends_on_input(evidence: Evidence, allocation: Allocation) -> bool:
    """Whether a smaller batch may make `allocation` smaller; of copies of weights, as autocast's, that is not so."""
    original = evidence.by_birth.get(allocation.copy_of)
    if original is not None and original.role is Role.PARAMETER:
        return False
    return allocation.phase in _PHASES and evidence.category(allocation) in _CATEGORIES


def depending_on_input(evidence: Evidence) -> Iterator[Allocation]:
    """Every block of the run that the batch may decide over."""
    return (a for a in evidence.capture.allocations if depends_on_input(evidence, a))


def saved_in_own_step(evidence: Evidence, allocation: Allocation) -> bool:
    """Whether `allocation` is an activation that its step's backward uses, or that is recomputed there."""
    if evidence.category(allocation) is not Category.ACTIVATION:
        return False
    if not evidence.capture.observed:
        return allocation.phase is not Phase.EVALUATION
    return allocation.phase is Phase.BACKWARD or allocation.backward > 0
