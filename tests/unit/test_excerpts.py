"""Excerpts of the script for a page."""

import hashlib

import pytest

from helpers import capture_of, holder_of, report_of
from peaksight.cli.excerpts import excerpts_for
from peaksight.records import Basis, Category, Finding, SourceLine
from peaksight.reporting.pages.excerpts import excerpts_of

TEXT = "".join(f"line({number})\n" for number in range(1, 10))


def finding_at(at, *evidence):
    return Finding(rule="activations", title="", bytes=1, evidence=evidence, fixes=(), basis=Basis.LIFETIME, at=at)


def capture_with(text):
    digest = hashlib.sha256(text.encode()).hexdigest()
    return capture_of(source_lines=(SourceLine(at="train.py:5", text="line(5)", file_sha256=digest),))


def named_in(excerpt):
    return [line.number for line in excerpt.lines if line.is_named]


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.py").write_text(TEXT)
    findings = (finding_at("train.py:5", "1.00 GiB at train.py:9, 2 MiB at other.py:3"), finding_at("train.py:5"))
    return report_of(holder_of(1, Category.INPUT), argv=("jobs/train.py",), findings=findings)


def test_lines_around_what_findings_name(report):
    """Each once, by the folder of the script; as many as there are at the end of a file."""
    excerpts = excerpts_for(report, [capture_with(TEXT)])

    assert [("train.py:5", [5]), ("train.py:9", [9])] == [(each.at, named_in(each)) for each in excerpts]
    assert [2, 3, 4, 5, 6, 7, 8] == [line.number for line in excerpts[0].lines]
    assert ["line(6)", "line(7)", "line(8)", "line(9)"] == [line.text for line in excerpts[1].lines]


def test_a_file_that_is_not_what_ran_shows_nothing(report):
    """Its lines may have moved: there is the one that the run remembers, if there was one."""
    assert () == excerpts_for(report, [])

    (excerpt,) = excerpts_for(report, [capture_with(TEXT + "\n")])

    assert ("train.py:5", [(5, "line(5)")]) == (excerpt.at, [(line.number, line.text) for line in excerpt.lines])


def test_a_line_that_is_not_there(report, tmp_path):
    """Of a file that a name does not fit, as of code made of a string."""
    text = "line(1)\n"
    (tmp_path / "jobs" / "train.py").write_text(text)

    assert ["train.py:5"] == [excerpt.at for excerpt in excerpts_for(report, [capture_with(text)])]


def test_excerpts_that_overlap_are_one(report):
    """With both lines marked; others stand for themselves."""
    excerpts = excerpts_for(report, [capture_with(TEXT)])
    (joined,) = excerpts_of(report.findings[0], excerpts)

    assert "train.py:5 and train.py:9" == joined.at
    assert ([5, 9], [*range(2, 10)]) == (named_in(joined), [line.number for line in joined.lines])
    assert excerpts[:1] == tuple(excerpts_of(report.findings[1], excerpts))
