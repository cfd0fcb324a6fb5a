"""Cards as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.errors import UsageError
from peaksight.gpus import find_card, known_cards, known_slices

ALL = known_cards() + known_slices()
OF_ONE_PRODUCT = [card for card in ALL if sum(other.product_name == card.product_name for other in ALL) == 1]


@pytest.mark.parametrize("card", ALL, ids=lambda card: card.name)
def test_every_card_is_found_by_its_names(card):
    """By the one that --gpu takes and by its aliases."""
    assert all(find_card(name) is card for name in (card.name, *card.aliases))


@pytest.mark.parametrize("card", OF_ONE_PRODUCT, ids=lambda card: card.name)
def test_every_card_is_found_as_torch_prints_it(card):
    """Unless several of them have the same name there."""
    assert find_card(card.product_name) is card


@given(card=st.sampled_from(ALL), separator=st.sampled_from([" ", "_", "-", "  "]), upper=st.booleans())
def test_case_and_separators_do_not_matter(card, separator, upper):
    """`RTX 4090`, `rtx_4090` and `rtx-4090` are one card."""
    typed = card.name.replace("-", separator)

    assert find_card(f" {typed.upper() if upper else typed} ") is card


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Tesla T4", "t4"),
        ("nvidia-tesla-t4", "t4"),
        ("rtx4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("GeForce RTX 4090", "rtx-4090"),
        ("4090 laptop", "rtx-4090-laptop"),
        ("RTX 4060 Ti 16 GB", "rtx-4060ti-16gb"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx-1080ti"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("a100 80gb", "a100-80gb"),
        ("A100 PCIe 80GB", "a100-80gb-pcie"),
        ("h100 hbm3", "h100-80gb"),
        ("H100 SXM", "h100-80gb"),
        ("nvidia h100 nvl", "h100-nvl"),
        ("RTX A6000", "a6000"),
        ("6000 Ada", "rtx-6000-ada"),
        ("3g.20gb", "a100-40gb:3g.20gb"),
        ("A100 MIG 3g.40gb", "a100-80gb:3g.40gb"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", "a100-40gb:1g.5gb"),
        ("NVIDIA A100-PCIE-40GB MIG 1g.5gb", "a100-40gb:1g.5gb"),
        ("rtx-pro-6000:1g.24gb+me.all", "rtx-pro-6000:1g.24gb"),
    ],
)
def test_a_card_is_found_as_people_type_it(typed, name):
    """Makers' words do not matter, and words that fit one card are enough."""
    assert find_card(typed).name == name


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        ("a100", "a100-40gb, a100-40gb-pcie, a100-80gb or a100-80gb-pcie"),
        ("H100", "h100-80gb, h100-pcie or h100-nvl"),
        ("NVIDIA GeForce RTX 4060 Ti", "rtx-4060ti-16gb or rtx-4060ti-8gb"),
        ("titan", "titan-rtx, titan-v or titan-xp"),
        ("3g.40gb", "a100-80gb:3g.40gb, h100-80gb:3g.40gb or h100-pcie:3g.40gb"),
    ],
)
def test_a_name_of_several_cards_names_them(typed, candidates):
    """Sizes differ by a factor of two, so none of them is taken."""
    with pytest.raises(UsageError, match=f"GPU '{typed}' may be {candidates}: name one of them") as caught:
        find_card(typed)

    assert caught.value.slug == "ambiguous-gpu"


def test_a_long_list_of_candidates_is_cut():
    """`rtx` fits more cards than a line has room for."""
    with pytest.raises(UsageError, match=r"rtx-pro-6000, .*, and \d+ more: name one"):
        find_card("rtx")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("rtx-4061", "rtx-4060"),
        ("rtx 4099", "rtx-4090"),
        ("h100x", "h100-nvl"),
        ("a100-40gb:3g.21gb", "a100-40gb:3g.20gb"),
    ],
)
def test_an_unknown_card_suggests_the_nearest(typed, meant):
    """The message names what was typed, what may have been meant, and the command that lists all."""
    expected = rf"Unknown GPU '{typed}' \(did you mean .*{meant}.*peaksight gpus"
    with pytest.raises(UsageError, match=expected) as caught:
        find_card(typed)

    assert caught.value.slug == "unknown-gpu"


@pytest.mark.parametrize("typed", ["", " ", "-", "nvidia", "abacus"])
def test_what_is_near_no_card_is_unknown(typed):
    """No suggestion is better than a wild one."""
    with pytest.raises(UsageError, match=f"Unknown GPU '{typed}': "):
        find_card(typed)
