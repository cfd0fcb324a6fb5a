"""GIVEN settings of configurations, THEN one that modules read elsewhere is found, with what its output holds."""

import pytest

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.use_cache_unread import RULE
from peaksight.records import Hold, Outcome, Phase, SettingFact
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

ELSEWHERE = "T5.decoder reads True from a configuration of its own"


def looked(*settings, saved_by="", holds=()):
    block = allocation_of(MIB, born=1, saved_by=saved_by)
    capture = capture_of(block, steps=[step_of(1, 1, 9)], observed=True, settings=settings, holds=holds)
    return RULE.look(Evidence(capture))


def setting_of(**about):
    facts = {"kind": "use_cache", "at": "train.py:4", "value": "False", "num_reached": 0, "detail": ELSEWHERE}
    return SettingFact(**(facts | about))


def hold_of(name):
    moment = {"tick": 2, "step": 1, "phase": Phase.FORWARD, "born": 1}
    return Hold(name=name, where="train.py:main", shown_bytes=MIB, by_graph=False, **moment)


def test_a_setting_that_is_read_elsewhere_is_found():
    (finding,) = looked(setting_of())
    assert finding.title == "use_cache = False at train.py:4 reaches nobody that acts on it"
    assert (finding.bytes, finding.without_effect) == (0, True)
    assert finding.evidence[0] == f"{ELSEWHERE}."
    assert "not what the peak is made of" in finding.evidence[1]


@pytest.mark.parametrize(("saved_by", "alone"), [("", "1.00 MiB"), ("BmmBackward0", "0 B")])
def test_what_the_output_holds_is_told_apart_from_what_the_graph_needs(saved_by, alone):
    (finding,) = looked(setting_of(), saved_by=saved_by, holds=[hold_of("outputs.past_key_values.layers[0].keys")])
    assert f"all but {alone}" in finding.evidence[1]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ([], "no line sets use_cache"),
        ([setting_of(num_reached=3)], "is what modules read"),
        ([setting_of(detail="")], "is read by no module"),
    ],
)
def test_a_setting_that_is_read_or_decides_nothing_is_refuted(settings, why):
    examined = looked(*settings)
    assert examined.outcome is Outcome.REFUTED
    assert why in examined.why
