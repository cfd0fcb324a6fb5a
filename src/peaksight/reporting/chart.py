"""Memory over time against the card's, as an SVG to set into a page: no script, no link, styled by the page."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pygal  # type: ignore[import-untyped]

from peaksight.records.recording import CurvePoint
from peaksight.units import format_bytes

_NUM_PARTS = 120
_NUM_TICKS = 5
_SVG = "{http://www.w3.org/2000/svg}"
_LEFT_OUT = {f"{_SVG}{name}" for name in ("defs", "title", "desc")}
_FONT_SIZE = 13
_SIZES = {"width": 760, "height": 270, "margin": 6, "spacing": 6}
_STYLE = pygal.style.Style(label_font_size=_FONT_SIZE, major_label_font_size=_FONT_SIZE, legend_font_size=_FONT_SIZE)


def timeline_chart(points: Sequence[CurvePoint], usable_bytes: int | None) -> str:
    """The most that was allocated and reserved in each part of a recording, and a line at what is usable, if known."""
    bounds = [len(points) * part // _NUM_PARTS for part in range(_NUM_PARTS + 1)]
    parts = [points[first:end] for first, end in pairwise(bounds) if first < end]
    most = [(max(p.allocated_bytes for p in part), max(p.reserved_bytes for p in part)) for part in parts]
    return _bars([("", *sizes) for sizes in most], usable_bytes, "{0}")


def _bars(bars: list[tuple[str, int, int]], usable_bytes: int | None, title: str) -> str:
    """A chart of `bars`: label, allocated and reserved bytes of each."""
    top_bytes = max(usable_bytes or 1, *(reserved for _, _, reserved in bars))
    chart = pygal.StackedBar(**_SIZES, style=_STYLE, js=[], legend_at_bottom=True, range=(0, top_bytes * 1.05))
    chart.x_labels = [label for label, _, _ in bars]
    chart.y_labels = [*_ticks(top_bytes, usable_bytes), *_limit(usable_bytes)]
    # Without one, pygal takes a label of its own choice.
    chart.y_labels_major = [-1 if usable_bytes is None else usable_bytes]
    chart.add("allocated", [_bar(allocated, allocated, "allocated") for _, allocated, _ in bars])
    chart.add("reserved", [_bar(reserved - allocated, reserved, "reserved") for _, allocated, reserved in bars])
    return _inline(ElementTree.fromstring(chart.render(is_unicode=True)), title)


def _limit(usable_bytes: int | None) -> list[dict[str, Any]]:
    return [] if usable_bytes is None else [_tick(usable_bytes, f"usable {format_bytes(usable_bytes)}")]


def _bar(height_bytes: int, num_bytes: int, what: str) -> dict[str, Any]:
    """A part of a bar that says `num_bytes`, which it reaches up to."""
    return {"value": height_bytes, "formatter": lambda _: f"{what} {format_bytes(num_bytes)}"}


def _ticks(top_bytes: int, usable_bytes: int | None) -> Iterator[dict[str, Any]]:
    """Round sizes up to the top, but none where the line of the usable memory has its label."""
    distance = 1 << (max(top_bytes // _NUM_TICKS, 1) - 1).bit_length()
    for size in range(0, top_bytes + 1, distance):
        if usable_bytes is None or abs(size - usable_bytes) > top_bytes / 16:
            yield _tick(size, format_bytes(size))


def _tick(num_bytes: int, label: str) -> dict[str, Any]:
    return {"value": num_bytes, "label": label}


def _inline(svg: ElementTree.Element, title: str) -> str:
    """The SVG without styles, scripts and names of its own; values are in a `title`, and guides lie on the bars."""
    for parent in list(svg.iter()):
        parent.attrib.pop("id", None)
        values = [child.text for child in parent if child.get("class") in ("x_label", "value")]
        for child in list(parent):
            if child.tag in _LEFT_OUT or _is_guides(child):
                parent.remove(child)
            if _is_guides(child):
                parent.append(child)
        if values:
            ElementTree.SubElement(parent, f"{_SVG}title").text = title.format(*values)
    ElementTree.register_namespace("", _SVG.strip("{}"))
    return ElementTree.tostring(svg, encoding="unicode")


def _is_guides(element: ElementTree.Element) -> bool:
    return element.get("class", "").startswith("axis y")
