"""Names in the tables of a terminal."""

import pytest

from peaksight.reporting.terminal import shorten


@pytest.mark.parametrize(
    ("module", "width", "expected"),
    [
        ("model.layers.0.mlp", 30, "model.layers.0.mlp"),
        ("model.layers.0.mlp", 12, "..0.mlp"),
        ("opt[0].mu['Dense_0']['kernel']", 24, "..['Dense_0']['kernel']"),
        ("opt[0].mu['Dense_0']['kernel']", 26, "..mu['Dense_0']['kernel']"),
        ("averyveryverylongname", 10, "averyveryverylongname"),
    ],
)
def test_the_end_of_a_path(module, width, expected):
    """Cut where a part begins, at dots and brackets."""
    assert shorten(module, width).plain == expected
