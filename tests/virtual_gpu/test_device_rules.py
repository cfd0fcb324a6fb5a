"""The build whose rules are simulated."""

import pytest

from peaksight.gpus import find_card
from peaksight.virtual_gpu.device_rules import rules_for

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("card", "capability"), [("v100-16gb", "7.0"), ("p100", "6.0"), ("gtx-1080ti", "6.1")])
def test_cuda_13_does_not_run_on_cards_before_turing(card, capability):
    """The warning names the build that does, of the same release."""
    warning = rules_for("2.14.1+cu130", find_card(card)).warning

    assert warning.startswith(f"torch 2.14+cu130 does not run on a card of compute capability {capability}")
    assert "--torch 2.14+cu126" in warning


@pytest.mark.parametrize(("build", "card"), [("2.14+cu126", "v100-16gb"), ("2.14+cu130", "t4"), ("2.11", "b200")])
def test_other_builds_and_cards_need_no_warning(build, card):
    """CUDA 12.6 has code for Volta, CUDA 13 for Turing."""
    assert rules_for(build, find_card(card)).warning is None
