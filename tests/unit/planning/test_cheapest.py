"""The smallest card, and the plan with which the run fits there."""

from peaksight.gpus import find_card, room_on
from peaksight.planning.cheapest import cheapest
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, FixReport, Outcome, Tried

GIB = 2**30
ROOMS = [room_on(find_card(name)) for name in ("h100-80gb", "t4", "a100-40gb", "v100-16gb")]


def tried(title, size, seconds):
    """Something that was simulated on another card."""
    candidate = Candidate(kinds=(), title=title, slots=(), effect=Effect.BITWISE)
    return Tried(candidate=candidate, outcome=Outcome(reserved_bytes=size * GIB, seconds=seconds), fits=False)


def found(*plans, original):
    """The report of a search without a limit."""
    return FixReport(
        argv=("train.py",),
        gpu="h100-80gb",
        torch="2.14",
        usable_bytes=0,
        limit_bytes=0,
        allowed=Effect.ROUNDING,
        original=original,
        best=None,
        smallest=original,
        runners_up=(),
        next_plans=(),
        parts=(),
        tried=plans,
        not_applied=(),
        risks=(),
        plan=None,
        seconds=0.0,
    )


def rows(report, more=0):
    """What was tried where, on cards whose kernels need so many GiB `more`."""
    sizes = {
        each.candidate.title: each.outcome.reserved_bytes + more * GIB for each in (report.original, *report.tried)
    }

    def simulate(candidate, room, limit_bytes):
        return Outcome(reserved_bytes=sizes[candidate.title])

    return [(row.gpu, row.tried.candidate.title, row.tried.fits) for row in cheapest(report, ROOMS, 0.95, simulate)]


def test_the_fastest_plan_that_fits_the_smallest_card():
    """Not the smallest plan where a faster one fits too."""
    report = found(tried("all", 8, 1.3), tried("half", 12, 1.1), original=tried("as it is", 20, 1.0))

    assert rows(report) == [("t4", "half", True)]


def test_as_it_is():
    """Where no plan is needed."""
    assert rows(found(original=tried("as it is", 30, 1.0))) == [("a100-40gb", "as it is", True)]


def test_kernels_of_a_card_that_need_more():
    """The smallest plan, and then the next card."""
    report = found(tried("all", 12, 1.3), tried("half", 13, 1.1), original=tried("as it is", 20, 1.0))

    assert rows(report, more=1.5) == [("t4", "half", False), ("t4", "all", True)]


def test_no_card():
    """Nothing is tried in vain."""
    assert rows(found(original=tried("as it is", 500, 1.0))) == []
