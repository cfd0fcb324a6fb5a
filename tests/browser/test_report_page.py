"""The page of a run, in a browser."""

import base64
import json
from dataclasses import replace
from itertools import groupby

import pytest

from helpers import holder_of, report_of
from helpers_browser import click, data_of, requests_of, text_of, violations_of, wait
from helpers_pages import ACTIVATION, NUM_LAYERS, numbers_in, report_of_training
from peaksight.records import Category
from peaksight.reporting.json import report_to_json
from peaksight.reporting.pages.excerpts import Excerpt, ExcerptLine
from peaksight.reporting.pages.report_page import report_to_html
from peaksight.units import GIB, MIB, format_bytes

FITS, FAILS = report_of_training(), report_of_training(fails=True)
EMPTY = report_of(steps=())
HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"
VIEWS = ("module", "line", "category", "op")


def hostile_report():
    """A report in which names are HTML."""
    holder = holder_of(GIB, Category.INPUT, module=HOSTILE, source=f"{HOSTILE}.py:1", op=HOSTILE, tensor=HOSTILE)
    return report_of(holder, argv=(HOSTILE,), peak=replace(FITS.peak, at=HOSTILE))


@pytest.mark.parametrize("report", [FITS, FAILS, EMPTY, hostile_report()], ids=["fits", "fails", "empty", "hostile"])
def test_a_page_opens_without_errors_and_without_the_network(browse, report):
    """From disk; nothing in the console, nothing fetched, and no name of a file is run."""
    page = browse(report_to_html(report))

    assert [] == page.get_log("browser")
    assert [] == requests_of(page)
    assert page.execute_script("return window.broken") is None


