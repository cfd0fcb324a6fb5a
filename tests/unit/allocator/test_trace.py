"""Reading recorded traces."""

import gzip
import json
import pickle

import pytest

from peaksight.allocator import TraceEvent, read_trace
from peaksight.errors import CaptureFileError

EVENTS = [["segment_alloc", 0, 2097152, 0], ["alloc", 0, 100, 0]]
EXPECTED = [TraceEvent(*event) for event in EVENTS]


def snapshot(*traces):
    """A torch.cuda.memory._snapshot() with the events of some devices."""
    keys = ("action", "addr", "size", "stream")
    return {
        "segments": [],
        "device_traces": [[dict(zip(keys, event, strict=True), frames=[]) for event in trace] for trace in traces],
    }


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(EVENTS).encode(),
        gzip.compress(json.dumps(EVENTS).encode(), mtime=0),
        json.dumps(snapshot([], EVENTS)).encode(),
        pickle.dumps(snapshot([], EVENTS)),
        gzip.compress(pickle.dumps(snapshot([], EVENTS)), mtime=0),
    ],
    ids=["json", "json.gz", "snapshot json", "snapshot pickle", "snapshot pickle.gz"],
)
def test_formats(tmp_path, content):
    """A list of events and a snapshot of PyTorch are read alike."""
    (tmp_path / "trace").write_bytes(content)

    assert read_trace(tmp_path / "trace") == EXPECTED


def test_device_of_a_snapshot(tmp_path):
    """Of a snapshot with several devices, one can be chosen, and must be."""
    (tmp_path / "trace").write_bytes(pickle.dumps(snapshot(EVENTS, EVENTS[:1])))

    assert read_trace(tmp_path / "trace", device=1) == EXPECTED[:1]
    with pytest.raises(CaptureFileError, match=r"events of 2 devices \[0, 1\]"):
        read_trace(tmp_path / "trace")


def test_events_without_address(tmp_path):
    """An `oom` event of a snapshot has no address."""
    (tmp_path / "trace").write_text(json.dumps({"device_traces": [[{"action": "oom", "size": 5, "device_free": 1}]]}))

    assert read_trace(tmp_path / "trace") == [TraceEvent("oom", 0, 5, 0)]


class Harmful:
    """Would call a function while being unpickled."""

    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "Ran out of input"),
        (b"not a trace", ""),
        (b'[["alloc", 0', "truncated"),
        (b'[["alloc", 0, 100]]', "length 4"),
        (b'[["alloc", "x", 100, 0]]', "Expected `int`"),
        (b'{"segments": []}', "device_traces"),
        (b'{"device_traces": []}', "events of 0 devices"),
        (gzip.compress(json.dumps(EVENTS).encode(), mtime=0)[:-10], "ended"),
        (b"\x1f\x8b\x08garbage garbage garbage", ""),
        (pickle.dumps([1, 2]), "Expected `object`"),
        (pickle.dumps(Harmful()), "it holds a builtins.print"),
    ],
)
def test_bad_files(tmp_path, content, cause):
    """A file that is no trace is refused with the fact, the cause and a way out."""
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(CaptureFileError) as caught:
        read_trace(path)

    assert str(caught.value).startswith(f"Can't read the allocator trace '{path}': ")
    assert cause in str(caught.value)
    assert "_dump_snapshot" in str(caught.value)
    assert caught.value.slug == "bad-trace"


def test_missing_file(tmp_path):
    """A file that is not there is named."""
    with pytest.raises(CaptureFileError, match="No such file"):
        read_trace(tmp_path / "none")
