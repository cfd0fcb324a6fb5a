"""Links and figures of the pages as they stand in the repository."""

import re

import pytest

from tests.docs.pages import PAGES, REPOSITORY, text_of

# Code holds no links.
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_links_lead_to_files(page):
    """As on GitHub, from the folder of the page."""
    folder = (REPOSITORY / page).parent
    missing = [link for link in LINK.findall(CODE.sub("", text_of(page))) if not (folder / link).exists()]

    assert not missing


def test_figures_of_the_questions():
    """Those in MiB are of docs/causes.md, but for the CUDA contexts and two calls without effect."""
    figures = set(re.findall(r"([\d,]+) MiB", CODE.sub("", text_of("docs/faq.md"))))

    assert len(figures) > 15
    assert figures - {"115", "518", "2"} <= set(re.findall(r"[\d,]+", text_of("docs/causes.md")))