def test_the_numbers_of_a_page_are_those_of_the_json(browse):
    """Every number of bytes, in every view and at several moments, is in the JSON or a sum of its rows."""
    page, known = browse(report_to_html(FAILS)), numbers_in(json.loads(report_to_json(FAILS)))
    known |= sums_of(FAILS.live_at_peak) | sums_of(FAILS.oom.live)
    for view in VIEWS:
        click(page, f"[data-view={view}]")
        for at in (0, len(FAILS.course.ticks) // 2):
            page.execute_script(SLIDE, at)
        shown = data_of(page)

        assert set() == {num_bytes for num_bytes, _ in shown} - known
        assert [] == [pair for pair in shown if pair[1] != format_bytes(pair[0])]


SLIDE = """
const slider = document.getElementById("moment");
slider.value = arguments[0];
slider.dispatchEvent(new Event("input"));
"""


def sums_of(holders):
    """Of rows that agree in a category, a line, an operator, a module or the beginning of one, or several of them."""
    sums = {sum(holder.bytes for holder in holders)}
    parts = [lambda h: h.category, lambda h: h.source, lambda h: h.op]
    parts += [lambda h, n=n: ".".join(h.module.split(".")[:n]) for n in range(1, 6)]
    for first in parts:
        for second in parts:
            key = lambda h, a=first, b=second: (a(h), b(h))  # noqa: E731
            sums |= {sum(h.bytes for h in group) for _, group in groupby(sorted(holders, key=key), key)}
    return sums


def test_bytes_are_written_as_everywhere(browse):
    """The scripts round as Python does, halves to the even neighbour too."""
    sizes = (
        0,
        1023,
        1024,
        1536 + 5,
        MIB + MIB // 8,
        MIB + 3 * MIB // 8,
        GIB - 1,
        5 * GIB // 8 + 3 * GIB,
        3 * GIB // 200,
    )
    holders = [holder_of(size, Category.INPUT, source=f"train.py:{line}") for line, size in enumerate(sizes, start=1)]
    page = browse(report_to_html(report_of(*holders)))
    click(page, "[data-view=line]")
    shown = page.execute_script(
        "return [...document.querySelectorAll('#rows data')].map(e => [+e.value, e.textContent])"
    )

    assert len(sizes) == len(shown)
    assert [] == [pair for pair in shown if pair[1] != format_bytes(pair[0])]


def test_search_lists_what_matches_and_its_total(browse):
    """By any word of a row; Escape ends it."""
    page = browse(report_to_html(FAILS))
    field = page.find_element("id", "search")
    field.send_keys(f"layers.3 {ACTIVATION}")
    matches = [h for h in FAILS.live_at_peak if h.tensor == ACTIVATION and "layers.3" in h.module]

    assert matches
    assert f": {format_bytes(sum(h.bytes for h in matches))} in {len(matches)} row" in text_of(page, "#matches")
    assert "Model.layers.3.mlp" in text_of(page, "#matches")

    field.send_keys("nowhere")

    assert ": 0 B in 0 rows" in text_of(page, "#matches")

    field.send_keys("\ue00c")

    assert "" == text_of(page, "#matches")


def test_the_map_is_used_from_the_keyboard(browse):
    """Its table has buttons into each part, and its path leads back; the total stays that of the path."""
    page = browse(report_to_html(FAILS))
    inside = page.find_elements("css selector", "#rows button")

    assert NUM_LAYERS == len(inside)

    inside[0].send_keys("\ue007")

    assert "Model.layers" in text_of(page, "#path")
    assert "train.py" in text_of(page, "#rows")

    page.find_element("css selector", "#path button").send_keys("\ue007")

    assert format_bytes(FAILS.peak.allocated_bytes) in text_of(page, "#path")


@pytest.mark.parametrize(("view", "said"), [("line", "train.py:20"), ("category", "activation"), ("op", "aten::gelu")])
def test_views_of_the_map(browse, view, said):
    """The pressed one is told, and its names are in the table."""
    page = browse(report_to_html(FAILS))
    click(page, f"[data-view={view}]")

    assert said in text_of(page, "#live .drawn")
    assert page.execute_script("return document.querySelector('[data-view][aria-pressed=true]').dataset.view") == view


def test_a_finding_leads_to_its_rectangles(browse):
    """Its line and what is alive of it."""
    page = browse(report_to_html(FAILS))
    click(page, "[data-finding] button")

    assert text_of(page, "[data-finding] button code") in text_of(page, "#matches")


@pytest.mark.parametrize(("chart", "said"), [("timeline", "allocated"), ("treemap", "activation")])
def test_hovering_tells_what_is_there(browse, chart, said):
    """A box at the pointer with the numbers of that moment, or of that rectangle."""
    from selenium.webdriver import ActionChains

    page = browse(report_to_html(FAILS))
    canvas = page.find_element("css selector", f"#{chart} canvas")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(page).move_to_element(canvas).move_by_offset(5, 5).perform()

    assert said in wait(page, f"return document.querySelector('#{chart} .tip')?.innerText")


def test_the_pointer_chooses_a_moment(browse):
    """What is alive where it is, and who holds most, is told below the chart."""
    from selenium.webdriver import ActionChains

    page = browse(report_to_html(FAILS))
    canvas = page.find_element("css selector", "#timeline canvas")
    before = text_of(page, "#instant")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(page).move_to_element_with_offset(canvas, -canvas.size["width"] // 4, 0).perform()
    wait(page, f"return document.getElementById('instant').innerText != {json.dumps(before)}")

    assert "train.py" in text_of(page, "#instant")


def test_the_step_of_the_peak_is_zoomed_to(browse):
    """And the whole run again; the pressed button is told."""
    page = browse(report_to_html(FAILS))
    for part in ("step", "all"):
        click(page, f"[data-part={part}]")

        assert part == page.execute_script(
            "return document.querySelector('[data-part][aria-pressed=true]').dataset.part"
        )
    assert [] == page.get_log("browser")


def test_the_slider_chooses_a_moment(browse):
    """Its step, its phase and its largest holders are told below the chart."""
    page, course = browse(report_to_html(FAILS)), FAILS.course

    assert format_bytes(course.allocated_bytes[course.ticks.index(course.peak_tick)]) in text_of(page, "#instant")

    page.execute_script(SLIDE, 0)

    assert f"{format_bytes(course.allocated_bytes[0])} allocated" in text_of(page, "#instant")
    assert course.places[course.top[0][0].place].source in text_of(page, "#instant")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("report", [FITS, FAILS], ids=["fits", "fails"])
def test_axe_finds_nothing_wrong(browse, report, theme):
    """With everything unfolded and a search on."""
    page = browse(report_to_html(report), theme=theme)
    page.find_element("id", "search").send_keys("train")
    page.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true")

    assert [] == violations_of(page)


def test_the_theme_follows_the_system_and_the_switch(browse):
    """Auto, light, dark, and again."""
    page = browse(report_to_html(FITS), theme="dark")
    ground = "return getComputedStyle(document.body).backgroundColor"
    grounds = [page.execute_script(ground)]
    for _ in range(3):
        click(page, "#theme")
        grounds.append(page.execute_script(ground))

    assert grounds[0] == grounds[2] == grounds[3]
    assert grounds[0] != grounds[1]


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_scrolls_down_only(browse, width):
    """Nothing is wider than the screen: not what stands in the script either."""
    line = ExcerptLine(number=20, text=f"loss = {' + '.join(['model(batch)'] * 20)}", is_named=True)
    page = browse(report_to_html(FAILS, [Excerpt(at=FAILS.findings[0].at, lines=(line,))]), width=width)

    assert line.text in text_of(page, ".excerpt")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_page_is_printed_with_everything_unfolded(browse):
    """In light colours, and afterwards as it was."""
    page = browse(report_to_html(FAILS), theme="dark")
    page.execute_script("""
        window.seen = [];
        addEventListener("beforeprint", () => seen.push(document.querySelectorAll("details:not([open])").length));
        addEventListener("afterprint", () => seen.push(document.querySelectorAll("details:not([open])").length));
    """)
    paper = base64.b64decode(page.print_page())
    unfolded, folded = wait(page, "return seen.length == 2 && seen")

    assert paper.startswith(b"%PDF")
    assert (0, True) == (unfolded, folded > 0)


def test_the_json_is_kept_as_printed(browse):
    """Byte for byte: the button saves it as a file."""
    page = browse(report_to_html(FAILS))
    page.execute_script("""
        window.saved = null;
        URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return "#"; };
    """)
    click(page, "#save-json")

    assert report_to_json(FAILS) == wait(page, "return window.saved")
