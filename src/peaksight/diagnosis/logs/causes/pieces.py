"""Idle memory in pieces: what the allocator holds and cannot use."""

from collections.abc import Iterator

from peaksight.diagnosis.logs.arithmetic import is_plain_shortage
from peaksight.diagnosis.logs.case import Case, Finding
from peaksight.records import Cause, Confidence
from peaksight.units import GIB, MIB, format_bytes

CERTAIN, LIKELY, POSSIBLE = Confidence

# Shares of reserved memory that are idle: below the first it is not worth a word, from the second on it is the cause.
_NOTABLE_SHARE = 0.1
_FRAGMENTED_SHARE = 0.3


def fragmentation(case: Case) -> Iterator[Finding]:
    """Idle memory in pieces: a cause where there is much of it, and the request would have fitted."""
    message = case.message
    if message is None or None in (message.idle_bytes, message.requested_bytes, message.free_bytes):
        return
    idle, asked, free = message.idle_bytes or 0, message.requested_bytes or 0, message.free_bytes or 0
    reserved = message.reserved_bytes or 1
    if idle + free < asked or not is_plain_shortage(message) or idle < 64 * MIB:
        return
    share = idle / reserved
    if share < _NOTABLE_SHARE:
        return
    is_much = share >= _FRAGMENTED_SHARE and idle >= asked * 0.9 and idle >= GIB // 2
    yield Finding(
        Cause(
            kind="fragmentation",
            title="The allocator's cache is in pieces: much of what it holds is idle, and no piece is large enough",
            confidence=LIKELY if is_much else POSSIBLE,
            evidence=(
                f"{format_bytes(idle)} of {format_bytes(reserved)} reserved are idle ({100 * share:.0f} %)",
                f"{format_bytes(asked)} asked, {format_bytes(free)} free outside the cache",
            ),
            try_first="PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before 2.9); run the "
            "longest batch first.",
        ),
        48 if is_much else int(40 * share),
    )


def sizes_vary(case: Case) -> Iterator[Finding]:
    """Where the cache is in pieces, batches of different sizes or two steps alive at once have usually done it."""
    for finding in fragmentation(case):
        if finding.cause.confidence is LIKELY:
            yield Finding(
                Cause(
                    kind="varying-sizes-or-two-steps-alive",
                    title="Pieces come from batches of different sizes, or from outputs of the last step that are "
                    "alive in the next",
                    confidence=POSSIBLE,
                    evidence=finding.cause.evidence[:1],
                    try_first="Longest batch first, or lengths in a few buckets; del outputs and loss before the "
                    "next step.",
                ),
                45,
            )


RULES = (fragmentation, sizes_vary)
