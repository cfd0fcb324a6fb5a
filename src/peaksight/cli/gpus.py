"""`peaksight gpus`: the cards it knows."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import get_type_hints

import click
import msgspec
from rich.console import Console
from rich.table import Table

from peaksight.cli.output import Output
from peaksight.gpus import Card, known_cards, known_slices, room_on
from peaksight.units import format_bytes

_NUMBERS = ("memory", "usable", "SMs", "compute")
_WIDTH_WITH_NAMES = 76
_COMPUTED = ("threads_per_multi_processor", "context_margin_bytes", "usable_bytes")
# What torch prints in front of and behind the words that matter here.
_BRANDS = re.compile("^NVIDIA (GeForce )?| MIG .*$")


CardFacts = msgspec.defstruct(
    "CardFacts",
    list({**get_type_hints(Card), **dict.fromkeys(("context_bytes", *_COMPUTED), int)}.items()),
    kw_only=True,
    namespace={"__doc__": "The facts of a card: those of the table of cards, and what is computed from them."},
)


@click.command(short_help="List the cards that --gpu takes.")
@click.option("--mig", is_flag=True, help="List the slices of Multi-Instance GPU instead of whole cards.")
@click.option("--json", "as_json", is_flag=True, help="Print every fact of every card and slice as JSON.")
def gpus(mig: bool, as_json: bool) -> None:
    """List the cards that --gpu takes, with what a process can use of each beside its CUDA context."""
    if as_json:
        facts = [facts_of(card) for card in known_cards() + known_slices()]
        click.echo(msgspec.json.format(msgspec.json.encode(facts), indent=2))
    else:
        cards = known_slices() if mig else known_cards()
        Output().draw(lambda console: _print(cards, console))


def facts_of(card: Card) -> msgspec.Struct:
    """The `CardFacts` of `card`."""
    room = room_on(card)
    computed = {
        "threads_per_multi_processor": card.threads_per_multi_processor,
        "context_bytes": room.context_bytes,
        "context_margin_bytes": room.context_margin_bytes,
        "usable_bytes": room.usable_bytes,
    }
    return CardFacts(**asdict(card) | computed)


def _print(cards: Sequence[Card], console: Console) -> None:
    """The table, without the long names of the cards where there is no room for them."""
    has_names = console.width >= _WIDTH_WITH_NAMES
    table = Table(box=None, header_style="dim", padding=(0, 1))
    for title in ("name", *(("card",) if has_names else ()), *_NUMBERS):
        is_number = title in _NUMBERS
        table.add_column(title, justify="right" if is_number else "left", no_wrap=title != "card")
    for card in cards:
        name, words, *numbers = _row(card)
        table.add_row(name, *((words,) if has_names else ()), *numbers)
    console.print(table)


def _row(card: Card) -> tuple[str, ...]:
    major, minor = card.capability
    sizes = (format_bytes(card.total_bytes), format_bytes(room_on(card).usable_bytes))
    words = _BRANDS.sub("", card.product_name)
    return card.name, words, *sizes, str(card.multi_processor_count), f"{major}.{minor}"
