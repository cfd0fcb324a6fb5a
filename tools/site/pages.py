"""The pages of the site that are made from the code when it is built."""

import inspect
import json
import re

import click

from peaksight.cli import peaksight
from peaksight.gpus import Card, known_cards, known_slices, room_on
from peaksight.units import format_bytes

_COMMANDS = """# Commands

What each command takes, as `peaksight COMMAND --help` says it. Options stand in front of the script:
everything behind it is the script's own.

{commands}
"""

_CARDS = """---
hide: [toc]
---

# Cards

The {number} cards that `--gpu` takes, from the table `src/peaksight/gpus/cards.toml`. `peaksight gpus` prints them too.

- *memory* is what torch calls `total_memory`. It changes by up to 3 % with the driver: only a card that was measured
  here is exact. The last column says where the figure is from. All are those of Linux.
- *usable* is what one process can take of it beside its CUDA context. The context is {measured} for the cards of which
  a bare one was measured; for all others it is estimated from the threads that the card holds, true to 64 MiB in nine
  of ten of the 135 error messages that it was fitted to.
- *bandwidth* and *16 bits* (dense FLOP/s of the tensor cores) are those of data sheets. They decide about predicted
  times, not about memory.

{cards}

## Slices

Multi-Instance GPU cuts a card into slices: `--gpu 3g.20gb`. The context of a slice was never measured: it is estimated,
taken as true to 128 MiB.

{slices}
"""

_JSON = """# JSON

`--json FILE` writes what a command found; `--json -` prints it, alone, on stdout.

{rows}

Sizes end in `_bytes`, times in `_seconds`. A place in the script reads `file.py:line`.
"""


def generated_pages(repository):
    """Markdown by the name of its page: commands, cards, JSON formats, and what is told of the five systems."""
    return {
        "commands.md": _COMMANDS.format(commands="\n\n".join(_commands())),
        "cards.md": cards_page(),
        "json.md": _JSON.format(rows="\n".join(_schema_rows(repository / "docs"))),
        **_systems(repository / "examples" / "systems"),
    }


def _systems(folder):
    """The README of each of the systems, and beside it what peaksight wrote by itself, where it did."""
    pages = {}
    for path in sorted(folder.glob("*/README.md")):
        name = path.parent.name
        pages[f"systems/{name}.md"] = path.read_text("utf-8").replace("(incident.md)", f"({name}-incident.md)")
        if (incident := path.with_name("incident.md")).exists():
            pages[f"systems/{name}-incident.md"] = incident.read_text("utf-8")
    return pages


def _commands():
    group = click.Context(peaksight, info_name="peaksight", **peaksight.context_settings)
    for name in peaksight.list_commands(group):
        command = peaksight.get_command(group, name)
        if not command.hidden:
            yield "\n\n".join(_command(command, click.Context(command, info_name=name, parent=group)))


def _command(command, context):
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    records = [option.get_help_record(context) for option in options]
    yield f"## {context.info_name}"
    yield f"`{context.command_path} {' '.join(command.collect_usage_pieces(context))}`"
    yield inspect.cleandoc(command.help).replace("\b\n", "")
    yield _table(("option", ""), [(f"`{names}`", _in_a_cell(text)) for names, text in filter(None, records)])


def _in_a_cell(text):
    return " ".join(text.split()).replace("|", "\\|").replace("<=", "&le;").replace(">=", "&ge;")


def cards_page():
    """Every card and slice, with how its memory is known."""
    cards = known_cards()
    measured = ", ".join(f"{format_bytes(c.context_bytes)} ({c.name})" for c in cards if c.context_bytes is not None)
    head = ("--gpu", "card", "memory", "usable", "SMs", "compute", "bandwidth", "16 bits", "the memory is")
    return _CARDS.format(
        number=len(cards),
        measured=measured,
        cards=_table(head, [(*_card_cells(card), card.source) for card in cards]),
        slices=_table(head[:-1], [_card_cells(card) for card in known_slices()]),
    )


def _card_cells(card: Card):
    yield f"`{card.name}`"
    yield card.product_name.removeprefix("NVIDIA ")
    yield format_bytes(card.total_bytes)
    yield format_bytes(room_on(card).usable_bytes)
    yield str(card.multi_processor_count)
    yield "{}.{}".format(*card.capability)
    yield f"{card.bandwidth_bytes_per_second / 1e9:,.0f} GB/s"
    yield f"{card.half_flop_per_second / 1e12:,.0f} TFLOP/s"


def _schema_rows(docs):
    yield "| schema | what it is of |"
    yield "|---|---|"
    for path in sorted(docs.glob("*.schema.json")):
        schema = json.loads(path.read_text("utf-8"))
        about = _resolved(schema, schema.get("items", schema)).get("description", "")
        yield f"| [{path.name.removesuffix('.schema.json')}]({path.name}) | {_first_sentence(about)} |"


def _resolved(schema, part):
    return schema["$defs"][part["$ref"].rpartition("/")[2]]


def _first_sentence(text):
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0]


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
