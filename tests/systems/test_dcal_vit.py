"""Dual cross-attention: what its training holds, found by the rules alone."""

import pytest

from systems.running import finding, refuted, report_on, rules

pytestmark = [pytest.mark.models, pytest.mark.slow]

RUN = ("--variant", "before", "--depth", "4", "--steps", "2")
MAP_BYTES = 16 * 12 * 785 * 785 * 4  # of both images of a pair, batch 8, in float32


def test_attention_of_three_streams_is_the_first_cause():
    report = report_on("dcal_vit", *RUN)

    assert rules(report)[0] == "materialised-attention"
    per_block = 2 * 7 * (MAP_BYTES // 4)  # 4 bytes of probabilities, 2 of their cast, 1 of the mask; both products
    assert finding(report, "materialised-attention")["bytes"] >= 4 * per_block


def test_the_maps_of_the_forward_before_are_named():
    report = report_on("dcal_vit", *RUN)
    kept = finding(report, "graph-kept")

    assert any("attention_maps" in sentence for sentence in kept["evidence"])
    assert "detach() would free none" in kept["fixes"][0]["text"]
    assert 0 < finding(report, "detach-shares-storage")["bytes"] < kept["bytes"] <= 4.02 * MAP_BYTES


def test_detaching_the_maps_frees_nothing():
    detached = report_on("dcal_vit", *RUN, "--detach-maps")

    assert detached["peak"]["allocated_bytes"] == report_on("dcal_vit", *RUN)["peak"]["allocated_bytes"]
    assert finding(detached, "graph-kept")["bytes"] == finding(report_on("dcal_vit", *RUN), "graph-kept")["bytes"]


def test_a_map_of_means_is_what_is_left_of_the_history():
    assert "graph-kept" in refuted(report_on("dcal_vit", "--variant", "fixed", "--depth", "4", "--steps", "2"))
