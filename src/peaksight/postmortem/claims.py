"""Figures in prose, as in a post-mortem: what they add up to."""

from peaksight.postmortem.windows import Window
from peaksight.records import Check


def check_claims(window: Window) -> tuple[Check, ...]:
    """The claims of a text that can be checked by arithmetic."""
    return ()
