"""The cards: a table of facts, no code per card."""

from peaksight.gpus.cards import Card, find_card, known_cards
from peaksight.gpus.installed import installed_card

__all__ = ["Card", "find_card", "installed_card", "known_cards"]
