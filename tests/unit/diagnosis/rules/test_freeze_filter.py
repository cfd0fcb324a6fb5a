"""GIVEN what statements froze and what modules train, THEN a freeze without effect is found, and a real one is not."""

import pytest

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.freeze_filter import RULE
from peaksight.records import FreezeFact, ModuleFact, Outcome
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of


def freeze_of(**about):
    facts = {
        "at": "train.py:9",
        "text": "p.requires_grad = False",
        "condition": "if 'encoder' in name",
        "reached": True,
        "num_parameters": 0,
        "frozen_bytes": 0,
        "frozen_matrices": 0,
        "thawed_bytes": 0,
        "thawed_at": "",
    }
    return FreezeFact(**(facts | about))


def module_of(path, num_bytes, frozen_bytes=0):
    return ModuleFact(
        module=path,
        parameter_bytes=num_bytes,
        frozen_bytes=frozen_bytes,
    )


def looked(*freezes, frozen_body=0, frozen_head=0, observed=True):
    modules = module_of("Net.body", 98 * MIB, frozen_body), module_of("Net.head", 2 * MIB, frozen_head)
    facts = {"freezes": freezes, "modules": modules, "observed": observed}
    return RULE.look(Evidence(capture_of(allocation_of(MIB, born=1), steps=[step_of(1, 1, 9)], **facts)))


def test_a_filter_that_matches_nothing_is_found_with_its_condition():
    (finding,) = looked(freeze_of())
    assert (finding.bytes, finding.without_effect, finding.at) == (0, True, "train.py:9")
    assert "freezes nothing: no parameter matches `if 'encoder' in name`" in finding.title
    assert "100.00 MiB of 100.00 MiB of parameters need a gradient" in finding.evidence


def test_a_freeze_that_a_later_line_undoes_is_found_with_that_line():
    (finding,) = looked(freeze_of(num_parameters=3, thawed_bytes=98 * MIB, thawed_at="train.py:12"))
    assert "undone at train.py:12" in finding.title


def test_freezing_the_small_part_is_found_with_both_parts():
    (finding,) = looked(freeze_of(num_parameters=1, frozen_bytes=2 * MIB, frozen_matrices=1), frozen_head=2 * MIB)
    assert "2.00 MiB of 100.00 MiB" in finding.title
    assert "Frozen: Net.head (2.00 MiB)." in finding.evidence
    assert "Trained: Net.body (98.00 MiB)." in finding.evidence


@pytest.mark.parametrize(
    ("freezes", "why"),
    [
        ([], "no statement"),
        ([freeze_of(reached=False)], "does not come to its freeze at train.py:9"),
        ([freeze_of(num_parameters=9, frozen_bytes=98 * MIB, frozen_matrices=9)], "98.00 MiB of 100.00 MiB"),
        ([freeze_of(num_parameters=9, frozen_bytes=MIB)], "1.00 MiB of 100.00 MiB"),
        ([freeze_of(text="", num_parameters=1, frozen_bytes=MIB, frozen_matrices=1)], "no statement"),
    ],
    ids=["none", "switched off", "the large part", "norms only", "a library does"],
)
def test_what_is_frozen_as_meant_or_not_asked_for_is_refuted(freezes, why):
    examined = looked(*freezes, frozen_body=sum(freeze.frozen_bytes for freeze in freezes))
    assert examined.outcome is Outcome.REFUTED
    assert why in examined.why


def test_a_frozen_model_that_has_not_run_is_no_little():
    """No module tells of it, as of an average of the weights that is evaluated at the end."""
    examined = looked(freeze_of(num_parameters=9, frozen_bytes=100 * MIB, frozen_matrices=9))

    assert examined.outcome is Outcome.REFUTED


def test_a_record_of_a_real_run_does_not_tell():
    assert looked(observed=False).outcome is Outcome.NOT_DECIDABLE
