"""The documentation site."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from peaksight.cli import COMMANDS
from peaksight.gpus import known_cards

REPOSITORY = Path(__file__).parents[2]
# What a browser fetches without being asked to; a link is followed by a person.
FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]* src=["']?(https?:|//)|<link(?![^>]*canonical)[^>]* href=["']?(https?:|//)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_nothing_is_fetched(site):
    """Fonts, scripts and pictures are the site's own."""
    pages = list(site.rglob("*.html"))

    assert len(pages) > 30
    for page in pages:
        assert not FETCHED.search(page.read_text("utf-8")), page
    for sheet in site.rglob("*.css"):
        assert "url(http" not in sheet.read_text("utf-8")


def test_pages_from_the_code(site):
    """Every command with its options, every card with how its memory is known, every schema."""
    commands, cards, formats = ((site / f"{name}.html").read_text("utf-8") for name in ("commands", "cards", "json"))

    assert all(f'<h2 id="{name}">' in commands for name, command in COMMANDS.items() if not command.hidden)
    assert "--reserved-by-others" in commands
    assert all(card.name in cards and card.source.split(":")[0] in cards for card in known_cards())
    assert all(path.name in formats for path in (REPOSITORY / "docs").glob("*.schema.json"))


def test_links_out_of_the_docs(site):
    """A README of a system is a page; a file of the repository is named."""
    assert 'href="../systems.html"' in (site / "systems" / "pi0_dex.html").read_text("utf-8")
    assert "<code>benchmarks/truth/README.md</code>" in (site / "plans.html").read_text("utf-8")
    assert not any("../src/" in page.read_text("utf-8") for page in site.rglob("*.html"))
