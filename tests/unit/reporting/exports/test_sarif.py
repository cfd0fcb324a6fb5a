"""Findings for code review tools, by the SARIF 2.1.0 standard and the needs of GitHub code scanning."""

import json
import re
from dataclasses import replace

import pytest

from helpers import holder_of, oom_of, report_of
from peaksight.diagnosis.catalog import every_rule, finds_of
from peaksight.records import Category
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.reporting.exports.sarif import RuleText, report_to_sarif
from peaksight.units import GIB

KEPT = Finding(
    rule="graph-kept",
    title="Losses {0} keep [their](graphs)",
    bytes=3 * GIB,
    evidence=("3.00 GiB at train.py:9",),
    fixes=(Fix(kind="detach", text="Write losses.append(loss.item()).", effect=Effect.BITWISE),),
    basis=Basis.LIFETIME,
    at="train.py:9",
)
RULES = {"graph-kept": RuleText(title="Graphs are kept", finds="Graphs of {steps}.", markdown="# Graphs\nare kept")}
LINES = {"train.py:9": "losses.append(loss)"}


def sarif_of(report, locate=lambda at: None, lines=LINES):
    (run,) = json.loads(report_to_sarif(report, RULES, locate, lines))["runs"]
    return run


def report(**about):
    about = {"argv": ("my scripts/train.py",), "fits": False, "oom": oom_of(GIB), "findings": (KEPT,)} | about
    return report_of(holder_of(4 * GIB, Category.ACTIVATION, source="train.py:7"), **about)


def test_what_the_standard_demands():
    """The version, a driver with a name, and results with messages, rules and lines from 1."""
    file = json.loads(report_to_sarif(report(), RULES, lambda at: None, LINES))
    driver = file["runs"][0]["tool"]["driver"]

    assert ("2.1.0", "peaksight") == (file["version"], driver["name"])
    assert file["$schema"].endswith("sarif-schema-2.1.0.json")
    names = "ruleId ruleIndex level message locations partialFingerprints properties".split()
    for result in file["runs"][0]["results"]:
        assert names == list(result)
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1
    for rule in driver["rules"]:
        assert all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help"))


def test_the_failure_is_an_error_and_findings_are_warnings():
    """Where the run fits they are notes; where it only may fail nothing is an error."""
    levels = [{r["ruleId"]: r["level"] for r in sarif_of(report(fits=fits))["results"]} for fits in (False, None)]
    fitting = sarif_of(report(fits=True, oom=None))["results"]

    assert {"out-of-memory": "error", "graph-kept": "warning"} == levels[0]
    assert {"out-of-memory": "warning", "graph-kept": "warning"} == levels[1]
    assert [("graph-kept", "note")] == [(result["ruleId"], result["level"]) for result in fitting]


def test_messages_are_text():
    """Braces are no places for arguments, brackets no links."""
    run = sarif_of(report())
    message = run["results"][1]["message"]["text"]

    assert message.startswith(
        "Losses {{0}} keep [their] (graphs) (3.00 GiB). Write losses.append(loss.item()). 3.00 GiB at train.py:9."
    )
    assert "Graphs of {{steps}}." == run["tool"]["driver"]["rules"][1]["fullDescription"]["text"]
    assert "# Graphs\nare kept" == run["tool"]["driver"]["rules"][1]["help"]["markdown"]


@pytest.mark.parametrize(
    ("found", "uri", "line"),
    [
        (("src/my net.py", 3), "src/my%20net.py", 3),
        (None, "my%20scripts/train.py", 9),
        (("/elsewhere/net.py", 3), "file:///elsewhere/net.py", 3),
    ],
)
def test_uris_are_relative_to_the_repository(found, uri, line):
    """Found there, or else named by the folder of the script; a file outside of it has a URI of its own."""
    place = sarif_of(report(), lambda at: found)["results"][1]["locations"][0]["physicalLocation"]

    assert (uri, line) == (place["artifactLocation"]["uri"], place["region"]["startLine"])
    assert uri.startswith("file:") or "%SRCROOT%" == place["artifactLocation"]["uriBaseId"]


def test_what_has_no_line_is_told_at_the_script():
    """Every result needs a place."""
    nowhere = replace(KEPT, at="")
    peak = replace(report().peak, at="")
    place = sarif_of(report(peak=peak, findings=(nowhere,)))["results"][1]["locations"][0]["physicalLocation"]

    assert ("my%20scripts/train.py", 1) == (place["artifactLocation"]["uri"], place["region"]["startLine"])


def test_fingerprints_stay_when_lines_move():
    """They are of the rule, the file and what the line says; two alike are counted."""
    moved = replace(KEPT, at="train.py:19")
    before = fingerprints(sarif_of(report(findings=(KEPT,))))
    after = fingerprints(sarif_of(report(findings=(moved,)), lines={"train.py:19": "losses.append(loss)"}))
    other = fingerprints(sarif_of(report(findings=(moved,)), lines={"train.py:19": "kept += loss"}))
    twice = fingerprints(sarif_of(report(findings=(KEPT, replace(KEPT, bytes=1)))))

    assert before[1] == after[1] != other[1]
    assert re.fullmatch("[0-9a-f]{16}:1", before[1])
    assert [before[1], before[1].replace(":1", ":2")] == twice[1:]


def fingerprints(run):
    return [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]


@pytest.mark.parametrize("slug", every_rule())
def test_every_rule_says_what_it_finds(slug):
    """In one paragraph, which GitHub shows up to 1024 characters."""
    assert 20 < len(finds_of(slug)) <= 1024
    assert "\n" not in finds_of(slug)
