"""The cards: a table of facts, no code per card."""

from peaksight.gpus.cards import Card, find_card, known_cards
from peaksight.gpus.installed import installed_card
from peaksight.gpus.room import Room, outside_the_allocator, room_on

__all__ = ["Card", "Room", "find_card", "installed_card", "known_cards", "outside_the_allocator", "room_on"]
