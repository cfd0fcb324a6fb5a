"""Device memory profiles of JAX, written here field by field."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.errors import SnapshotError
from peaksight.postmortem.profiles import is_profile, read_profile
from peaksight.units import MIB

STRINGS = ["", "allocations", "count", "space", "bytes", "kind", "buffer", "executable", "device", "gpu:0"]
USER, LIBRARY = "/home/u/train.py", "/usr/lib/python3.11/site-packages/jax/_src/pjit.py"


def varint(number):
    parts = []
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def label(key, value):
    return message(3, number(1, STRINGS.index(key)) + number(2, STRINGS.index(value)))


def sample(locations, count, num_bytes, kind="buffer"):
    packed = message(1, b"".join(map(varint, locations))) + message(2, varint(count) + varint(num_bytes))
    return message(2, packed + label("kind", kind) + label("device", "gpu:0"))


def profile(*samples):
    strings = [*STRINGS, USER, LIBRARY, "main", "cache_miss"]
    types = message(1, number(1, 1) + number(2, 2)) + message(1, number(1, 3) + number(2, 4))
    functions = b"".join(
        message(5, number(1, n) + number(2, strings.index(name)) + number(4, strings.index(file)))
        for n, (name, file) in enumerate([("main", USER), ("cache_miss", LIBRARY)], 1)
    )
    lines = [(1, 20), (1, 30), (2, 259)]
    locations = b"".join(
        message(4, number(1, n) + message(4, number(1, function) + number(2, line)))
        for n, (function, line) in enumerate(lines, 1)
    )
    return types + b"".join(samples) + locations + functions + b"".join(message(6, s.encode()) for s in strings)


@pytest.fixture
def written(tmp_path):
    def write(data):
        path = tmp_path / "memory.prof"
        path.write_bytes(gzip.compress(data))
        return path

    return write


def test_arrays_by_the_line_that_made_them(written):
    """The innermost line of the user's code; a program without a stack has none."""
    path = written(profile(sample([3, 1], 2, 5 * MIB), sample([3, 2], 1, 7 * MIB), sample([], 1, MIB, "executable")))
    seen = read_profile(path)

    assert is_profile(path)
    assert 13 * MIB == seen.live_bytes
    assert [("train.py:30", 7 * MIB), ("train.py:20", 5 * MIB), ("", MIB)] == [
        (holder.source, holder.bytes) for holder in seen.holders
    ]
    assert ("cache_miss at pjit.py:259", "main at train.py:30") == seen.holders[0].stack
    assert [("buffer", 12 * MIB, 3), ("executable", MIB, 1)] == [(t.kind, t.bytes, t.count) for t in seen.totals]


def test_a_log_is_no_profile(tmp_path):
    """Gzipped or not."""
    plain, packed = tmp_path / "plain.log", tmp_path / "packed.log"
    plain.write_text("step 1\n")
    packed.write_bytes(gzip.compress(b"\n\nstep 1\n"))

    assert not is_profile(plain)
    assert not is_profile(packed)


@pytest.mark.parametrize("size", [20, 40, 150])
def test_a_profile_that_is_cut_short(written, size):
    """One sentence."""
    with pytest.raises(SnapshotError, match=r"give the file of jax\.profiler"):
        read_profile(written(profile(sample([3, 1], 2, 5 * MIB))[:size]))


def test_a_file_that_is_cut_short(tmp_path):
    """In the middle of what gzip wrote."""
    path = tmp_path / "memory.prof"
    path.write_bytes(gzip.compress(profile(sample([3, 1], 2, 5 * MIB)))[:-20])

    with pytest.raises(SnapshotError, match="Can't read the profile"):
        read_profile(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(tmp_path_factory, data):
    """Nothing else happens."""
    path = tmp_path_factory.mktemp("profiles") / "memory.prof"
    path.write_bytes(gzip.compress(b"\x0a\x04\x08\x01\x10\x02" + data))
    try:
        read_profile(path)
    except SnapshotError as error:
        assert "bad-profile" == error.slug
