"""The frame of every page: head, policy, styles, data and scripts around the sections of a template."""

import base64
import gzip
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from peaksight import __version__
from peaksight.reporting import cards, rows, sentences
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.palette import words_of
from peaksight.units import format_bytes, format_difference


def render_page(
    template: str, json: str, *, scripts: Sequence[str] = assets.FRAME, charts: bool = False, **about: Any
) -> str:
    """The page that `template` makes `about` something, of which `json` is what `--json` prints.

    `scripts` are names of assets, `charts` tells whether they draw any.
    """
    style = assets.style_text()
    texts = ([assets.charts_text()] if charts else []) + [assets.script_text(tuple(scripts))]
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),
            scripts=[Markup(text) for text in texts],
            policy=assets.content_policy(style, texts),
            data=packed(json),
            **about,
        )
    )


def packed(json: str) -> str:
    """`json` as a page carries it; `data.js` unpacks it."""
    return base64.b64encode(gzip.compress(json.encode(errors="replace"), mtime=0)).decode()


@cache
def _environment() -> Environment:
    loader = PackageLoader("peaksight.reporting.pages")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "bytes": format_bytes,
        "breakable": breakable,
        "difference": format_difference,
        "seconds": format_seconds,
        "percent": lambda share: f"{100 * share:.1f} %",
        "words": words_of,
    }
    environment.globals |= {"cards": cards, "rows": rows, "sentences": sentences, "version": __version__}
    return environment


def format_seconds(seconds: float) -> str:
    """`72.9 ms`, `3.25 s`."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def breakable(name: str) -> Markup:
    """A path or a module that may be broken between its parts where the page is narrow."""
    return Markup(re.sub(r"([/_]|\.(?!py\b))", r"\1<wbr>", str(escape(name))))
