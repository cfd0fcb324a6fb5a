"""The search for a plan: GIVEN what simulations come to THEN what is tried, and which plan is taken."""

from dataclasses import replace

from peaksight.planning.combining import NOTHING
from peaksight.planning.judgement import judged
from peaksight.planning.search import Search
from peaksight.records import Phase
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, Outcome, PhasePeak

# What each saves of 100, and its time over that without it.
SAVES = {"fused": (1, 0.99), "fast": (1, 0.9), "blocks": (30, 1.1), "more blocks": (40, 1.2), "chunks": (5, 1.0)}


def candidate(title, kind=None, effect=Effect.ROUNDING):
    return Candidate(kinds=(kind or title,), title=title, slots=(kind or title,), effect=effect)


def outcome(parts=()):
    saved, seconds = 0, 1.0
    for part in parts:
        saved, seconds = saved + SAVES[part][0], seconds * SAVES[part][1]
    size = 100 - saved
    phases = (PhasePeak(phase=Phase.FORWARD, allocated_bytes=size),)
    return Outcome(allocated_bytes=size, reserved_bytes=size, phases=phases, seconds=seconds, samples=8)


def searched(candidates, *, limit_bytes=75, budget=40):
    """The search, and how many were simulated."""
    simulated = []

    def simulate(batch):
        simulated.extend(batch)
        return [outcome(each.title.split(" + ")) for each in batch]

    search = Search(simulate=simulate, original=outcome(), limit_bytes=limit_bytes, allowed=Effect.NOISE, budget=budget)
    search.run(candidates)
    return search, simulated


def test_a_gain_that_nobody_notices_is_no_reason_for_a_change():
    """One per cent of time is not; ten are."""
    blocks = candidate("blocks", effect=Effect.BITWISE)

    assert searched([candidate("fused"), blocks])[0].fitting[0].candidate.title == "blocks"
    assert searched([candidate("fast"), blocks])[0].fitting[0].candidate.title == "fast + blocks"


def test_a_part_that_does_nothing_is_left_out():
    """GIVEN a cache whose part of the peak another fix takes, THEN the plan is that one alone."""
    outcomes = {("blocks",): (80, 1.0), ("cache",): (95, 0.99), ("chunks",): (90, 1.0), ("blocks", "chunks"): (70, 1.0)}

    def simulate(batch):
        sizes = [outcomes.get(tuple(sorted(set(each.kinds) - {"cache"})) or each.kinds) for each in batch]
        return [replace(outcome(), allocated_bytes=s, reserved_bytes=s, phases=phase(s), seconds=t) for s, t in sizes]

    search = Search(simulate=simulate, original=outcome(), limit_bytes=75, allowed=Effect.NOISE, width=1)
    search.run([candidate("cache"), candidate("chunks"), candidate("blocks")])

    assert search.fitting[0].candidate.title == "chunks + blocks"


def phase(size):
    return (PhasePeak(phase=Phase.FORWARD, allocated_bytes=size),)


def test_no_more_simulations_than_asked_for():
    """Of two kinds each has its turn before the second of one; the rest is named."""
    candidates = [candidate("blocks", "checkpoint"), candidate("more blocks", "checkpoint"), candidate("chunks")]

    search, simulated = searched(candidates, limit_bytes=10, budget=2)

    assert [each.title for each in simulated] == ["blocks", "chunks"]
    assert [each.title for each in search.untried] == ["more blocks"]
    assert len(searched(candidates, limit_bytes=10, budget=4)[1]) == 4


def test_nothing_is_left_untried_where_there_is_time():
    """All alone, then joins."""
    search, simulated = searched([candidate("blocks"), candidate("chunks")])

    assert search.untried == [] and search.nearest.candidate != NOTHING
    assert [each.title for each in simulated] == ["blocks", "chunks", "blocks + chunks"]


def test_what_the_person_named_comes_first():
    """Other arguments of the script, before any other kind has its turn."""
    flags = [replace(candidate(title, "flags"), arguments=(title,)) for title in ("blocks", "more blocks")]

    assert [each.title for each in searched([candidate("chunks"), *flags], budget=2)[1]] == ["blocks", "more blocks"]


def test_what_is_no_plan_is_not_the_smallest():
    """GIVEN a change that did nothing, or other samples in a step, THEN it came near to nothing, however small."""
    search, _ = searched([], limit_bytes=10)
    none = judged(candidate("cache"), replace(outcome(["blocks"]), without_effect=("cache",)), outcome(), 10)
    other = judged(candidate("halves"), replace(outcome(["blocks"]), samples=4), outcome(), 10)
    chunks = judged(candidate("chunks"), outcome(["chunks"]), outcome(), 10)
    search.alone = [none, other, chunks]

    assert search.nearest is chunks
