"""The table of programs under JAX, as `make accuracy-jax` wrote it: it needs an environment of its own."""

from itertools import dropwhile, takewhile
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "jax-accuracy.md"
INTRODUCTION = """\
## Under JAX

Every configuration that was measured, written by `make accuracy-jax`; [jax-accuracy](jax-accuracy.md) says how."""


def render_jax() -> str:
    """A section of Markdown with the first table of that page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = takewhile(_is_row, dropwhile(lambda line: not _is_row(line), lines))
    return "\n\n".join([INTRODUCTION, "\n".join(rows)])


def _is_row(line: str) -> bool:
    return line.startswith("|")
