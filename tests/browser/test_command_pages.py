"""The pages of the commands but `run`, in a browser."""

import pytest

from helpers_browser import click, requests_of, text_of, violations_of
from helpers_command_pages import PAGES

CHARTS = {
    "fix": ["plans", "phases"],
    "sweep": ["values"],
    "compare": ["phases", "categories"],
    "commits": ["commits"],
    "snapshot": ["timeline", "treemap"],
    "capsule": ["last-steps"],
    "watch": ["rank-0", "rank-1"],
    "jax": ["treemap", "programs"],
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_without_errors_and_without_the_network(browse, name):
    """From disk, wide and on a phone, where nothing but tables scrolls to the side."""
    for width in (1280, 390):
        page = browse(PAGES[name][0], width=width)

        assert [] == page.get_log("browser")
        assert [] == requests_of(page)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_drawn(browse, name):
    """Each has a canvas of some height, and says what it is."""
    page = browse(PAGES[name][0])

    drawn = page.execute_script(
        "return [...document.querySelectorAll('.chart canvas')].map(c => [c.closest('.chart').id, c.height > 60])"
    )
    labels = page.execute_script("return [...document.querySelectorAll('.chart [role=img], .chart[role=img]')].length")
    assert [[each, True] for each in CHARTS[name]] == drawn
    assert labels >= len(CHARTS[name])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible(browse, name, theme):
    """As far as axe finds, in either theme."""
    assert [] == violations_of(browse(PAGES[name][0], theme=theme))


def test_the_theme_can_be_chosen(browse):
    """And charts follow it."""
    page = browse(PAGES["fix"][0])
    click(page, "#theme")
    click(page, "#theme")

    assert page.execute_script("return document.documentElement.dataset.theme") == "dark"
    assert "dark" in text_of(page, "#theme")
    assert [] == page.get_log("browser")
