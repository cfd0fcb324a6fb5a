"""Dual cross-attention: what its training holds, found by the rules alone."""

import pytest

from benchmarks.systems.cases import SYSTEMS
from systems.running import finding, refuted, report_on, rules

pytestmark = [pytest.mark.models, pytest.mark.slow]

RUN = ("--variant", "before", "--depth", "4", "--steps", "2")
MODEL = SYSTEMS / "dcal_vit" / "model.py"
MAP_BYTES = 16 * 12 * 785 * 785 * 4  # of both images of a pair, batch 8, in float32


def line_of(text):
    """`model.py:9`, where `text` stands."""
    return f"model.py:{next(n for n, line in enumerate(MODEL.read_text().splitlines(), 1) if line.strip() == text)}"


def test_attention_of_three_streams_is_the_first_cause():
    report = report_on("dcal_vit", *RUN)

    assert rules(report)[0] == "materialised-attention"
    per_block = 2 * 7 * (MAP_BYTES // 4)  # 4 bytes of probabilities, 2 of their cast, 1 of the mask; both products
    assert finding(report, "materialised-attention")["bytes"] >= 4 * per_block


def test_which_streams_could_be_fused_because_nobody_reads_their_weights():
    told = finding(report_on("dcal_vit", *RUN), "materialised-attention")
    of_pairs = line_of("mixed, _ = block(mixed, pair, fused=self.fused)")
    joined = line_of("both, weights = block(torch.cat([x, pair]))")

    assert f"nobody reads the weights (float32[8, 12, 785, 1570]) of the calls from {of_pairs}" in str(told["evidence"])
    assert f"50 % of the weights (float32[16, 12, 785, 785]) of the calls from {joined} are read" in str(
        told["evidence"]
    )
    everywhere, where_unread = told["fixes"]
    assert of_pairs in where_unread["text"]
    assert joined not in where_unread["text"]
    assert 0 < where_unread["saves_bytes"] < everywhere["saves_bytes"]


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
