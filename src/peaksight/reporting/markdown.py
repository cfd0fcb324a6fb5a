"""Templates of pages in Markdown as GitHub shows it, and what makes any text harmless in them."""

import re
from functools import cache
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined

from peaksight.units import format_bytes

_MARKUP = re.compile(r"([\\`*_\[\]{}|~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# What GitHub makes a link, a notification or a formula of; a comment between the sign and the word prevents it.
_SIGNS = re.compile(r"([@#$])(?=\S)")
_MIN_FENCE = 3


@cache
def markdown_templates() -> Environment:
    """The templates of this folder: what a script or a person named goes through `text`, `code`, `prose` or `fence`.

    The result may stand in a cell of a table, but for that of `fence`, which is a block.
    """
    environment = Environment(
        loader=PackageLoader("peaksight.reporting"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"bytes": format_bytes, "text": text, "code": code, "prose": prose, "fence": fence}
    return environment


def text(words: str) -> str:
    """`words` as running text: no line, column, markup, tag, mention or formula of its own."""
    plain = "".join(_ENTITIES.get(letter, letter) for letter in _one_line(words))
    return _SIGNS.sub(r"\1<!-- -->", _MARKUP.sub(r"\\\1", plain))


def code(words: str) -> str:
    """`words` as code, in which nothing is markup; empty where there are none."""
    plain = _one_line(words).strip().replace("|", "\\|")
    ticks = "`" * (_longest_run(plain) + 1)
    padding = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{padding}{plain}{padding}{ticks}" if plain else ""


def prose(words: str) -> str:
    """`words` of ours, in which what is code is between backticks."""
    parts = words.split("`")
    if len(parts) % 2 == 0:
        return text(words)
    return "".join(code(part) if index % 2 else text(part) for index, part in enumerate(parts))


def fence(block: str, language: str = "") -> str:
    """`block` as a block of code, which nothing in it can end."""
    ticks = "`" * max(_MIN_FENCE, _longest_run(block) + 1)
    return f"{ticks}{language}\n{block.rstrip()}\n{ticks}"


def _one_line(words: str) -> str:
    return " ".join(words.splitlines())


def _longest_run(words: str) -> int:
    return max((len(list(run)) for letter, run in groupby(words) if letter == "`"), default=0)
