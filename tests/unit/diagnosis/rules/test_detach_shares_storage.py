"""Views that keep whole blocks."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.detach_shares_storage import RULE
from peaksight.records import Outcome
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import hold_of


def look(shown_bytes, *, died=None):
    """Three steps, each of which makes 8 MiB of which a list keeps `shown_bytes`, until `died` ticks into it."""
    blocks = [
        allocation_of(8 * MIB, born=10 * step + 1, died=died and 10 * step + died, step=step) for step in (1, 2, 3)
    ]
    holds = [hold_of(11, "rows[0]", tick=25, step=2, shown_bytes=shown_bytes)]
    steps = [step_of(step, 10 * step, 10 * step + 9) for step in (1, 2, 3)]
    return RULE.look(Evidence(capture_of(*blocks, steps=steps, holds=holds, observed=True)))


def test_rows_of_large_blocks():
    """What is overdue at the peak would go, but for what is shown; blocks without a look are judged by their place."""
    (finding,) = look(MIB)

    assert finding.bytes == 16 * MIB - 2 * MIB
    assert "Views that show 2.00 MiB keep 16.00 MiB" in finding.title
    assert any("`rows[0]` in train.py:main" in line for line in finding.evidence)


def test_what_is_shown_as_a_whole_is_no_view():
    """Detached or not."""
    assert look(8 * MIB).outcome is Outcome.REFUTED


def test_views_that_die_with_their_step_keep_nothing():
    """However small they are."""
    assert look(MIB, died=3).outcome is Outcome.REFUTED
