"""Texts that nobody wrote on purpose: cut, jumbled, without lines, random. Never an exception, never a hang."""

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peaksight.diagnosis.logs import explain
from peaksight.postmortem import read_log
from peaksight.reporting.json import answers_to_json

REPORTS = Path(__file__).parents[2] / "data" / "oom-reports" / "reports.jsonl"
UPSTREAM = Path(__file__).parent / "upstream_messages.jsonl"
MESSAGES = [
    *(text for line in REPORTS.read_text(encoding="utf-8").splitlines() for text in json.loads(line)["error_text"]),
    *(json.loads(line)["text"] for line in UPSTREAM.read_text(encoding="utf-8").splitlines()),
]
PIECES = st.one_of(
    st.sampled_from(MESSAGES),
    st.sampled_from(
        ["\n", "[rank3]: ", "0: ", "1: ", "| ", "# ", "- a: 3 GB\n", "(8, 19) = 3 MB\n", "\x00", "\r", "= "]
    ),
    st.text(max_size=20),
)
QUICK = settings(max_examples=40, deadline=None, derandomize=True)


def read(content):
    return explain(read_log(io.BytesIO(content), "text"))


def assert_sane(reading):
    """It can be printed, and its lines and sizes are those of a text."""
    assert answers_to_json([reading])
    for message in reading.messages:
        assert 1 <= message.line <= max(reading.num_lines, 1)
        assert all(figure.bytes is None or 0 <= figure.bytes < 2**64 for figure in message.figures)


@QUICK
@given(st.lists(PIECES, max_size=12), st.integers(0, 2000))
def test_pieces_in_any_order_and_cut_anywhere(pieces, length):
    """Also in the middle of a number."""
    assert_sane(read("".join(pieces).encode("utf-8", errors="surrogatepass")[:length]))


@QUICK
@given(st.sampled_from(MESSAGES), st.sampled_from(MESSAGES), st.integers(0, 300), st.integers(1, 40))
def test_two_messages_jumbled(one, other, start, width):
    """Two ranks write on one line, some characters at a time."""
    mixed = one[:start] + "".join(
        one[start + i : start + i + width] + other[i : i + width] for i in range(0, max(len(one), len(other)), width)
    )

    assert_sane(read(mixed.encode()))


@QUICK
@given(st.binary(max_size=400), st.sampled_from(MESSAGES))
def test_random_bytes_around_a_message(noise, message):
    """The message is found all the same."""
    assert_sane(read(noise + b"\n" + message.encode() + b"\n" + noise))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n" * 300_000,
        b"a" * 3_000_000,
        b" " * 300_000 + b"total capacity;" + b" " * 300_000,
        b"CUDA out of memory. Tried to allocate " * 20_000,
        b"[" + b"1," * 100_000 + b"]",
        b"(" * 50_000 + b"1" + b")" * 50_000 + b" = 3",
        b"# a memory\n- b: 1 GB\n- c: 2 GB\n- d 30 % 2 MB 4 MB\n" + b"1 + " * 40_000 + b"1 = 2\n",
        b"# memory 1 GB 2 GB 3 GB 4 GB\n- a\n- b\n- c\n" + b"9" * 40_000 + b" * 9 = 3 MB\n",
        b"File \"a.py\", line 1, in f\n" * 30_000 + b"CUDA error: out of memory",
        b"|" * 200_000,
        b"\xff\xfe" + b"x" * 1001,
        b"9" * 100_000 + b" GiB free;",
    ],
    ids=lambda content: f"{content[:12]!r}-{len(content)}",
)  # fmt: skip
def test_a_text_made_to_hang(content):
    """Long runs of what the grammars look for."""
    assert_sane(read(content))


def test_a_message_between_many_others():
    """A failure is found among megabytes of warnings, at its line."""
    warnings = "".join(f"{i} pytorch allocator cache flushes since last step\n" for i in range(40_000))
    text = f"{warnings}RuntimeError: CUDA error: out of memory\n{warnings}"
    failures = [message for message in read(text.encode()).messages if not message.is_warning]

    assert [(40_001, "cuda-error-without-numbers")] == [(message.line, message.dialect) for message in failures]


@pytest.mark.parametrize("border", [-300, -100, -30, -1, 0, 5])
def test_a_message_across_the_blocks_that_are_read(border):
    """Wherever a block of 1 MiB ends, the message is whole."""
    before = b"x" * 99 + b"\n"
    filler = (before * 11_000)[: (1 << 20) + border - 1] + b"\n"
    message = MESSAGES[1].encode()
    found = read(filler + message + b"\n" + before * 20_000).messages

    assert [message.decode()[-300:]] == [m.text[-300:] for m in found] or len(found) == 1
    assert found[0].requested_bytes is not None
    assert found[0].line == filler.count(b"\n") + 1


def test_packed_and_wide_logs():
    """gzip, and UTF-16 as PowerShell writes it."""
    text = "step 1\nRuntimeError: MPS backend out of memory (MPS allocated: 3.50 GB)\n"
    for content in (gzip.compress(text.encode()), text.encode("utf-16"), gzip.compress(text.encode("utf-16"))):
        stream = io.BufferedReader(io.BytesIO(content))
        assert [2] == [message.line for message in read_log(stream, "log").messages]
