"""Sizes on the command line: `24GiB`, `512MiB`, `16GB`."""

from typing import Any

import click

from peaksight.units import parse_bytes


class Size(click.ParamType[Any]):
    """A size in bytes, written with or without a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes of `value`; click's usage error for what is no size."""
        try:
            return value if isinstance(value, int) else parse_bytes(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


SIZE = Size()
