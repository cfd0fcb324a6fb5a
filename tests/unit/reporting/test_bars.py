"""Bars of characters."""

import pytest

from peaksight.reporting.bars import ASCII, UNICODE, glyphs_for, memory_bar, share_bar


@pytest.mark.parametrize(
    ("sizes", "bar"),
    [
        ((5, 7, 10, 10), "#####::   |"),
        ((5, 8, 4, 8), "####|#:::"),
        ((0, 0, 10, 10), "          |"),
    ],
)
def test_a_step_shows_allocated_reserved_and_the_limit(sizes, bar):
    """One character a byte here; the mark stands where the card ends."""
    allocated, reserved, limit, scale = sizes

    assert bar == memory_bar(allocated, reserved, limit, scale, scale, ASCII).plain


def test_what_lies_beyond_the_limit_is_red():
    """The colour repeats what the mark says."""
    bar = memory_bar(8, 8, 4, 8, 8, ASCII)

    assert [(span.start, span.end, span.style) for span in bar.spans] == [(0, 4, "cyan"), (4, 5, "bold"), (5, 9, "red")]


def test_a_small_share_still_shows():
    """One of a million gets one character, nothing gets none."""
    assert share_bar(1, 10**6, 20, ASCII) == "#"
    assert share_bar(0, 10**6, 20, ASCII) == ""


@pytest.mark.parametrize(("encoding", "glyphs"), [("utf-8", UNICODE), ("ascii", ASCII), ("latin-1", ASCII)])
def test_glyphs_follow_the_encoding(encoding, glyphs):
    """A terminal that cannot write blocks gets ASCII."""
    assert glyphs_for(encoding) is glyphs
