"""GIVEN parameters that had no gradient at any step, THEN they are named with their part of the model."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.parameters_unused import RULE
from peaksight.records import ModuleFact, Outcome
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of


def looked(*modules, peak=MIB):
    facts = {"steps": [step_of(1, 1, 9)], "modules": modules, "observed": True}
    return RULE.look(Evidence(capture_of(allocation_of(peak, born=1), **facts)))


def module_of(path, num_bytes, idle_bytes=0):
    return ModuleFact(module=path, parameter_bytes=num_bytes, frozen_bytes=0, idle_bytes=idle_bytes)


def test_the_parts_that_are_never_used_are_named():
    (finding,) = looked(module_of("Net.old.0", 60 * MIB, 60 * MIB), module_of("Net.body", 40 * MIB), peak=9000 * MIB)

    assert finding.title == "60.00 MiB of 100.00 MiB of parameters are never used"
    assert "Net.old (60.00 MiB)" in finding.evidence[0]
    assert (finding.bytes, finding.fixes[0].saves_bytes) == (60 * MIB, 60 * MIB)


def test_a_small_head_that_is_left_out_is_no_cause():
    examined = looked(module_of("Net.pooler", MIB, MIB), module_of("Net.body", 99 * MIB), peak=9000 * MIB)

    assert examined.outcome is Outcome.REFUTED
    assert "1.00 MiB of 100.00 MiB" in examined.why


def test_a_model_whose_parameters_all_train_has_none():
    assert looked(module_of("Net.body", 99 * MIB)).outcome is Outcome.REFUTED
