"""The capture file."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import allocation_of, capture_of, step_of
from peaksight.errors import CaptureFileError
from peaksight.gpus import Room, find_card, room_on
from peaksight.records import Approximation, Capture, NotReached, ScratchWrite
from peaksight.records.capture_file import VERSION, read_capture_file, write_capture_file

DATA = Path(__file__).parents[2] / "data" / "captures"
ROOM = room_on(find_card("t4"), others_bytes=1 << 30)
CAPTURE = capture_of(
    allocation_of(1 << 20, born=1, died=4, module="Model.layers.0", op="aten::mm"),
    allocation_of(1 << 10, born=2, died=None, module="Model.layers.1", op="aten::mm"),
    allocation_of(1 << 30, born=3, died=5, source="caf\u00e9.py:1"),
    steps=(step_of(1, 0, 5, backward_began=(2, 3)),),
    not_simulated=(Approximation(slug="values", what="1 value", bytes=None),),
    writes=(ScratchWrite(path="out/", bytes=0),),
    not_reached=(NotReached(at="train.py:9", text="if step % 100 == 0"),),
)
QUICK = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def file(tmp_path):
    """A good file of two captures."""
    path = tmp_path / "run.capture"
    write_capture_file(path, [CAPTURE, replace(CAPTURE, finished="failed", allocations=())], ROOM)
    return path


def lines_of(path):
    """The lines of `path` as JSON values."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path, lines):
    """Write `lines` as they are, whatever the checksum says."""
    path.write_bytes(
        gzip.compress(b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines))
    )


def refusal(path):
    """The slug of the error that reading `path` raises."""
    with pytest.raises(CaptureFileError) as caught:
        read_capture_file(path, Room)
    return caught.value.slug


def test_captures_and_their_room_survive(file):
    """GIVEN two captures, THEN both are read as written, and what they were judged for."""
    captures, room = read_capture_file(file, Room)

    assert captures == (CAPTURE, replace(CAPTURE, finished="failed", allocations=()))
    assert room == ROOM


def test_the_file_is_as_documented(file):
    """GIVEN nothing but docs/capture-format.md, THEN the allocations and the checksum can be read."""
    content = gzip.decompress(file.read_bytes())
    *lines, end = content.splitlines(keepends=True)
    tables = [line for line in map(json.loads, lines) if line.get("line") == "table"]
    columns = next(line["columns"] for line in tables if line["name"] == "allocations")

    assert columns["allocated_bytes"] == [allocation.allocated_bytes for allocation in CAPTURE.allocations]
    assert [columns["op"]["values"][place] for place in columns["op"]["rows"]] == [
        "aten::mm",
        "aten::mm",
        "aten::empty",
    ]
    assert json.loads(end) == {"line": "end", "sha256": hashlib.sha256(b"".join(lines)).hexdigest()}
    assert [json.loads(line).get("line", "head") for line in lines][:3] == ["head", "room", "capture"]


@QUICK
@given(captures=st.lists(st.builds(Capture, seconds=st.floats(0, 1e9)), max_size=2))
def test_any_capture_survives(captures, tmp_path):
    """Whatever the fields hold: any text, any size, empty tables."""
    path = tmp_path / "any.capture"
    write_capture_file(path, captures, ROOM)

    assert read_capture_file(path, Room) == (tuple(captures), ROOM)


def test_a_file_name_that_is_not_utf8(tmp_path):
    """Its odd bytes become question marks, wherever the name stands."""
    name = b"caf\xe9.py".decode(errors="surrogateescape")
    path = tmp_path / "odd.capture"
    odd = replace(CAPTURE, argv=(name,), allocations=(replace(CAPTURE.allocations[0], source=name),))
    write_capture_file(path, [odd], ROOM)
    ((read,), _) = read_capture_file(path, Room)

    assert (read.argv, read.allocations[0].source) == (("caf?.py",), "caf?.py")
    assert read.steps == CAPTURE.steps


def test_rows_beyond_a_line_are_kept(tmp_path, monkeypatch):
    """A long table takes several lines."""
    monkeypatch.setattr("peaksight.records.capture_file._ROWS_A_LINE", 2)
    path = tmp_path / "long.capture"
    write_capture_file(path, [CAPTURE], ROOM)

    assert read_capture_file(path, Room)[0] == (CAPTURE,)
    assert sum(line.get("name") == "allocations" for line in lines_of(path)) == 2


