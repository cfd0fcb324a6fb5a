"""Sentences on a page of a terminal."""

from rich.console import Console
from rich.text import Text

MAX_WIDTH = 120
# Below this, tables leave out the columns that one can do without.
NARROW = 76


def print_sentence(console: Console, text: str, style: str = "") -> None:
    """Print `text`, wrapped at words; one that is longer than a line, as a path may be, stays whole."""
    console.print(Text(text, style=style, overflow="ignore"), width=min(console.width, MAX_WIDTH), crop=False)
