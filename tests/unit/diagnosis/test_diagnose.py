"""The order of findings, and what every rule's text must have."""

import re
from dataclasses import replace

import pytest

from peaksight.diagnosis import diagnose
from peaksight.diagnosis.catalog import all_rules, every_rule, text_of, title_of
from peaksight.diagnosis.diagnose import examine
from peaksight.records import Basis, Effect, Finding, Fix, Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

SECTIONS = ["What it finds", "Why it costs memory", "Example", "Fixes", "Known misses"]


@pytest.mark.parametrize("slug", every_rule())
def test_the_text_of_a_rule(slug):
    """A title, and the five sections in their order, each with something in it."""
    text = text_of(slug)
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)

    assert text.startswith("# ") and title_of(slug)
    assert [section.splitlines()[0] for section in sections] == SECTIONS
    assert all(len(section.splitlines()) > 1 for section in sections)
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("slug", every_rule())
def test_a_rule_has_the_name_of_its_file(slug):
    """So that a reader finds it."""
    assert every_rule()[slug].examine.__module__.rpartition(".")[2] == slug.replace("-", "_")


@pytest.mark.parametrize("slug", all_rules())
def test_a_rule_decides_nothing_on_an_empty_record(slug):
    """A capture of one parameter, of a run that never stepped and that nothing looked at."""
    _, examined = examine(capture_of(allocation_of(MIB, born=1, phase=Phase.INIT, role=Role.PARAMETER)))

    assert slug in {each.rule for each in examined}


def test_what_is_looked_for_is_found_or_told():
    """GIVEN two steps with the outputs of one alive in the next, THEN that is found first, the others are examined."""
    capture = capture_of(
        allocation_of(8 * MIB, born=1, died=9),
        allocation_of(MIB, born=3, died=4, phase=Phase.BACKWARD, grad_enabled=False),
        allocation_of(8 * MIB, born=6, died=11, step=2),
        allocation_of(MIB, born=8, died=10, step=2, phase=Phase.BACKWARD, grad_enabled=False),
        steps=(step_of(1, 1, 5, (2,), 9 * MIB), step_of(2, 6, 11, (7,), 17 * MIB)),
    )
    findings, examined = examine(capture)

    assert (findings[0].rule, findings[0].bytes) == ("graph-kept", 8 * MIB)
    assert {each.rule for each in examined} | {each.rule for each in findings} == set(all_rules())
    assert all(each.why for each in examined)
    assert {each.outcome for each in examined} <= set(Outcome)


def finding_of(rule, num_bytes, *fixes, without_effect=False):
    """What a rule might say; `fixes` are pairs of an effect and the bytes that it would save."""
    return Finding(
        rule=rule,
        title="",
        bytes=num_bytes,
        evidence=(),
        fixes=tuple(Fix(kind="", text="", effect=effect, saves_bytes=saved) for effect, saved in fixes),
        basis=Basis.PATTERN,
        without_effect=without_effect,
    )


def test_the_order_of_findings(monkeypatch):
    """What is done in vain, what is special and large, what every run has, reserved bytes, what matters little."""
    found = [
        finding_of("empty-cache-no-effect", 0, (Effect.BITWISE, 0), without_effect=True),
        finding_of("fragmentation", 90 * MIB),
        finding_of("logits-unsupervised", 20 * MIB),  # large for another rule, but not for one of what every model has
        finding_of("activations", 60 * MIB),
        finding_of("graph-kept", 20 * MIB),
        finding_of("interval-after-work", 0, (Effect.BITWISE, 30 * MIB), without_effect=True),
        finding_of("freeze-filter", 0, (Effect.MODEL, None), without_effect=True),
    ]
    answers = {finding.rule: [finding] for finding in found}
    rules = {slug: replace(all_rules()[slug], examine=lambda _, slug=slug: answers[slug], needs=()) for slug in answers}
    monkeypatch.setattr(diagnose, "all_rules", lambda: rules)
    findings, _ = examine(capture_of(allocation_of(100 * MIB, born=1)))

    assert [finding.rule for finding in findings] == [
        "interval-after-work",
        "freeze-filter",
        "graph-kept",
        "activations",
        "logits-unsupervised",
        "fragmentation",
        "empty-cache-no-effect",
    ]


def test_several_exact_findings_are_one_that_is_not(monkeypatch):
    """GIVEN the cache and other outputs are what of a graph is kept, THEN the graph is not told beside them."""
    found = {"graph-kept": 10 * MIB, "kv-cache-in-training": 6 * MIB, "outputs-kept": 3 * MIB}
    rules = {
        slug: replace(all_rules()[slug], examine=lambda _, slug=slug: [finding_of(slug, found[slug])], needs=())
        for slug in found
    }
    monkeypatch.setattr(diagnose, "all_rules", lambda: rules)
    findings, (refuted,) = examine(capture_of(allocation_of(100 * MIB, born=1)))

    assert [finding.rule for finding in findings] == ["kv-cache-in-training", "outputs-kept"]
    assert refuted.why == "the 10.00 MiB that it would claim are those of kv-cache-in-training"
