"""Pickles of plain data are read like pickle.loads does, and nothing else is read at all."""

import io
import pickle
import pickletools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.postmortem.snapshots import plain_pickle
from peaksight.postmortem.snapshots.plain_opcodes import Malformed
from peaksight.postmortem.snapshots.plain_pickle import PlainPickleReader

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["addr", "size"])
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner)
        | st.tuples(inner, inner)
        | st.lists(inner).map(tuple)
    ),
    max_leaves=20,
)


def read(content):
    return PlainPickleReader(io.BytesIO(content)).read()


@given(PLAIN, st.integers(0, 5))
def test_plain_data_of_every_protocol(data, protocol):
    """Also where parts are the same object, and where a tool took out what need not be remembered."""
    pickled = pickle.dumps([data, data], protocol)

    assert [data, data] == read(pickled)
    assert [data, data] == read(pickletools.optimize(pickled))


@given(st.binary(), st.integers(3, 5))
def test_bytes(data, protocol):
    """From protocol 3 on they are plain."""
    assert data == read(pickle.dumps(data, protocol))


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("dumps", [pickle.dumps, pickle._dumps])
def test_long_lists_of_what_was_seen(dumps, protocol):
    """Lists that begin alike do not become one, however a pickler cuts them."""
    texts = [str(number) for number in range(3000)]
    lists = [[*texts[:1000], 1], texts[:1000], texts[:1000] + texts[:3], texts[:999], texts[:999], texts[:5], texts[:5]]

    assert lists == read(dumps([texts, *lists], protocol))[1:]


def test_small_pieces(monkeypatch):
    """Where the file is cut into pieces does not matter."""
    monkeypatch.setattr(plain_pickle, "CHUNK_BYTES", 7)
    data = {"a": [("b" * 300, 1 << 100, "\n" * 5)] * 50, "c": [float(number) for number in range(500)]}
    for protocol in range(6):
        assert data == read(pickle.dumps(data, protocol))


@given(PLAIN, st.integers(0, 5), st.floats(0, 1, exclude_max=True))
def test_cut_short(data, protocol, part):
    """Is refused, wherever it is cut."""
    pickled = pickle.dumps(data, protocol)
    with pytest.raises(Malformed):
        read(pickled[: int(part * len(pickled))])


@given(st.binary(max_size=300))
def test_any_bytes(content):
    """Are read or refused."""
    for start in (b"", b"\x80\x04", b"}(", b"](K\x01K\x02"):
        try:
            read(start + content)
        except Malformed as error:
            assert str(error)


@given(PLAIN, st.integers(0, 5), st.data())
def test_one_wrong_byte(data, protocol, drawn):
    """Too."""
    pickled = bytearray(pickle.dumps(data, protocol))
    pickled[drawn.draw(st.integers(0, len(pickled) - 1))] = drawn.draw(st.integers(0, 255))
    try:
        read(bytes(pickled))
    except Malformed as error:
        assert str(error)


class Calls:
    """Calls `function` when it is unpickled."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def touch(path):
    path.write_text("it ran")


HOSTILE = {
    "a shell": lambda marker: b"cos\nsystem\n(S'touch %b'\ntR." % bytes(marker),
    "eval": lambda marker: pickle.dumps(Calls(eval, f"open({str(marker)!r}, 'w')")),
    "deep inside": lambda marker: pickle.dumps({"segments": [{"blocks": [Calls(touch, marker)]}]}),
    "a nested name": lambda marker: b"\x80\x04\x8c\x08builtins\x8c\x0cobject.__del\x93.",
    "an instance": lambda marker: b"(S'x'\nios\nsystem\n.",
    "a persistent id": lambda marker: b"Pxyz\n.",
    "an extension": lambda marker: b"\x80\x02\x82\x01.",
    "a buffer": lambda marker: b"\x80\x05\x97.",
    "a set": lambda marker: pickle.dumps({1, 2}),
    "a bytearray": lambda marker: pickle.dumps(bytearray(b"x"), 5),
    "an object": lambda marker: pickle.dumps(io.BytesIO(b"")),
    "protocol 77": lambda marker: b"\x80\x4d}.",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_runs(kind, tmp_path):
    """What could run code is refused when it is met."""
    marker = tmp_path / "marker"
    with pytest.raises(Malformed):
        read(HOSTILE[kind](marker))

    assert not marker.exists()


def test_what_is_refused_is_named():
    """Without what could play tricks in a terminal."""
    with pytest.raises(Malformed, match=r"^it asks for os.system, and no snapshot needs code$"):
        read(b"cos\nsystem\n.")
    with pytest.raises(Malformed, match=r"asks for \\x1b\[2J.x"):
        read(b"c\x1b[2J\nx\n.")


ABSURD = {
    "a text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"x.",
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",
    "a number": b"\x80\x02\x8b" + struct.pack("<I", 1 << 31) + b"x.",
    "a place in the memo": b"\x80\x02]r" + struct.pack("<I", 1 << 31) + b".",
    "a place from a line": b"(lp" + b"9" * 5000 + b"\n.",
    "a decimal": b"I" + b"9" * 60_000 + b"\n.",
    "a line": b"V" + b"x" * 100,
    "marks": b"(" * 100_000 + b".",
    "tuples in tuples": b"K\x01" + b"\x85" * 1_000_000 + b".",
    "a key of tuples": b"}K\x01" + b"\x85" * 1_000_000 + b"K\x01s.",
    "nothing": b"",
    "an unhashable key": b"}]K\x01s.",
    "half a pair": b"}(K\x01u.",
    "a list that is a number": b"K\x01(K\x02e.",
    "what was not remembered": b"h\x07.",
    "an empty stack": b".",
}


@pytest.mark.parametrize("kind", ABSURD)
def test_absurd(kind):
    """Is refused, at once and without the memory that it claims."""
    with pytest.raises(Malformed):
        read(ABSURD[kind])


def test_a_billion_laughs():
    """Lists of lists of lists are as large as the file: nothing unfolds them."""
    bomb = b"](" + b"K\x01" * 10 + b"e\x94"
    for index in range(30):
        bomb += b"](" + b"h%c" % index * 10 + b"e\x94"
    found = read(b"\x80\x04" + bomb + b".")

    assert 10 == len(found)
    assert all(inner is found[0] for inner in found)


def test_too_many_objects(monkeypatch):
    """What a small part of the file's bytes could blow up is stopped."""
    monkeypatch.setattr(plain_pickle, "_MAX_STACK", 1000)
    monkeypatch.setattr(plain_pickle, "CHUNK_BYTES", 1000)
    with pytest.raises(Malformed, match="unfolds into more objects"):
        read(b"N" * 10_000 + b".")
    with pytest.raises(Malformed, match="deep"):
        read(b"(" * 10_000 + b".")


def test_reading_does_not_recurse():
    """However deep lists lie in each other."""
    deep = b"]" * 200_000 + b"a" * 199_999 + b"."
    found = read(deep)
    depth = 0
    while found:
        (found,) = found
        depth += 1

    assert 199_999 == depth
