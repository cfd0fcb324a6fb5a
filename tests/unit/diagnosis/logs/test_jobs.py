"""Which rank of a job failed first, from one log a rank."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.diagnosis.logs import explain_job
from peaksight.postmortem import read_log

OOM = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.65 GiB of which 1.00 GiB is free."
)
RAISED = f'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\ntorch.OutOfMemoryError: {OOM}\n'
TIMEOUT = (
    "[rank{rank}]:[E1128 12:10:0{rank}.123456 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=55, OpType=ALLREDUCE) ran for 600010 milliseconds before timing out.\n"
)


def read(**texts):
    """The job of `rank0="text", ...`, each in the file of that name."""
    return explain_job({f"logs/{name}.log": read_log(io.BytesIO(text.encode()), name) for name, text in texts.items()})


def test_out_of_memory_comes_before_the_timeout_that_it_causes():
    """Without a time at the error; the others are one line each, also one that says nothing."""
    job = read(rank0=TIMEOUT.format(rank=0), rank1=RAISED, rank2="step 1\n")

    assert (job.first_failing_rank, job.told_by) == (1, "cause")
    assert job.happened == (
        "Rank 1 failed first of 3, by the cause: it alone ran out of memory; rank 0 missed another and gave up; how "
        "rank 2 ended is not in the log."
    )
    assert job.reading.happened.startswith("Card 1 ran out of memory at train.py:4")
    assert [(end.rank, end.time) for end in job.others] == [(0, "11-28 12:10:00.123456"), (2, "")]


STAMPS = [
    "2026-11-28 {clock},500 ERROR {oom}\n",
    "2026-11-28T{clock}.500Z {oom}\n",
    "11/28/2026 {clock} - ERROR - __main__ - {oom}\n",
    "E1128 {clock}.500000 77 train.py:4] {oom}\n",
    "[2026-11-28 {clock},500] ERROR failed\n{raised}",
]


@pytest.mark.parametrize("stamp", STAMPS, ids=lambda value: value[:16])
def test_times_tell_which_of_several_ran_out_first(stamp):
    """As loggers, transformers and glog print them, on the line or above the traceback."""
    logs = {
        rank: stamp.format(clock=clock, oom=OOM, raised=RAISED)
        for rank, clock in [("rank0", "12:00:09"), ("rank3", "12:00:02")]
    }
    job = read(**logs)

    assert (job.first_failing_rank, job.told_by) == (3, "times")
    assert job.others[0].time.startswith("11-28 12:00:09")


NOT_TOLD = [
    (f"2026-11-28 12:00:01 step 9\n\n{RAISED}", f"2026-11-28 12:00:02 step 9\n\n{RAISED}"),
    (f"2026-11-28 12:00:01 {OOM}", RAISED),
    (f"2026-11-28 12:00:01 {OOM}", f"2026-11-28 12:00:01 {OOM}"),
    (f"2026-12-31 23:59:59 {OOM}", f"2027-01-01 00:00:01 {OOM}"),
]


@pytest.mark.parametrize("logs", NOT_TOLD, ids=["earlier-lines", "one-without", "same", "new-year"])
def test_times_that_do_not_tell(logs):
    """Nobody knows how long before the failure another line was printed: it is said that it cannot be told."""
    job = read(rank1=logs[1], rank0=logs[0])

    assert (job.first_failing_rank, job.told_by) == (None, "nothing")
    assert job.happened.startswith("Cannot tell which of 2 ranks failed first: ranks 0 and 1 each ran out of memory")
    assert job.others[0].rank == 1


ROOT_CAUSE = (
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-28_15:10:43\n  rank      : 1 (local_rank: 1)\n"
)


def test_the_launchers_summary():
    """Tells it where several ran out of memory without a time; the launcher's log is no rank's."""
    job = read(rank0=RAISED, rank1=RAISED, launcher="step 1\n" * 20000 + ROOT_CAUSE)

    assert (job.first_failing_rank, job.told_by, [end.rank for end in job.others]) == (1, "launcher", [0])
    assert job.happened == "Rank 1 failed first of 2, by what torchrun says: it names it the root cause."


def test_a_timeout_before_the_shortage():
    """With times everywhere, the earliest is the first, whatever it died of."""
    job = read(rank0=TIMEOUT.format(rank=0), rank1=f"2026-11-28 12:30:00 {OOM}")

    assert (job.first_failing_rank, job.told_by) == (0, "times")


@pytest.mark.parametrize(
    "logs",
    [
        {"a": RAISED, "b": RAISED},
        {"node0-rank1": RAISED, "node1-rank1": RAISED},
        {"rank0": RAISED, "other": RAISED},
        {"rank0": TIMEOUT.format(rank=0), "rank1": "step 1\n"},
        {"rank0": RAISED},
    ],
    ids=["no-ranks", "same-rank", "one-without", "no-shortage", "one-log"],
)
def test_what_is_no_job(logs):
    """Files that are not each another rank's, and ranks of which none ran out of memory."""
    assert read(**logs) is None


def test_ranks_by_their_text_and_by_torchruns_folders():
    """Where the names of the files are alike."""
    text = "\n".join(f"[rank1]: {line}" for line in RAISED.splitlines())

    assert read(a=TIMEOUT.format(rank=0), b=text).first_failing_rank == 1
    assert read(**{"j_1/attempt_0/4/stderr": RAISED, "j_1/attempt_0/5/stderr": "step 1\n"}).first_failing_rank == 4


@given(st.permutations([0, 1, 2, 3]))
def test_the_order_of_the_files_does_not_matter(order):
    """Nor does a shell's."""
    texts = [TIMEOUT.format(rank=0), "step 1\n", RAISED, TIMEOUT.format(rank=3)]

    assert read(**{f"rank{rank}": texts[rank] for rank in order}) == read(**{f"rank{n}": texts[n] for n in range(4)})
