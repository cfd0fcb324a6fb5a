"""The lines that a capture remembers."""

import hashlib

import pytest

from peaksight.virtual_gpu.source_texts import source_lines_at

pytestmark = pytest.mark.torch

SOURCE = "import torch\n\n    x = torch.ones(2)\ny = x * 2\n"


def test_the_text_of_each_line_in_order(tmp_path):
    """Stripped, by number and not by text, with the digest of the whole file."""
    (tmp_path / "train.py").write_text(SOURCE * 4)
    lines = source_lines_at({"train.py:12", "train.py:3", ""}, str(tmp_path))

    assert [(line.at, line.text) for line in lines] == [
        ("train.py:3", "x = torch.ones(2)"),
        ("train.py:12", "y = x * 2"),
    ]
    assert {line.file_sha256 for line in lines} == {hashlib.sha256((SOURCE * 4).encode()).hexdigest()}


def test_files_that_lie_elsewhere_have_their_path(tmp_path):
    """As in the allocations of a capture."""
    shared = tmp_path / "shared.py"
    shared.write_text(SOURCE)
    (line,) = source_lines_at([f"{shared}:4"], str(tmp_path / "project"))

    assert (line.at, line.text) == (f"{shared}:4", "y = x * 2")


@pytest.mark.parametrize("source", ["gone.py:1", "<string>:1", "train.py:99", "binary.py:1", "train.py:0"])
def test_what_cannot_be_read_has_no_line(tmp_path, source):
    """A file that is gone, code without one, a line that is not there, and bytes that are no text."""
    (tmp_path / "train.py").write_text(SOURCE)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")

    assert source_lines_at([source], str(tmp_path)) == ()
