"""The table of cards."""

import pytest

from peaksight.errors import UsageError
from peaksight.gpus import find_card, known_cards
from peaksight.units import GIB, MIB, format_bytes


def test_the_measured_card_is_the_one_of_the_measurements():
    """The H100 has the total that PyTorch's messages print in benchmarks/truth/capped.json."""
    card = find_card("h100-80gb")

    assert format_bytes(card.total_bytes) == "79.18 GiB"
    assert card.context_bytes == 518 * MIB
    assert card.capability == (9, 0)


@pytest.mark.parametrize("name", ["t4", "T4", "Tesla T4", "tesla_t4"])
def test_a_card_is_found_as_typed_or_as_torch_prints_it(name):
    """Case, blanks, dashes and underscores do not matter."""
    assert find_card(name).product_name == "Tesla T4"


@pytest.mark.parametrize(("typed", "meant"), [("h100", "h100-80gb or h100-nvl"), ("rtx-4060", "rtx-4090")])
def test_an_unknown_card_suggests_the_nearest(typed, meant):
    """The message names what was typed, what may have been meant, and the command that lists all."""
    with pytest.raises(UsageError, match=rf"Unknown GPU '{typed}' \(did you mean .*{meant}.*peaksight gpus") as caught:
        find_card(typed)

    assert caught.value.slug == "unknown-gpu"


def test_names_are_unique_and_say_where_the_total_comes_from():
    """No two cards share a name of either kind, and no number is without a source."""
    cards = known_cards()

    assert len({card.name for card in cards}) == len({card.product_name for card in cards}) == len(cards)
    assert all(card.source for card in cards)


@pytest.mark.parametrize("card", known_cards(), ids=lambda card: card.name)
def test_facts_are_of_the_right_size(card):
    """A slipped digit in the table shows: every number lies where real cards lie."""
    assert 9 * GIB < card.total_bytes < 200 * GIB
    assert 20 <= card.multi_processor_count <= 200
    assert 300e9 <= card.bandwidth_bytes_per_second <= 8e12
    assert card.fp32_flop_per_second <= card.half_flop_per_second
    assert 2 * MIB < card.l2_bytes < 130 * MIB
