"""Paths of modules, as reports show them."""

import re

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


def fold_layers(module: str) -> str:
    """A module path without layer numbers: `h.11.mlp` is `h.*.mlp`."""
    return _NUMBER.sub("*", module)
