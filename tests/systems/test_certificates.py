"""The certificates as `make systems` wrote them: each pair has the verdict that is right."""

import json

import pytest

from benchmarks.systems.cases import CERTIFICATES, all_cases

WRITTEN = json.loads(CERTIFICATES.read_text())


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_verdicts(case):
    right = {name: pair.verdict for name, pair in case.certificates.items()}

    assert right == {name: each["verdict"] for name, each in WRITTEN[case.name].items()}


def test_a_block_that_is_looked_up_too_late():
    """Its loss is right, its gradients are not: refused with the tensor that is off most, far over any rounding."""
    refused = WRITTEN["dcal_vit"]["note's checkpointing alone"]

    assert "gradient of" in refused["reasons"][0]
    assert refused["worst"]["relative"] > 1


def test_the_masks_of_fused_attention_are_noise():
    assert "dropout masks" in WRITTEN["dcal_vit"]["fused where nobody reads"]["noise"]
