"""Ranks that agree on their collectives, and ranks that do not."""

import pytest

from helpers import allocation_of, capture_of, step_of
from peaksight.attribution import disagreement
from peaksight.attribution.deadlocks import members
from peaksight.records import CollectiveFact
from peaksight.units import MIB


def call_of(kind, step=1, group="0-3", tensors="float32[8]", line=5):
    """A collective of all ranks in the first step, unless it is said otherwise."""
    return CollectiveFact(kind=kind, tensors=tensors, group=group, source=f"train.py:{line}", step=step)


def rank_of(rank, *calls, finished="steady", num_steps=3):
    """What a rank called in a run of some steps."""
    steps = [step_of(number, number, number) for number in range(1, num_steps + 1)]
    return capture_of(allocation_of(MIB, born=1), steps=steps, rank=rank, collectives=calls, finished=finished)


REDUCE, GATHER, BARRIER = call_of("all_reduce"), call_of("all_gather", line=7), call_of("barrier", tensors="", line=9)
JOIN = call_of("join", tensors="")
AT_THE_END = {"finished": "script"}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (rank_of(0, REDUCE, GATHER), rank_of(3, REDUCE, GATHER)),
        (rank_of(0, REDUCE, call_of("all_reduce", group="0,2")), rank_of(3, REDUCE, call_of("barrier", group="1,3"))),
        (rank_of(0, REDUCE, call_of("barrier", step=4)), rank_of(3, REDUCE)),
        (rank_of(0, call_of("all_to_all")), rank_of(3, call_of("all_to_all", tensors="float32[9]"))),
        (rank_of(0, call_of("all_gather", tensors="uint8[9]")), rank_of(3, call_of("all_gather", tensors="uint8[7]"))),
        (rank_of(0, call_of("send to 3", group="0,3")), rank_of(3)),
        (rank_of(0, REDUCE, call_of("barrier", step=4)), rank_of(3, REDUCE, **AT_THE_END)),
        (rank_of(0, REDUCE, REDUCE, JOIN, **AT_THE_END), rank_of(3, REDUCE, JOIN, **AT_THE_END)),
        (rank_of(0, REDUCE, REDUCE), rank_of(3, REDUCE, JOIN, GATHER, **AT_THE_END)),
    ],
    ids=["same", "other-groups", "after-a-stop", "uneven", "objects", "send", "at-the-end", "joined", "to-join"],
)
def test_ranks_that_agree(a, b):
    """Groups without both, steps that one of them did not come to, sizes that are free and what joins do not count."""
    assert disagreement([a, b]) is None


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (
            rank_of(0, REDUCE, GATHER),
            rank_of(1, REDUCE, BARRIER),
            "rank 0 calls all_gather of float32[8] at train.py:7, and rank 1 calls barrier at train.py:9",
        ),
        (
            rank_of(0, REDUCE, **AT_THE_END),
            rank_of(1, **AT_THE_END),
            "rank 0 calls all_reduce of float32[8] at train.py:5, and rank 1 is at its end",
        ),
        (
            rank_of(0, REDUCE, finished="untrained", num_steps=0),
            rank_of(1, finished="script"),
            "rank 0 calls all_reduce of float32[8] at train.py:5, and rank 1 is at its end",
        ),
        (
            rank_of(0, REDUCE),
            rank_of(1, call_of("all_reduce", tensors="float16[8]")),
            "rank 0 calls all_reduce of float32[8] at train.py:5, and rank 1 calls all_reduce of float16[8] at "
            "train.py:5",
        ),
        (
            rank_of(0, call_of("barrier", group="0,1", tensors="")),
            rank_of(1, BARRIER),
            "rank 0 calls barrier at train.py:5, and rank 1 calls barrier at train.py:9",
        ),
        (
            rank_of(0, REDUCE, call_of("all_reduce", step=3)),
            rank_of(1, REDUCE, num_steps=2, **AT_THE_END),
            "rank 0 calls all_reduce of float32[8] at train.py:5, and rank 1 is at its end",
        ),
        (
            rank_of(0, REDUCE, JOIN, BARRIER, **AT_THE_END),
            rank_of(1, JOIN, **AT_THE_END),
            "rank 0 calls barrier at train.py:9, and rank 1 is at its end",
        ),
        (
            rank_of(0, call_of("broadcast from rank 0")),
            rank_of(1, call_of("broadcast from rank 1")),
            "rank 0 calls broadcast from rank 0 of float32[8] at train.py:5, and rank 1 calls broadcast from rank 1 of "
            "float32[8] at train.py:5",
        ),
    ],
    ids=["kind", "end", "untrained", "dtype", "group", "short-loader", "after-a-join", "root"],
)
def test_the_first_two_calls_that_differ(a, b, said):
    """Each with its line."""
    assert str(disagreement([a, b])) == said


@pytest.mark.parametrize(("group", "ranks"), [("0-3", {0, 1, 2, 3}), ("1-9:4", {1, 5, 9}), ("0,3", {0, 3}), ("7", {7})])
def test_members(group, ranks):
    """Of a group as it is written."""
    assert members(group) == ranks
