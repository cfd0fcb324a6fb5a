"""The steps against the card's memory, as an SVG to set into a page: no script, no link, styled by the page."""

from collections.abc import Iterator
from xml.etree import ElementTree

import pygal  # type: ignore[import-untyped]

from peaksight.records import Report
from peaksight.reporting.rows import ends
from peaksight.units import format_bytes

_NUM_STEPS = 40
_NUM_TICKS = 5
_SVG = "{http://www.w3.org/2000/svg}"
_LEFT_OUT = {f"{_SVG}{name}" for name in ("defs", "title", "desc")}
_FONT_SIZE = 13
_SIZES = {"width": 760, "height": 270, "margin": 6, "spacing": 6}
_STYLE = pygal.style.Style(label_font_size=_FONT_SIZE, major_label_font_size=_FONT_SIZE, legend_font_size=_FONT_SIZE)


def steps_chart(report: Report) -> str:
    """A bar a step, of allocated and reserved bytes, and a line at what is usable; of many steps both ends."""
    usable_bytes = report.gpu.usable_bytes
    steps = ends(list(enumerate(report.steps, start=1)), _NUM_STEPS)
    top_bytes = max(usable_bytes, *(step.peak_reserved_bytes for _, step in steps))
    chart = pygal.StackedBar(**_SIZES, style=_STYLE, js=[], legend_at_bottom=True, range=(0, top_bytes * 1.05))
    chart.x_labels = [str(number) for number, _ in steps]
    chart.y_labels = [*_ticks(top_bytes, usable_bytes), _tick(usable_bytes, f"usable {format_bytes(usable_bytes)}")]
    chart.y_labels_major = [usable_bytes]
    chart.add("allocated", [_bar(s.peak_allocated_bytes, s.peak_allocated_bytes, "allocated") for _, s in steps])
    unused = ((s.peak_reserved_bytes - s.peak_allocated_bytes, s.peak_reserved_bytes) for _, s in steps)
    chart.add("reserved", [_bar(height, num_bytes, "reserved") for height, num_bytes in unused])
    return _inline(ElementTree.fromstring(chart.render(is_unicode=True)))


def _bar(height_bytes: int, num_bytes: int, what: str) -> dict:
    """A part of a bar that says `num_bytes`, which it reaches up to."""
    return {"value": height_bytes, "formatter": lambda _: f"{what} {format_bytes(num_bytes)}"}


def _ticks(top_bytes: int, usable_bytes: int) -> Iterator[dict]:
    """Round sizes up to the top, but none where the line of the usable memory has its label."""
    distance = 1 << (max(top_bytes // _NUM_TICKS, 1) - 1).bit_length()
    for size in range(0, top_bytes + 1, distance):
        if abs(size - usable_bytes) > top_bytes / 16:
            yield _tick(size, format_bytes(size))


def _tick(num_bytes: int, label: str) -> dict:
    return {"value": num_bytes, "label": label}


def _inline(svg: ElementTree.Element) -> str:
    """The SVG without styles, scripts and names of its own; values are titles, and guides lie on the bars."""
    for parent in list(svg.iter()):
        parent.attrib.pop("id", None)
        values = [child.text for child in parent if child.get("class") in ("x_label", "value")]
        for child in list(parent):
            if child.tag in _LEFT_OUT or _is_guides(child):
                parent.remove(child)
            if _is_guides(child):
                parent.append(child)
        if values:
            ElementTree.SubElement(parent, f"{_SVG}title").text = "step {1}: {0}".format(*values)
    ElementTree.register_namespace("", _SVG.strip("{}"))
    return ElementTree.tostring(svg, encoding="unicode")


def _is_guides(element: ElementTree.Element) -> bool:
    return element.get("class", "").startswith("axis y")
