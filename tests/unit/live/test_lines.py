"""The file of a watched process."""

from pathlib import Path

import pytest

from peaksight.errors import CaptureFileError
from peaksight.live.process import this_process
from peaksight.live.sinks.lines import LinesSink
from peaksight.records.watched import WatchedStep
from peaksight.records.watched_file import is_watched, read_watched

STEP = WatchedStep(step=1, time=2.0, seconds=0.5, device=0, peak_allocated_bytes=100)


def test_what_is_written_is_read(tmp_path):
    """Line by line, without closing the file: so it is after a process was killed."""
    sink = LinesSink(tmp_path / "new", this_process(("train.py", "--lr", "1")))
    sink.write(STEP)
    watched = read_watched(sink.path)

    assert is_watched(sink.path)
    assert watched.process.argv == ("train.py", "--lr", "1")
    assert (watched.steps, watched.end) == ((STEP,), None)


def test_a_line_that_is_cut_short(tmp_path):
    """Nothing before it is lost."""
    sink = LinesSink(tmp_path, this_process(()))
    sink.write(STEP)
    sink.write(STEP)
    sink.path.write_bytes(sink.path.read_bytes()[:-10])

    assert read_watched(sink.path).steps == (STEP,)


def test_two_runs_in_one_directory(tmp_path):
    """Even of the same number of a process: neither overwrites the other."""
    first, second = (LinesSink(tmp_path, this_process((name,))) for name in ("a.py", "b.py"))
    first.write(STEP)

    assert [read_watched(path).process.argv for path in (first.path, second.path)] == [("a.py",), ("b.py",)]


def test_a_full_disk():
    """Is an error, which drops the sink."""
    sink = LinesSink.__new__(LinesSink)
    import os

    sink._file = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match="No space left"):
        sink.write(STEP)


def test_another_file(tmp_path):
    """Is told from one of ours."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"loss": 1}\n')

    assert not is_watched(path)
    assert not is_watched(Path("/nowhere"))
    with pytest.raises(CaptureFileError, match="no file of `peaksight watch`"):
        read_watched(path)


def test_another_release(tmp_path):
    """Says which one reads it."""
    sink = LinesSink(tmp_path, this_process(()))
    sink.path.write_bytes(sink.path.read_bytes().replace(b"watch/1", b"watch/9"))

    assert is_watched(sink.path)
    with pytest.raises(CaptureFileError, match="read it with peaksight"):
        read_watched(sink.path)