def test_equal_runs_make_equal_files(tmp_path):
    """No time and no name in the file."""
    files = tmp_path / "a", tmp_path / "b"
    for file in files:
        write_capture_file(file, [CAPTURE], ROOM)

    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_file_of_version_1_stays_readable():
    """GIVEN a file that peaksight 0.1.0 wrote, THEN it is read; a field that is new must have a default."""
    (limited, unlimited), room = read_capture_file(DATA / "version-1.capture", Room)

    assert (len(limited.allocations), limited.fatal, limited.failures[0].requested_bytes) == (23, 0, 144 << 20)
    assert (len(unlimited.allocations), unlimited.peak_allocated_bytes) == (74, 1_528_868_864)
    assert (room.card.name, room.card.total_bytes) == ("t4", 1 << 30)


def test_a_file_that_is_cut_short_anywhere(file):
    """GIVEN any number of bytes less, THEN it is refused, and by its name unless nothing is left."""
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])

        assert refusal(file) == ("capture-cut-short" if length > 1 else "not-a-capture")


def test_a_byte_that_was_changed(file):
    """GIVEN any byte changed, THEN the file is refused, or holds the same: some bits of gzip's nobody reads."""
    content, whole, num_refused = file.read_bytes(), read_capture_file(file, Room), 0
    for place in range(len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            assert whole == read_capture_file(file, Room)
        except CaptureFileError as error:
            assert error.slug in ("capture-changed", "capture-cut-short", "not-a-capture", "capture-version")
            num_refused += 1

    assert num_refused >= len(content) - 20


def test_a_line_that_was_changed_or_left_out(file):
    """GIVEN a file that was unpacked, edited and packed again, THEN its checksum tells."""
    head, room, *lines = lines_of(file)
    write_lines(file, [head, room, *lines[1:]])
    assert refusal(file) == "capture-changed"

    write_lines(file, [head, room, *lines[:-1]])
    assert refusal(file) == "capture-cut-short"


def test_a_later_version(file):
    """It is refused by its first line, whatever follows."""
    head, *_ = lines_of(file)
    write_lines(file, [head | {"version": VERSION + 1, "peaksight": "9.0"}])

    with pytest.raises(CaptureFileError, match=f"is of version {VERSION + 1}, written by peaksight 9.0"):
        read_capture_file(file, Room)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b'{"format":"peaksight.capture","version":1}',
        gzip.compress(b"", mtime=0),
        gzip.compress(b"[1]\n", mtime=0),
        gzip.compress(b'{"format":"other","version":1}\n', mtime=0),
        gzip.compress(bytes(1 << 20), mtime=0),
    ],
)
def test_a_file_that_is_no_capture(tmp_path, content):
    """Neither other files nor other gzipped ones."""
    path = tmp_path / "other"
    path.write_bytes(content)

    assert refusal(path) == "not-a-capture"


def rewritten(file, monkeypatch, change):
    """The same captures as a release would write them whose lines differ by `change`."""
    from peaksight.records import capture_file

    encode = capture_file._line
    monkeypatch.setattr(capture_file, "_line", lambda content: encode(change(json.loads(encode(content)))))
    write_capture_file(file, [CAPTURE], ROOM)
    monkeypatch.undo()


def test_facts_of_a_later_release_are_left_out(file, monkeypatch):
    """GIVEN a field, a column and a table more, THEN what is known is read."""

    def add(line):
        if line.get("line") == "table":
            line["columns"]["colour"] = [1] * len(next(iter(line["columns"].values())))
        if line.get("name") == "writes":
            line["name"] = "reads"
        if line.get("line") == "capture":
            line["fields"]["mood"] = "good"
        return line

    rewritten(file, monkeypatch, add)

    assert read_capture_file(file, Room)[0] == (replace(CAPTURE, writes=()),)


def test_optional_facts_may_be_missing(file, monkeypatch):
    """GIVEN a file from before `StepPeak.complete`, THEN its default is taken."""

    def remove(line):
        line.get("columns", {}).pop("complete", None)
        return line

    rewritten(file, monkeypatch, remove)

    assert read_capture_file(file, Room)[0] == (CAPTURE,)


@pytest.mark.parametrize(
    "change",
    [("born", [1, 2]), ("born", ["a", "b", "c"]), ("phase", {"values": ["sleep"], "rows": [0, 0, 0]}),
     ("op", {"values": ["a"], "rows": [0, 0, 9]}), ("op", {"values": ["a"], "rows": [0, 0, -1]})],
)  # fmt: skip
def test_facts_that_cannot_be_understood(file, monkeypatch, change):
    """GIVEN another meaning under the same version, THEN it is refused, and says who wrote it."""
    name, column = change

    def replace_column(line):
        if line.get("name") == "allocations":
            line["columns"][name] = column
        return line

    rewritten(file, monkeypatch, replace_column)

    assert refusal(file) == "capture-version"
