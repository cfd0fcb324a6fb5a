"""The scripts and styles of pages, and the policy that lets just them run."""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from peaksight.reporting.pages.palette import palette_css

STYLES = ("base.css", "parts.css", "charts.css", "commands.css", "print.css")
# In the order in which they are joined: what a file uses at its top level comes before it.
FRAME = ("dom.js", "format.js", "data.js", "theme.js")
REPORT = (
    *FRAME,
    *("timeline_option.js", "instant.js", "timeline.js"),
    *("tree.js", "treemap_option.js", "treemap.js", "search.js", "findings.js"),
    *("bars.js", "programs.js"),
    "report.js",
)
# What draws bars and lines of bytes; the page's own script comes last.
BARS = (*FRAME, "timeline_option.js", "bars.js")
FIX = (*BARS, "fix.js")
SWEEP = (*BARS, "sweep.js")
COMPARISON = (*BARS, "comparison.js")
COMMITS = (*BARS, "commits.js")
READ = (*REPORT[:-1], "read.js")
WATCH = (*BARS, "watch.js")
# A page that draws nothing.
PLAIN = (*FRAME, "plain.js")


@cache
def style_text() -> str:
    """The CSS of every page."""
    return "\n".join((palette_css(), *map(_asset, STYLES)))


@cache
def script_text(names: tuple[str, ...]) -> str:
    """The files `names` as one script that leaves no names behind."""
    body = "\n".join(map(_asset, names))
    return f'(() => {{\n"use strict";\n{body}\n}})();\n'


@cache
def charts_text() -> str:
    """Apache ECharts, as `make echarts` builds it."""
    return _asset("echarts/echarts.js")


def content_policy(style: str, scripts: Iterable[str]) -> str:
    """A Content Security Policy under which a page runs `scripts`, is styled by `style`, and reaches no network.

    Attributes may style: the widths of bars are numbers of the page's own.
    """
    allowed = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; "
        f"style-src-elem {_hash(style)}; style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )


@cache
def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", *name.split("/")).read_text(encoding="ascii")
