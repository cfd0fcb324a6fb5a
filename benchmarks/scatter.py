"""A picture of predicted against measured memory, on logarithmic axes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log2
from typing import Any

import pygal  # type: ignore[import-untyped]

from peaksight.units import GIB

_GREY = "#808080"
_COLOURS = ("#4c9f70", "#3b82c4", "#d08a2e", "#b05fb0", "#c8553d", "#20808d")


def render_scatter(points: Mapping[str, Iterable[tuple[int, int]]]) -> str:
    """SVG with a series a name, each of pairs of measured and predicted bytes; on the diagonal both are equal."""
    series = {name: [_place(pair) for pair in pairs] for name, pairs in points.items()}
    across, up = (_range(values) for values in zip(*(place for of in series.values() for place in of), strict=True))
    chart = pygal.XY(**_settings(len(series)), range=up, xrange=across)
    chart.x_labels, chart.y_labels = _ticks(across), _ticks(up)
    low, high = max(across[0], up[0]), min(across[1], up[1])
    chart.add("equal", [(low, low), (high, high)], stroke=True, show_dots=False)
    for name, places in series.items():
        chart.add(name, places, stroke=False)
    return _stripped(str(chart.render(is_unicode=True)), chart.uuid) + "\n"


def _stripped(svg: str, uuid: str) -> str:
    """Without what only a script would show, and the same for the same points."""
    return re.sub(r"<(desc|script)\b.*?</\1>", "", svg, flags=re.DOTALL).replace(uuid, "scatter")


def _place(pair: tuple[int, int]) -> tuple[float, float]:
    measured, predicted = pair
    return log2(measured / GIB), log2(predicted / GIB)


def _range(values: Sequence[float]) -> tuple[int, int]:
    return floor(min(values)), ceil(max(values))


def _ticks(ends: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"label": f"{2.0**power:.2g}", "value": power} for power in range(ends[0], ends[1] + 1)]


def _settings(num_series: int) -> dict[str, Any]:
    """Grey on nothing reads on white and on black."""
    style = pygal.style.Style(
        background="transparent", plot_background="transparent", foreground=_GREY, foreground_strong=_GREY,
        foreground_subtle=_GREY, guide_stroke_color=_GREY, major_guide_stroke_color=_GREY,
        colors=(_GREY, *_COLOURS[-num_series:]), opacity=".7",
    )  # fmt: skip
    return {
        "style": style, "js": [], "width": 640, "height": 560, "dots_size": 4, "legend_at_bottom": True,
        "legend_at_bottom_columns": 2, "truncate_legend": -1, "margin_bottom": 40,
        "x_title": "measured GiB", "y_title": "predicted GiB",
        "show_x_guides": True,
    }  # fmt: skip
