"""Several ranks in one log."""

import io
from textwrap import wrap

import pytest

from peaksight.postmortem import read_log
from peaksight.postmortem.ranks import split_ranks
from peaksight.units import GIB, MIB

MESSAGE = (
    "RuntimeError: CUDA out of memory. Tried to allocate {asked}.00 MiB (GPU {rank}; 79.15 GiB total capacity; 77.13 "
    "GiB "
    "already allocated; {free}.31 MiB free; 78.21 GiB reserved in total by PyTorch)"
)


def read_text(text):
    return read_log(io.BytesIO(text.encode()), "text")


@pytest.mark.parametrize(
    "prefix",
    ["[rank{}]: ", "[default{}]:", "[1,{}]<stderr>:", "[rank{}]:[E1128] ", "(Worker rank={}) ", "[{}]:"],
)  # fmt: skip
def test_the_rank_of_a_prefix(prefix):
    """What torch, torchrun, mpirun and workers put in front of a line."""
    line = prefix.format(3) + MESSAGE.format(asked=64, rank=3, free=5)

    assert [3] == [message.rank for message in read_text(f"start\n{line}\nend").messages]


def test_the_bare_numbers_of_srun():
    """Only where most lines have one: a numbered list is none."""
    lines = [f"{i % 2}: step {i}" for i in range(20)] + ["1: " + MESSAGE.format(asked=64, rank=1, free=5)]

    assert [1] == [message.rank for message in read_text("\n".join(lines)).messages]
    nested = (
        "\n".join(f"{i % 2}: [rank{i % 2}]: step {i}" for i in range(20)) + "\n1: [rank1]: CUDA error: out of memory"
    )
    assert [1] == [message.rank for message in read_text(nested).messages]
    assert [None] == [message.rank for message in read_text("1: CUDA error: out of memory").messages]


def test_a_message_over_lines_that_others_interrupt():
    """Each rank's lines are read by themselves."""
    first, second = MESSAGE.format(asked=64, rank=0, free=5), MESSAGE.format(asked=32, rank=1, free=6)
    log = "\n".join(
        f"[rank{rank}]: {part}"
        for parts in zip(wrap(first, 40), wrap(second, 40), strict=False)
        for rank, part in enumerate(parts)
    )
    messages = read_text(log).messages

    assert [(0, 64 * MIB), (1, 32 * MIB)] == [(message.rank, message.requested_bytes) for message in messages]


def test_two_messages_on_one_line():
    """As two processes write without a lock; the first is cut by the second."""
    first, second = MESSAGE.format(asked=64, rank=0, free=5), MESSAGE.format(asked=32, rank=3, free=6)
    messages = read_text(f"torch.cudatorch.cuda..{first[:110]}{second}").messages

    assert [("0", 64 * MIB, None), ("3", 32 * MIB, round(6.31 * MIB))] == [
        (message.device, message.requested_bytes, message.free_bytes) for message in messages
    ]
    assert messages[0].capacity_bytes == round(79.15 * GIB)


def test_torchrun_names_the_rank_that_failed_first():
    """Its summary decides, not the order of lines."""
    log = "\n".join(
        [
            "[rank1]: " + MESSAGE.format(asked=64, rank=1, free=5),
            "[rank0]: " + MESSAGE.format(asked=64, rank=0, free=5),
            "Root Cause (first observed failure):",
            "[0]:",
            "  time      : 2026-01-01_00:00:00",
            "  rank      : 0 (local_rank: 0)",
        ]
    )

    assert read_text(log).first_failing_rank == 0


def test_every_line_belongs_to_one_rank():
    """And keeps its number."""
    ranks = split_ranks("a\n[rank1]: b\nc\n[rank1]: d", 10)

    assert {None: ("a\nc", [10, 12]), 1: ("b\nd", [11, 13])} == {own.rank: (own.text, own.lines) for own in ranks}
