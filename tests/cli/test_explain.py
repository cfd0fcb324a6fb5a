"""`peaksight explain`."""

from pathlib import Path

import pytest

from peaksight.diagnosis.catalog import all_texts, every_rule, title_of
from peaksight.diagnosis.kinds import RULE_OF_KIND
from peaksight.planning.texts import all_fix_texts
from tests.golden_files import compare_golden

DOCS = Path(__file__).parents[2] / "docs"


def test_without_a_name_all_rules_are_listed(peaksight):
    """One line each, its title at the end."""
    done = peaksight("explain")

    assert done.returncode == 0
    for slug in every_rule():
        assert any(line.split()[0] == slug for line in done.stdout.splitlines())
        assert title_of(slug).split()[0] in done.stdout


@pytest.mark.parametrize("options", [(), ("--markdown",)])
def test_the_text_of_a_rule(peaksight, options):
    """For a person, or as it is."""
    done = peaksight("explain", "graph-kept", *options)

    assert done.returncode == 0
    assert "Why it costs memory" in done.stdout
    assert ("## Fixes" in done.stdout) == bool(options)


def test_a_name_that_is_no_rule_s(peaksight):
    """The nearest one is offered."""
    done = peaksight("explain", "graph-keept")

    assert done.returncode == 2
    assert done.stderr.strip().startswith("peaksight: There is no rule 'graph-keept': did you mean graph-kept?")


def test_a_cause_that_read_names_leads_to_its_rule(peaksight):
    """Both have words of their own: a log cannot decide as much."""
    assert set(RULE_OF_KIND.values()) <= set(every_rule())
    assert not RULE_OF_KIND.keys() & set(every_rule())
    assert peaksight("explain", "memory-grows-over-steps").stdout == peaksight("explain", "grows-each-step").stdout


def test_the_page_of_rules_is_up_to_date():
    """docs/rules.md is what `peaksight explain --markdown` prints."""
    compare_golden(all_texts() + "\n", "rules.md", golden=DOCS)


def test_the_page_of_fixes_is_up_to_date():
    """docs/fixes.md is what `peaksight explain --markdown fixes` prints."""
    compare_golden(all_fix_texts() + "\n", "fixes.md", golden=DOCS)


def test_a_fix(peaksight):
    """Its class and its text."""
    done = peaksight("explain", "optimizer-in-backward")

    assert "Class: rounding" in done.stdout
    assert "no clipping" in done.stdout
