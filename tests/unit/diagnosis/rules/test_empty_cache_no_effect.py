"""Calls of torch.cuda.empty_cache."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.empty_cache_no_effect import RULE
from peaksight.records import Action, AllocatorCall, Basis, Outcome
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of


def look(*allocations, at=()):
    """A run that empties the cache at the ticks `at`."""
    calls = [AllocatorCall(tick=tick, action=Action.EMPTY_CACHE, what="train.py:8") for tick in at]
    return RULE.look(Evidence(capture_of(*allocations, calls=tuple(calls))))


def test_what_the_next_step_asks_for_again():
    """The same is reserved at most."""
    blocks = [allocation_of(64 * MIB, born=10 * step, died=10 * step + 5) for step in (1, 2)]
    (finding,) = look(*blocks, at=[17, 27])

    assert (finding.bytes, finding.without_effect, finding.at) == (0, True, "train.py:8")
    assert finding.basis is Basis.COUNTERFACTUAL
    assert "called 2 times" in finding.title


def test_calls_between_blocks_of_other_sizes_have_an_effect():
    """GIVEN small segments first and then one large block, THEN their memory serves it."""
    small = [allocation_of(30 * MIB, born=born, died=10 + born) for born in (1, 2, 3)]
    answer = look(*small, allocation_of(200 * MIB, born=20), at=[15])

    assert answer.outcome is Outcome.REFUTED
    assert "90.00 MiB more would be reserved" in answer.why


def test_no_calls():
    """Nothing to tell."""
    assert look(allocation_of(MIB, born=1)).why == "torch.cuda.empty_cache() is never called"
