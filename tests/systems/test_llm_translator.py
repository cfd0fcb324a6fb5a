"""WHEN a trained bridge joins two frozen language models, THEN it shows what holds the peak, and on which rank."""

import json
import re

import pytest

from benchmarks.systems.cases import CERTIFICATES, case_of
from systems.running import finding, refuted, report_on, rules
from systems.test_renaming import RUNS

pytestmark = pytest.mark.models

NAME = "llm_translator"
WORDS = RUNS[NAME]


@pytest.fixture(scope="module")
def note():
    """The note's own fixes, and checkpointing asked for beside: one rank, which decodes in its second step."""
    return report_on(NAME, *WORDS)


@pytest.fixture(scope="module")
def ranks():
    """Two of four ranks, on a card that is too small for a step that decodes, and large enough for the others."""
    return report_on(NAME, *WORDS, options=("--ranks", "4", "--rank", "0,1", "--memory", "936MiB"))


def test_the_frozen_target_saves_activations(note):
    """All of them in the target model: nothing below the source is trained."""
    found = finding(note, "frozen-saves-activations")

    assert "target_model(" in _line(found["at"])
    assert not any("Mistral" in sentence for sentence in found["evidence"])


def test_more_than_95_percent_of_the_logits_have_no_label(note):
    """Soft tokens have none, nor has padding; the labels are put together on the card."""
    found = finding(note, "logits-unsupervised")
    labelled, positions = map(int, re.search(r"(\d+) of (\d+) have a label", found["title"]).groups())

    assert labelled < 0.05 * positions
    assert "labelled-positions" in {fix["kind"] for fix in found["fixes"]}


def test_two_graphs_wait_for_one_backward_pass(note):
    """That of the training and that of the decode supervision; in the second step, where the peak is."""
    assert "2 graphs" in finding(note, "two-graphs")["title"]
    assert (note["peak"]["step"], note["peak"]["phase"]) == (2, "backward")


def test_checkpointing_in_eval_has_no_effect(note):
    """transformers leaves it out there, without a word."""
    found = finding(note, "checkpointing-inactive")

    assert (found["bytes"], found["without_effect"]) == (0, True)
    assert "gradient_checkpointing_enable" in _line(found["at"])
    assert "eval()" in found["title"]


@pytest.mark.slow
def test_the_first_rank_fails_at_its_first_decode(ranks):
    """GIVEN the approved configuration, THEN rank 0 fails in step 2, its first decode, and rank 1 fits."""
    failed = {row["rank"]: bool(row["oom"]) for row in ranks["devices"]}

    assert failed == {0: True, 1: False}
    assert (ranks["oom"]["rank"], ranks["oom"]["step"]) == (0, 2)
    assert ranks["rank_differences"][0]["source"] == finding(ranks, "frozen-saves-activations")["at"]
    assert all(row["rank"] == 1 for row in ranks["rank_differences"])


def test_the_fixed_script_has_none_of_these():
    """GIVEN the objective of `before`, THEN nothing but the model is left to find."""
    report = report_on(NAME, "--variant", "fixed", *WORDS[3:])

    assert not {"two-graphs", "checkpointing-inactive", "frozen-saves-activations"} & set(rules(report))
    assert "torch.utils.checkpoint" in refuted(report)["checkpointing-inactive"]


def test_certificates_are_as_expected():
    """What `make systems` found last, by real runs of two ranks under gloo."""
    found = {pair: each["verdict"] for pair, each in json.loads(CERTIFICATES.read_text())[NAME].items()}

    assert found == {pair: each.verdict for pair, each in case_of(NAME).certificates.items()}


def _line(at):
    return case_of(NAME).script.read_text().splitlines()[int(at.partition(":")[2]) - 1]
