"""The answer of `fix` in one sentence."""

import pytest

from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, FixReport, Outcome, Tried
from peaksight.reporting.plans import answer_line, head_room_bytes
from peaksight.units import GIB


def tried(gib, *, retries=None, fits=True):
    candidate = Candidate(kinds=(), title="fused", slots=(), effect=Effect.ROUNDING)
    outcome = Outcome(allocated_bytes=gib * GIB, reserved_bytes=gib * GIB, retries_at_limit=retries, seconds=1.0)
    return Tried(candidate=candidate, outcome=outcome, fits=fits)


def found(original, best=None):
    """On a card of 23 GiB, 22 of which may be reserved."""
    sizes = {"usable_bytes": 23 * GIB, "limit_bytes": 22 * GIB}
    about = {"argv": (), "gpu": "t4", "torch": "", "allowed": Effect.ROUNDING, "plan": None, "seconds": 1.0}
    nothing = dict.fromkeys(("runners_up", "next_plans", "parts", "tried", "not_applied", "risks"), ())
    return FixReport(**sizes, **about, **nothing, original=original, best=best, smallest=best or original)


@pytest.mark.parametrize(
    "original, best, words",
    [
        (tried(21), None, "Nothing to fix: as it is, the run needs 21.00 GiB of the 22.00 GiB of t4 (predicted)."),
        (
            tried(24, retries=1),
            None,
            "Nothing to fix: as it is, the run fits the 22.00 GiB of t4 by giving cached memory back once; without a "
            "limit it would reserve 24.00 GiB (predicted).",
        ),
        (
            tried(30, fits=False),
            tried(24, retries=2),
            "Plan: fused. It fits the 22.00 GiB of t4 by giving cached memory back 2 times; without a limit it would "
            "reserve 24.00 GiB (predicted), +0 % time, rounding.",
        ),
        (
            tried(30, fits=False),
            None,
            "No plan fits the 22.00 GiB of t4: the smallest is fused with 30.00 GiB (predicted), 8.00 GiB too much.",
        ),
    ],
)
def test_no_sentence_contradicts_itself(original, best, words):
    """What reserves more than it may is not said to need it, where cached memory can be given back."""
    assert answer_line(found(original, best)) == words


def test_head_room_of_what_gives_memory_back():
    """It is what has to be left, and never less than nothing."""
    plan = tried(24, retries=1)

    assert head_room_bytes(found(tried(30, fits=False), plan), plan) == GIB
