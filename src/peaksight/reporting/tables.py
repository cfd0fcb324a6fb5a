"""Tables for a terminal: without lines, and no number is broken over two of them."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text


def columns(*alignments: str, header: Iterable[str | Text] | None = None, indent: int = 1) -> Table:
    """An empty table, `indent` columns from the left; `<` and `>` align its columns, and numbers stand right."""
    table = Table(box=None, show_header=header is not None, header_style="dim", padding=(0, 1, 0, indent))
    titles = list(header) if header is not None else [""] * len(alignments)
    for alignment, title in zip(alignments, titles, strict=True):
        is_number = alignment == ">"
        table.add_column(title, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    return table
