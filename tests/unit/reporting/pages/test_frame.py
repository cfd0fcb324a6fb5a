"""The frame of pages: what is in them, and what they may do."""

import base64
import gzip
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.records import Category
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.frame import packed, render_page
from peaksight.reporting.pages.palette import COLORS

PAGE = render_page("base.html", '{"text": "</script>"}', charts=True)


def scripts_of(page):
    """The text of each script that runs."""
    return re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)


def test_the_policy_lets_just_our_scripts_and_styles_run():
    """Each by its hash; nothing is fetched from anywhere."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', PAGE)[1].replace("&#39;", "'")
    texts = [*scripts_of(PAGE), re.search(r"<style>(.*?)</style>", PAGE, flags=re.DOTALL)[1]]
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts}

    assert policy.startswith("default-src 'none'; ")
    assert hashes == set(re.findall(r"'sha256-[^']*'", policy))
    assert "unsafe-inline" not in policy.split("style-src-attr")[0]


@pytest.mark.parametrize("names", [assets.FRAME, assets.REPORT])
def test_no_script_ends_its_element_or_names_an_address(names):
    """They are set into the page as they are, in ASCII."""
    text = assets.script_text(names)

    assert text.isascii()
    assert not re.search(
        r"</script|<!--|https?:|\beval\b|\bfetch\b|XMLHttpRequest|innerHTML", text, flags=re.IGNORECASE
    )
    assert "</script" not in assets.charts_text().lower()
    assert not re.search(r"</style|url\(|@import", assets.style_text())


@given(st.text() | st.sampled_from(["</script><script>alert(1)</script>", "<!--", "\ud800", "\u2028]]>"]))
def test_data_comes_back_as_it_was(text):
    """Whatever a script calls its files: no letter of it can be read as HTML; what is no Unicode becomes `?`."""
    data = packed(text)

    assert re.fullmatch(r"[A-Za-z0-9+/=]+", data)
    assert text.encode(errors="replace") == gzip.decompress(base64.b64decode(data))


def test_equal_data_makes_equal_pages():
    """Neither a time nor a random name."""
    assert PAGE == render_page("base.html", '{"text": "</script>"}', charts=True)


def test_tags_of_the_frame():
    """Charts are there where they are asked for, and the licence of what draws them with them."""
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _: tags.append(tag)
    parser.feed(PAGE)

    assert ["script"] * 3 == [tag for tag in tags if tag == "script"]
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(tags)
    assert "Apache ECharts" in scripts_of(PAGE)[0][:200]
    assert len(scripts_of(render_page("base.html", "{}"))) == 1


def test_every_category_has_a_color():
    """In both themes, and no two the same one."""
    assert set(Category) <= set(COLORS)
    assert len(COLORS) == len({light for light, _ in COLORS.values()}) == len({dark for _, dark in COLORS.values()})
