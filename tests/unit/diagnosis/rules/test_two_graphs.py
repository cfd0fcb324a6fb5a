"""Two losses in one backward pass."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.two_graphs import RULE
from peaksight.records import Outcome
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import backward_of, call_of, term_of


def look(*, terms, observed=True):
    """A critic that sees real images at tick 1 and made ones at tick 3, 8 MiB each."""
    first = allocation_of(8 * MIB, born=1, died=21, backward=1, source="gan.py:5")
    second = allocation_of(8 * MIB, born=3, died=20, backward=1, source="gan.py:6")
    capture = capture_of(
        first,
        second,
        observed=observed,
        passes=[call_of(1, 2), call_of(3, 4)],
        backwards=[backward_of(1, 12, at="gan.py:7")],
        terms=terms,
        steps=[step_of(1, 1, 40, backward_began=[12])],
    )
    return RULE.look(Evidence(capture))


def test_two_terms_with_graphs_apart():
    """The first could have been gone through before the second was made."""
    (finding,) = look(terms=[term_of(1, 1), term_of(1, 3)])

    assert (finding.bytes, finding.at) == (8 * MIB, "gan.py:5")
    assert "the backward pass at gan.py:7" in finding.evidence[0]


def test_a_loss_of_two_outputs_together():
    """As of queries and documents: no two backward passes do."""
    answer = look(terms=[])

    assert answer.outcome is Outcome.REFUTED
    assert "called 2 times" in answer.why


def test_three_terms_are_another_rule_s():
    """accumulated-graph tells of them."""
    assert look(terms=[term_of(1, 1 + i) for i in range(3)]).outcome is Outcome.REFUTED


def test_a_recording_does_not_tell():
    """Of terms, nor of calls."""
    assert look(terms=[], observed=False).outcome is Outcome.NOT_DECIDABLE
