"""Casts of weights that autocast keeps until its context ends."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.autocast_cache import RULE
from peaksight.records import Hold, Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

WEIGHT = {"tensor": "float32[1024, 2048]", "role": Role.PARAMETER, "phase": Phase.INIT}
CAST = {"tensor": "float16[1024, 2048]", "phase": Phase.EVALUATION, "grad_enabled": False, "module": "Net.0"}


def look(deaths, **about):
    """Two weights of 8 MiB, a forward that casts both, and 6 MiB of another one behind it."""
    casts = [allocation_of(4 * MIB, born=born, died=died, copy_of=born - 10, **CAST) for born, died in deaths]
    weights = [allocation_of(8 * MIB, born=born, **WEIGHT) for born in (1, 2)]
    results = [allocation_of(MIB, born=born, died=born + 2) for born in (13, 15)]
    later = allocation_of(6 * MIB, born=30, died=31)
    return RULE.look(Evidence(capture_of(*weights, *casts, *results, later, steps=[step_of(1, 1, 60)], **about)))


def test_casts_that_stay_until_the_context_ends():
    """GIVEN both are let go of together, behind the peak."""
    (finding,) = look([(11, 50), (12, 51)], observed=True)

    assert finding.bytes == 6 * MIB  # then casts and results are as high as what is behind them
    assert "2 casts of weights of Net" in finding.evidence[-1]


def test_casts_that_go_with_their_layer():
    """Near miss: as with cache_enabled=False, or of weights that need no gradient."""
    answer = look([(11, 14), (12, 16)], observed=True)

    assert answer.outcome is Outcome.REFUTED
    assert answer.why == "casts of weights hold 0 B beyond their use at the peak"


def test_a_copy_with_a_name_is_no_cast():
    """Near miss: the script keeps a model in float16."""
    names = [
        Hold(
            tick=20,
            step=1,
            phase=Phase.FORWARD,
            born=born,
            name="half[0]",
            where="train.py:main",
            shown_bytes=4 * MIB,
            by_graph=False,
        )
        for born in (11, 12)
    ]

    assert look([(11, 50), (12, 51)], observed=True, holds=tuple(names)).outcome is Outcome.REFUTED


def test_a_record_without_names():
    """What holds the casts is not known."""
    assert look([(11, 50), (12, 51)], observed=False).outcome is Outcome.NOT_DECIDABLE
