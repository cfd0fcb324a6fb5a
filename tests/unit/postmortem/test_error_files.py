"""The files in which torchelastic keeps errors."""

import json

import pytest

from peaksight.postmortem.error_files import read_error_file


def test_an_error(tmp_path):
    """As `ErrorHandler.record_exception` writes it, below torchrun's --log-dir."""
    path = tmp_path / "none_abc" / "attempt_0" / "3" / "error.json"
    path.parent.mkdir(parents=True)
    extra = {"py_callstack": "Traceback ...", "timestamp": "1795867200"}
    path.write_text(json.dumps({"message": {"message": "RuntimeError: no", "extraInfo": extra}}))
    error = read_error_file(path)

    assert (3, "RuntimeError: no", 1_795_867_200.0) == (error.rank, error.message, error.time)


@pytest.mark.parametrize(
    "text", ["", "no", "[]", '{"message": 3}', '{"message": {"other": 1}}', '{"other": "message"}']
)
def test_no_error(tmp_path, text):
    """Anything else is not taken for one."""
    path = tmp_path / "error.json"
    path.write_text(text)

    assert read_error_file(path) is None
