"""What rules look at."""

from helpers import allocation_of, capture_of
from peaksight.diagnosis.evidence import Evidence
from peaksight.units import MIB


def test_what_of_some_allocations_is_alive_at_the_peak():
    """In order of birth, whatever the order in which they are given."""
    early, gone, late, after = (
        allocation_of(size * MIB, born=born, died=died)
        for size, born, died in ((2, 1, None), (2, 2, 3), (9, 4, 5), (2, 6, None))
    )
    evidence = Evidence(capture_of(early, gone, late, after))

    assert [each.born for each in evidence.live_of([late, after, gone, early])] == [1, 4]
    assert evidence.live_of([]) == []
