"""From what a log says to what happened, why probably, and what to do."""

from dataclasses import replace

from peaksight.diagnosis.logs.arithmetic import check_all
from peaksight.diagnosis.logs.case import Case, ranked
from peaksight.diagnosis.logs.causes import RULES
from peaksight.diagnosis.logs.limits import cannot_tell, next_command
from peaksight.diagnosis.logs.summary import happened
from peaksight.records import Cause, Confidence, LogEvidence, Memory, OomMessage, Reading

SCHEMA = "peaksight.reading/1"
MAX_CAUSES = 5
# Two prints of one request: in bytes, rounded to the allocator's blocks, in GiB with two digits.
ROUNDING = 0.01
# Which message ended the run: one with figures before one without, the card's before the host's last words.
_BY_MEMORY = {Memory.DEVICE: 0, Memory.HOST: 0, Memory.SHARED: 0, Memory.KERNEL: 0, Memory.UNKNOWN: 1}


def explain(evidence: LogEvidence) -> Reading:
    """The reading of `evidence`."""
    case = Case(evidence, main_message(evidence))
    causes = ranked([finding for rule in RULES for finding in rule(case)])
    return Reading(
        schema=SCHEMA,
        sources=evidence.sources,
        happened=happened(case),
        decided=is_decided(causes),
        causes=causes[:MAX_CAUSES],
        checks=(*check_all(evidence.messages), *evidence.claim_checks),
        fits=case.fits,
        cannot_tell=cannot_tell(case, causes),
        run_next=next_command(case),
        first_failing_rank=evidence.first_failing_rank,
        messages=evidence.messages,
        num_more_messages=evidence.num_more_messages,
        clues=evidence.clues,
        facts=evidence.facts,
        claims=evidence.claims,
        num_lines=evidence.num_lines,
        num_bytes=evidence.num_bytes,
    )


def is_decided(causes: tuple[Cause, ...]) -> bool:
    """Whether the text decides the cause: the first is more than one of several."""
    return bool(causes) and causes[0].confidence is not Confidence.POSSIBLE


def main_message(evidence: LogEvidence) -> OomMessage | None:
    """The message that ended the run: the first failure of the rank that failed first."""
    failures = [message for message in evidence.messages if not message.is_warning]
    if not failures:
        return None
    rank = evidence.first_failing_rank
    own = [message for message in failures if rank is not None and message.rank == rank] or failures
    first = min(own, key=lambda message: (_BY_MEMORY[message.memory], not message.figures, message.line))
    return first if first.at else _with_place(first, own)


def _with_place(message: OomMessage, others: list[OomMessage]) -> OomMessage:
    """`message` with the place of the exception that follows for the same request: allocators print no traceback."""
    asked = message.requested_bytes or 0
    later = (each for each in others if each.at and each.line > message.line)
    place = next((each for each in later if abs((each.requested_bytes or 0) - asked) <= ROUNDING * asked), None)
    return replace(message, at=place.at, phase=place.phase, frames=place.frames) if place else message
