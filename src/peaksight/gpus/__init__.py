"""The cards: tables of facts, no code per card."""

from peaksight.gpus.cards import Card, known_cards
from peaksight.gpus.installed import installed_card
from peaksight.gpus.mig import known_slices
from peaksight.gpus.names import find_card
from peaksight.gpus.room import Room, outside_the_allocator, room_on

__all__ = [
    "Card",
    "Room",
    "find_card",
    "installed_card",
    "known_cards",
    "known_slices",
    "outside_the_allocator",
    "room_on",
]
