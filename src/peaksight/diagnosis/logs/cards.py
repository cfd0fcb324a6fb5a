"""Which card of the table a log is about."""

from peaksight.errors import UsageError
from peaksight.gpus import Card, find_card, known_cards
from peaksight.records import LogEvidence, OomMessage

# How far one card's total differs between drivers, as the table of cards says.
_DRIFT = 0.03


def card_of(evidence: LogEvidence, message: OomMessage | None) -> Card | None:
    """The one card that the log names, or whose size alone is what the message prints; None where several could be.

    A name counts only if its card has about the capacity that the message prints.
    """
    capacity = message.capacity_bytes if message else None
    named = {card.name: card for name in evidence.card_names if (card := _named(name))}
    fitting = [card for card in named.values() if capacity is None or _is_near(card, capacity)]
    if not named and message and capacity and message.framework == "PyTorch":
        fitting = [card for card in known_cards() if _is_near(card, capacity)]
    return fitting[0] if len(fitting) == 1 else None


def _is_near(card: Card, capacity_bytes: int) -> bool:
    return abs(card.total_bytes - capacity_bytes) <= _DRIFT * card.total_bytes


def _named(words: str) -> Card | None:
    """The card that `words` begin with, by as many of them as name one."""
    parts = words.split(" ")
    for end in range(len(parts), 0, -1):
        try:
            return find_card(" ".join(parts[:end]))
        except UsageError as error:
            if error.slug == "ambiguous-gpu":
                return None
    return None
