"""Templates of pages in Markdown."""

from collections.abc import Callable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from peaksight.units import format_bytes


@cache
def markdown_templates(cell: Callable[[str], str]) -> Environment:
    """The templates of this folder; `cell` makes of a text what may stand in a cell of a table."""
    loader = PackageLoader("peaksight.reporting")
    environment = Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"bytes": format_bytes, "cell": cell}
    return environment
