"""Paths of arguments and results without what libraries put around them: `state.params['w']`."""

import re

from peaksight.jax import equinox_names, nnx_names

# The box of an array in flax (`Partitioned`, `Variable`).
_BOX = r"(?<=.)\.value$"
_WRAPPERS = re.compile("|".join((nnx_names.WRAPPER, equinox_names.WRAPPER, _BOX)))


def bare_path(path: str | None) -> str:
    """`path` as the person knows it."""
    return _WRAPPERS.sub("", path or "")
