"""What a script named is harmless in Markdown: GitHub shows it as it is."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from peaksight.reporting.markdown import code, fence, prose, text

WORDS = st.text(alphabet="ab `*_|<>&@#$\\[]~\n", max_size=12)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a|b\nc", "a\\|b c"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("*x* _y_ `z` [l](u) ~~s~~", "\\*x\\* \\_y\\_ \\`z\\` \\[l\\](u) \\~\\~s\\~\\~"),
        ("@team #1 $x$ 100 %", "@<!-- -->team #<!-- -->1 $<!-- -->x$ 100 %"),
        ("a \\ b", "a \\\\ b"),
    ],
)
def test_running_text(words, shown):
    """No line, column, markup, tag, mention or formula."""
    assert shown == text(words)


@pytest.mark.parametrize(
    ("words", "shown"),
    [("h.*.mlp", "`h.*.mlp`"), ("a|b", "`a\\|b`"), ("`a` ``", "``` `a` `` ```"), ("", ""), ("a\nb", "`a b`")],
)
def test_code(words, shown):
    """In ticks that nothing in it ends; nothing for nothing."""
    assert shown == code(words)


def test_our_words_have_code_between_backticks():
    """And what a script named in them has none of its own."""
    assert "set `fused=True` \\*" == prose("set `fused=True` *")
    assert "a \\` b" == prose("a ` b")


@given(words=WORDS)
def test_a_cell_stays_a_cell(words):
    """No line break, and no column but behind a backslash."""
    for made in (text(words), code(words), prose(words)):
        assert "\n" not in made
        assert "|" not in made.replace("\\|", "")


@given(block=WORDS)
def test_a_block_ends_where_it_ends(block):
    """Whatever backticks it has."""
    first, *lines, last = fence(block, "diff").split("\n")

    assert f"{last}diff" == first
    assert all(last not in line for line in lines)


def shown_in_a_table(cell):
    """The text of a cell as a reader of GitHub's Markdown sees it, and how many cells its row has."""
    page = (
        MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(f"| a | b |\n|---|---|\n| {cell} | end |\n")
    )
    cells = re.findall("<td>(.*?)</td>", page, re.DOTALL)
    tags = re.findall(r"<[^!].*?>", cells[0])
    return html.unescape(re.sub("<.*?>", "", cells[0])), len(cells), [tag for tag in tags if "code" not in tag]


@given(words=WORDS)
def test_it_is_shown_as_it_is(words):
    """In a cell, by a reader of Markdown: the same words, no markup, no cell of their own."""
    one_line = " ".join(words.splitlines())

    assert (one_line.strip(), 2, []) == shown_in_a_table(text(words))
    assert (" ".join(one_line.split()), 2, []) == _squeezed(*shown_in_a_table(code(words)))


def _squeezed(words, *rest):
    return " ".join(words.split()), *rest
