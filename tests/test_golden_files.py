"""The helper that compares with golden files."""

import pytest

from golden_files import compare_golden


def test_the_same_text_passes(tmp_path):
    """Nothing is written."""
    (tmp_path / "report.txt").write_text("peak\n")
    compare_golden("peak\n", "report.txt", golden=tmp_path, actual=tmp_path / "actual")

    assert not (tmp_path / "actual").exists()


def test_another_text_fails_and_is_kept(tmp_path):
    """The failure shows the difference; the new text waits to be read."""
    (tmp_path / "report.txt").write_text("peak\n")
    with pytest.raises(pytest.fail.Exception, match=r"-peak\n\+other"):
        compare_golden("other\n", "report.txt", golden=tmp_path, actual=tmp_path / "actual")

    assert (tmp_path / "actual" / "report.txt").read_text() == "other\n"
