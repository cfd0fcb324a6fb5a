"""The table of scripts whose cause is known is well formed; `make causes` is what runs them."""

import re

import pytest

from tests.expected_causes import SCRIPTS, expected_causes

ENTRIES = expected_causes()


def test_every_reported_cause_is_in_the_table():
    named = [(entry.path, entry.arguments) for entry in ENTRIES]

    assert {f"reports/{path.name}" for path in (SCRIPTS / "reports").glob("*.py")} <= {path for path, _ in named}
    assert all((SCRIPTS / path).is_file() for path, _ in named)
    assert len(named) == len(set(named))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.path} {entry.arguments}".strip())
class TestEntry:
    def test_each_line_that_holds_bytes_is_in_the_script_once(self, entry):
        texts = [line.strip() for line in entry.script.read_text().splitlines()]

        assert [1] * len(entry.holds) == [texts.count(text) for text in entry.holds]
        assert entry.holds

    def test_a_peak_is_predicted_for_each_of_its_flags(self, entry):
        text = entry.script.read_text()
        flags = {"fixed": "--fixed", "near_miss": "--near-miss"}
        known = {name for name, flag in flags.items() if f'"{flag}"' in text}

        assert {"before"} | known == set(entry.peak_mib)
        assert "fixed" in known

    def test_the_fix_lowers_the_peak(self, entry):
        assert entry.measure in ("allocated", "reserved")
        assert 0 < entry.held_mib < entry.peak_mib["before"]
        if "no-effect" not in entry.rule:
            assert entry.peak_mib["fixed"] < entry.peak_mib["before"]

    def test_a_rule_is_a_slug(self, entry):
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule) for rule in [entry.rule, *entry.also])
        assert entry.rule not in entry.also
