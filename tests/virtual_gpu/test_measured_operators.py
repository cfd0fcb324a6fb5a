"""Whole families of operators against an H200: the cases of benchmarks/operators, block by block."""

from collections import Counter

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.models]
pytest.importorskip("expecttest")

# The family, and how many of its cases may have another peak than the card (or fail).
FAMILIES = {
    "layer attention": 0,
    "layer cells": 0,
    "layer images": 0,
    "layer losses": 0,
    "layer norms": 0,
    "layer products": 1,
    "layer recurrent": 1,
    "layer training": 1,
    "layer transformers": 1,
    "optimizer": 5,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family):
    """No more cases differ than the rules are known to leave; docs/operators.md says which."""
    from benchmarks.operators.__main__ import MEASURED
    from benchmarks.operators.comparison import compare

    kinds = Counter()
    differing = []
    for difference in compare(MEASURED, family, "", "h200", "2.11+cu130"):
        kinds[difference.kind] += 1
        if difference.kind in ("peak", "error"):
            differing.append(difference.signature)
    assert sum(kinds.values()) > 10
    assert len(differing) <= FAMILIES[family], differing
