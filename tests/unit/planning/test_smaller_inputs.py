"""Smaller inputs are shown where activations matter, and never a candidate."""

from types import SimpleNamespace

import pytest

from peaksight.planning.fixes.smaller_inputs import FIX
from peaksight.records.findings import Effect
from peaksight.records.proposals import NotApplied


@pytest.mark.parametrize(("saved_bytes", "shown"), [(50, True), (5, False), (0, False)])
def test_shown_where_activations_matter(saved_bytes, shown):
    """As something that changes the training."""
    saved = (SimpleNamespace(allocated_bytes=saved_bytes),)
    situation = SimpleNamespace(saved=saved, capture=SimpleNamespace(peak_allocated_bytes=100))

    proposals = list(FIX.propose(situation))

    assert bool(proposals) is shown
    assert all(isinstance(each, NotApplied) and each.effect is Effect.MODEL for each in proposals)
