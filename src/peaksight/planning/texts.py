"""What `peaksight explain` says of fixes, and docs/fixes.md: the texts of the catalogue, in the order of trying."""

from textwrap import fill

from peaksight.planning.catalog import FIXES, JAX_FIXES
from peaksight.planning.kind import FixKind

_WIDTH = 120
_ALL = (*FIXES, *JAX_FIXES)
_HEAD = """# Fixes

What `peaksight fix` tries, as `peaksight explain FIX` prints it. This page is the output of
`peaksight explain --markdown fixes`.

Each has a class, the most that it does to the training: `bitwise` the same numbers, `rounding` the same formulas
rounded in another order, `noise` the same objective with other random or rounding noise, `model` another training. A
fix is tried where the simulated run shows that its bytes are there, and is not where something of the run speaks
against it; the answer of `fix` says why.

Those whose names begin with `jax-` are for scripts under JAX: each is simulated by running the script again with it, by
XLA's compiler where its plugin is installed, else by liveness on the jaxpr."""
_CLASSES = {
    "bitwise": "the same numbers",
    "rounding": "at most other rounding",
    "noise": "at most other noise in the same training",
    "model": "at most another training",
}


def fix_titles() -> dict[str, str]:
    """The titles of all fixes by their slugs."""
    return {fix.slug: fix.title for fix in _ALL}


def text_of_fix(slug: str) -> str:
    """The title, class and text of a fix, in Markdown.

    Raises:
        KeyError: there is no such fix.
    """
    fix = {fix.slug: fix for fix in _ALL}[slug]
    return f"# {_heading(fix)}\n\n{_body(fix)}"


def all_fix_texts() -> str:
    """Those of all fixes as one page."""
    return "\n\n".join([_HEAD, *(f"## {_heading(fix)}\n\n`{fix.slug}`\n\n{_body(fix)}" for fix in _ALL)])


def _heading(fix: FixKind) -> str:
    return fix.title[0].upper() + fix.title[1:]


def _body(fix: FixKind) -> str:
    effect = f"Class: `{fix.effect.value}`, {_CLASSES[fix.effect.value]}."
    return f"{effect}\n\n{fill(fix.text, _WIDTH, break_long_words=False, break_on_hyphens=False)}"
