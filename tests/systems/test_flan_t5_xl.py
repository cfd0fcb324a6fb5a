"""T5: what its training holds, found by the rules alone, and the cache that is not it."""

import pytest

from systems.running import finding, refuted, report_on, rules

pytestmark = [pytest.mark.models, pytest.mark.slow]

SIZE = ("--layers", "2", "--batch", "2", "--accumulation", "2", "--steps", "2")


def test_without_checkpointing_activations_are_found_and_the_cache_adds_nothing():
    report = report_on("flan_t5_xl", "--variant", "before", *SIZE)

    assert finding(report, "kv-cache-in-training")["bytes"] == 0


def test_with_checkpointing_the_optimizers_temporary_is_the_peak_and_length_saves_nothing():
    report = report_on("flan_t5_xl", "--variant", "note", *SIZE)

    assert "optimizer-temporaries" in rules(report)[:2]
    assert finding(report, "optimizer-temporaries")["fixes"][0]["kind"] == "fused-optimizer"
    assert finding(report, "smaller-input-no-effect")["without_effect"]
    assert finding(report, "use-cache-unread")["without_effect"]
    assert "kv-cache-in-training" in refuted(report)
