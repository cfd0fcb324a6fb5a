"""Where the annotations of `--format github` go."""

import pytest

from peaksight.cli.formats import located, print_for_github
from peaksight.cli.output import Output


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "train.py").write_text("pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return tmp_path


def test_lines_are_found_from_the_root_of_the_repository(project, monkeypatch):
    """Reports name files by the folder of the script; what is no file has no place."""
    locate = located("examples/train.py")

    assert ("examples/train.py", 3) == locate("train.py:3")
    assert [None, None, None] == [locate(""), locate("model.py:3"), locate("train.py")]

    monkeypatch.setenv("GITHUB_WORKSPACE", str(project / "examples"))

    assert ("train.py", 3) == located("examples/train.py")("train.py:3")


def test_the_page_is_folded_and_the_summary_appended(project, monkeypatch, capsys):
    """What other steps of the job wrote stays."""
    summary = project / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    print_for_github(["::notice::fits"], "after\n", lambda console: console.print("page"), Output())

    assert "::notice::fits\n::group::peaksight\npage\n::endgroup::\n" == capsys.readouterr().out
    assert "before\nafter\n" == summary.read_text()


def test_json_keeps_stdout_and_a_full_disk_is_said(project, monkeypatch, capsys):
    """Annotations are on stderr then; the answer is given all the same."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/dev/full")
    print_for_github(["::notice::fits"], "after\n", None, Output())

    out, err = capsys.readouterr()
    assert "" == out
    assert "::notice::fits\npeaksight: no summary in /dev/full: No space left on device\n" == err
