"""`peaksight gpus`: the cards it knows."""

import click
import msgspec
from rich.console import Console
from rich.table import Table

from peaksight.gpus import Card, known_cards
from peaksight.units import format_bytes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print every fact of every card as JSON.")
def gpus(as_json: bool) -> None:
    """List the cards that --gpu takes."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(known_cards()), indent=2))
    else:
        Console(highlight=False).print(_table())


def _table() -> Table:
    table = Table(box=None, header_style="dim")
    for title in ("name", "card", "memory", "SMs", "compute"):
        table.add_column(title, justify="right" if title in ("memory", "SMs") else "left", no_wrap=title == "name")
    for card in known_cards():
        table.add_row(*_row(card))
    return table


def _row(card: Card) -> tuple[str, ...]:
    major, minor = card.capability
    total = format_bytes(card.total_bytes)
    return card.name, card.product_name, total, str(card.multi_processor_count), f"{major}.{minor}"
