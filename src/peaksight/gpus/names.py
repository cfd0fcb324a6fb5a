"""Finds a card by its name, as people type it."""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache

from peaksight.errors import UsageError
from peaksight.gpus.cards import Card, known_cards
from peaksight.gpus.mig import known_slices

_PROFILE = re.compile(r"\b\d+g\.\d+gb")
_MEDIA_ENGINES = re.compile(r"(?<=gb)[+-](me(\.all)?|gfx)$")
# Words that tell no card from another.
_BRANDS = {"nvidia", "geforce", "tesla", "gpu", "mig"}
_MAX_CANDIDATES = 8


def find_card(name: str) -> Card:
    """The card or slice called `name`, as `--gpu` takes it, as torch or nvidia-smi print it, or near that.

    Case, blanks, dashes and the words NVIDIA and GeForce do not matter, `4090` is enough for `rtx-4090`, and a
    profile (`3g.20gb`) for a slice that only one card has. UsageError for an unknown name, and for one that several
    cards go by.
    """
    cards = _cards_called(name)
    if len(cards) == 1:
        return cards[0]
    raise _ambiguous(name, cards) if cards else _unknown(name)


def _cards_called(name: str) -> list[Card]:
    """The cards that `name` fits best: exactly, else without RTX or GTX, else those that have all of its words."""
    words = _words(name)
    ways: tuple[Callable[[Card], bool], ...] = (
        lambda card: "".join(words) in {"".join(known) for known in _names(card)},
        lambda card: "".join(words) in {re.sub("^(rtx|gtx)", "", "".join(known)) for known in _names(card)},
        lambda card: bool(words) and set(words) <= {word for known in _names(card) for word in known},
    )
    pool = _pool(name)
    return next((found for way in ways if (found := [card for card in pool if way(card)])), [])


def _pool(name: str) -> Sequence[Card]:
    """Slices where `name` has a profile, else whole cards."""
    return known_slices() if _PROFILE.search(name.lower()) else known_cards()


@cache
def _names(card: Card) -> tuple[list[str], ...]:
    """The words of each name of `card`."""
    return tuple(_words(name) for name in (card.name, card.product_name, *card.aliases))


def _words(name: str) -> list[str]:
    """The lower-case words of `name` that tell cards apart; a profile is a word, whatever media engines it has."""
    plain = _MEDIA_ENGINES.sub("", name.lower().strip())
    return [word for word in re.split(r"[\s_:-]+", plain) if word and word not in _BRANDS]


def _ambiguous(name: str, cards: Sequence[Card]) -> UsageError:
    candidates = [card.name for card in cards]
    more = "" if len(candidates) <= _MAX_CANDIDATES else f", and {len(candidates) - _MAX_CANDIDATES} more"
    return UsageError(
        f"GPU {name!r} may be {_either(candidates[:_MAX_CANDIDATES])}{more}: name one of them.", slug="ambiguous-gpu"
    )


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"Unknown GPU {name!r}{_hint(name.lower())}: `peaksight gpus` lists the known ones, with --mig their slices; "
        "for another card, name a near one and give its size with --memory.",
        slug="unknown-gpu",
    )


def _hint(name: str) -> str:
    """Up to three names of the table that `name` may have meant, as the rest of a sentence."""
    names = [card.name for card in _pool(name)] if _words(name) else []
    nearest = [known for known in names if name in known] or get_close_matches(name, names, cutoff=0.5)
    return f" (did you mean {_either(nearest[:3])}?)" if nearest else ""


def _either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
