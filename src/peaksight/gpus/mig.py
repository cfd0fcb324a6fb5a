"""Reads the table of slices that Multi-Instance GPU cuts out of a card."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from peaksight.gpus.cards import Card, known_cards, read_table


@cache
def known_slices() -> tuple[Card, ...]:
    """Every slice, in the order of the table, as a card of its own: `a100-40gb:3g.20gb`."""
    cards = {card.name: card for card in known_cards()}
    return tuple(part for name, table in read_table("mig.toml").items() for part in _slices(cards, name, table))


def _slices(cards: dict[str, Card], name: str, table: dict[str, Any]) -> Iterator[Card]:
    """The slices of the card `name`; those of the cards it stands for go by their names too."""
    also = [cards[other] for other in table.get("also_of", ())]
    for profile, facts in table["profiles"].items():
        aliases = tuple(alias for other in also for alias in _names(other, profile))
        yield replace(_slice(cards[name], profile, facts), aliases=aliases, source=table["source"])


def _slice(card: Card, profile: str, facts: dict[str, int]) -> Card:
    """The slice `profile` of `card`: its share of the memory's channels and of the multiprocessors' speed."""
    name, product_name = _names(card, profile)
    processors, eighths = facts["multi_processor_count"], facts["memory_eighths"]
    return replace(
        card,
        name=name,
        product_name=product_name,
        total_bytes=facts["total_bytes"],
        multi_processor_count=processors,
        bandwidth_bytes_per_second=card.bandwidth_bytes_per_second * eighths // 8,
        half_flop_per_second=card.half_flop_per_second * processors / card.multi_processor_count,
        fp32_flop_per_second=card.fp32_flop_per_second * processors / card.multi_processor_count,
        l2_bytes=card.l2_bytes * eighths // 8,
        context_bytes=None,
        mig_profile=profile,
    )


def _names(card: Card, profile: str) -> tuple[str, str]:
    """As `--gpu` takes it and as torch prints it."""
    return f"{card.name}:{profile}", f"{card.product_name} MIG {profile}"
