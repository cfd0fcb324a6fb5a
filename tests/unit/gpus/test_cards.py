"""The table of cards."""

import re

import pytest

from peaksight.gpus import find_card, known_cards
from peaksight.units import GIB, MIB, format_bytes

CAPABILITIES = {(6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0)}


def test_the_measured_card_is_the_one_of_the_measurements():
    """The H100 has the total that PyTorch's messages print in benchmarks/truth/capped.json."""
    card = find_card("h100-80gb")

    assert format_bytes(card.total_bytes) == "79.18 GiB"
    assert card.context_bytes == 518 * MIB
    assert card.capability == (9, 0)


def test_names_are_unique_and_say_where_the_total_comes_from():
    """No two cards share a name or an alias, and no number is without a source."""
    cards = known_cards()
    names = [name for card in cards for name in (card.name, *card.aliases)]

    assert len(cards) >= 60
    assert len(set(names)) == len(names)
    assert all(card.source for card in cards)


def test_cards_of_one_product_name_differ_in_size():
    """torch prints the same for an RTX 4060 Ti of 8 and of 16 GB; two rows of one size would be one card."""
    cards = known_cards()

    assert len({(card.product_name, card.total_bytes) for card in cards}) == len(cards)


@pytest.mark.parametrize("card", known_cards(), ids=lambda card: card.name)
def test_facts_are_of_the_right_size(card):
    """A slipped digit in the table shows: every number lies where real cards lie."""
    assert 3 * GIB < card.total_bytes < 300 * GIB
    assert card.capability in CAPABILITIES
    assert 6 <= card.multi_processor_count <= 200
    assert 100e9 <= card.bandwidth_bytes_per_second <= 8e12
    assert card.fp32_flop_per_second <= card.half_flop_per_second
    assert MIB <= card.l2_bytes < 130 * MIB
    assert 0.5e11 < card.fp32_flop_per_second / card.multi_processor_count < 8e11


@pytest.mark.parametrize("card", [c for c in known_cards() if re.search(r"\d+gb", c.name)], ids=lambda card: card.name)
def test_the_total_is_near_the_size_in_the_name(card):
    """What is sold as 16GB shows between 14.1 and 17.9 GiB."""
    sold = int(re.search(r"(\d+)gb", card.name)[1])

    assert abs(card.total_bytes / GIB / sold - 1) < 0.12


THREADS = {
    **{"p100": 2048, "v100-16gb": 2048, "t4": 1024, "a100-40gb": 2048, "a10g": 1536},
    **{"l4": 1536, "h100-80gb": 2048, "b200": 2048, "rtx-5090": 1536},
}


@pytest.mark.parametrize(("name", "threads"), THREADS.items())
def test_resident_threads_follow_the_capability(name, threads):
    """As cudaDeviceProp.maxThreadsPerMultiProcessor has it for each architecture."""
    assert find_card(name).threads_per_multi_processor == threads
