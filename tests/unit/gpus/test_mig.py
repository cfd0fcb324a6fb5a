"""The slices of Multi-Instance GPU."""

from itertools import pairwise

import pytest

from peaksight.gpus import find_card, known_cards, known_slices
from peaksight.units import GIB

CARDS = {card.name: card for card in known_cards()}


def test_a_slice_is_a_card():
    """With the name that torch prints, the listed memory and multiprocessors, and half of the memory's channels."""
    part, whole = find_card("a100-40gb:3g.20gb"), CARDS["a100-40gb"]

    assert part.product_name == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    assert (part.total_bytes, part.multi_processor_count) == (19.625 * GIB, 42)
    assert part.bandwidth_bytes_per_second == whole.bandwidth_bytes_per_second // 2
    assert (part.mig_profile, part.context_bytes, part.capability) == ("3g.20gb", None, (8, 0))


@pytest.mark.parametrize("part", known_slices(), ids=lambda part: part.name)
def test_a_slice_is_no_larger_than_its_card(part):
    """Nor much larger than its profile says: `3g.20gb` has at most 20 GB, rounded to whole ones."""
    name, profile = part.name.split(":")
    whole = CARDS[name]
    sold = int(profile.split(".")[1].removesuffix("gb"))

    assert 0.85 * sold < part.total_bytes / GIB < 1.01 * sold
    assert part.total_bytes <= whole.total_bytes
    assert part.multi_processor_count <= whole.multi_processor_count
    assert part.l2_bytes <= whole.l2_bytes
    assert part.half_flop_per_second <= whole.half_flop_per_second


@pytest.mark.parametrize("name", sorted({part.name.split(":")[0] for part in known_slices()}))
def test_slices_of_one_card_grow_with_the_profile(name):
    """More compute slices come with more multiprocessors, and never with less memory."""
    parts = [part for part in known_slices() if part.name.startswith(f"{name}:")]

    for before, after in pairwise(parts):
        assert before.multi_processor_count <= after.multi_processor_count
        assert before.total_bytes <= after.total_bytes


def test_no_two_slices_share_a_name():
    """Nor does an alias name two."""
    names = [name for part in known_slices() for name in (part.name, *part.aliases)]

    assert len(set(names)) == len(names)
