"""`peaksight read` of what a watched run left."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers_capsules import (
    NOON,
    ended_by_memory,
    error_file,
    failure_of,
    other_process,
    process_of,
    steps_of,
    write_capsule,
    write_record,
)
from peaksight.cli import peaksight as command
from peaksight.errors import PeaksightError
from peaksight.records.capsule import Sign
from peaksight.records.watched import WatchedEvent
from peaksight.units import GIB
from schemas import validated

TIMEOUT = "DistBackendError: NCCL error: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads what is named in the directory `seen`, as JSON."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = CliRunner().invoke(command, ["read", "--json", "-", *words], standalone_mode=False)
        if isinstance(done.exception, PeaksightError):
            raise done.exception
        assert done.exception is None, done.output
        return validated(json.loads(done.stdout))

    return run


def test_one_rank_alone_ran_out_of_memory(read, tmp_path):
    """GIVEN timeouts of the others half an hour later, THEN they are its consequence."""
    write_capsule(tmp_path / "seen", process_of(1), failure_of(), steps=steps_of(until=3), ending=ended_by_memory())
    for rank in (0, 2):
        write_record(tmp_path / "seen", process_of(rank), steps=steps_of(until=3), error=TIMEOUT, exit_code=1)
    write_record(tmp_path / "seen", process_of(3), steps=steps_of(until=3), exit_code=None)
    answer = read("seen")

    assert answer["happened"] == (
        "Rank 1 failed first of 4: it alone ran out of memory; ranks 0 and 2 missed it and gave up, which is a "
        "consequence; rank 3 has no error of its own."
    )
    assert (1, "cause") == (answer["first_failing_rank"], answer["told_by"])
    assert f"Missed rank 1 and gave up: {TIMEOUT}" == answer["others"][0]["happened"]
    assert answer["others"][2]["happened"].startswith("Has no end after step 3")
    assert answer["report"]["happened"] == (
        "Rank 1 of 4 on node1 ran out of memory in step 4 at train.py:12: asked for 2.00 GiB, with 1.00 GiB free of "
        "Tesla T4 (15.00 GiB)."
    )
    assert answer["report"]["then"] == "It ended the script."


def test_times_tell_where_several_ran_out(read, tmp_path):
    """On one host to the microsecond."""
    write_capsule(tmp_path / "seen", process_of(0), failure_of(time=NOON + 4.002), ending=ended_by_memory())
    write_capsule(tmp_path / "seen", process_of(3), failure_of(time=NOON + 4.0), ending=ended_by_memory())
    answer = read("seen")

    assert (3, "times", 0.0) == (answer["first_failing_rank"], answer["told_by"], answer["clock_seconds"])
    assert "Rank 3 failed first of 2, 0.002 s before rank 0." == answer["happened"]


@pytest.mark.parametrize(("late", "first"), [(0.0, 0), (5.0, 1)])
def test_clocks_of_several_hosts(read, tmp_path, late, first):
    """The ends of the same steps tell how far they are apart: a clock that is ahead makes no rank the later one."""
    for rank, host, ahead, seconds in ((0, "node1", 0.0, 4.0), (1, "node2", late, 6.0)):
        process = process_of(rank, host=host)
        write_capsule(
            tmp_path / "seen", process, failure_of(time=NOON + seconds), steps=steps_of(until=3, late=ahead),
            ending=ended_by_memory(),
        )  # fmt: skip
    answer = read("seen")

    assert (first, "times") == (answer["first_failing_rank"], answer["told_by"])
    assert "as the ends of the same steps show" in answer["happened"]


def test_clocks_that_nothing_compares(read, tmp_path):
    """Within what clocks may be apart nobody is named; torchrun's word decides then."""
    for rank, host, seconds in ((0, "node1", 4.0), (1, "node2", 4.5)):
        write_capsule(tmp_path / "seen", process_of(rank, host=host), failure_of(time=NOON + seconds))
    answer = read("seen")

    assert (None, "nothing", None) == (answer["first_failing_rank"], answer["told_by"], answer["clock_seconds"])
    assert answer["happened"] == (
        "Cannot tell which of 2 ranks failed first: ranks 0 and 1 ran out of memory 0.500 s apart, and the clocks of "
        "their hosts may be 1.000 s apart."
    )

    (tmp_path / "torchrun.log").write_text(
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-28_12:00:09\n  host      : node2\n"
        "  rank      : 1 (local_rank: 0)\n  exitcode  : 1 (pid: 7)\nCUDA out of memory\n"
    )
    answer, *_ = read("seen", "torchrun.log")

    assert (1, "launcher") == (answer["first_failing_rank"], answer["told_by"])


@pytest.mark.parametrize("killed", [True, False])
def test_a_rank_that_dies_silently(read, tmp_path, killed):
    """The counter of the control group tells a kill by the host apart, where another rank has seen it."""
    events = [
        WatchedEvent(kind="host-oom-kill", step=3, time=NOON, text="the host killed 1 process(es)")
        for _ in range(killed)
    ]
    write_record(tmp_path / "seen", process_of(0), error=TIMEOUT, exit_code=1, events=events)
    write_record(tmp_path / "seen", process_of(1), steps=steps_of(until=7), exit_code=None)
    answer = read("seen")

    assert (1, None) == (answer["first_failing_rank"], answer["report"])
    assert answer["happened"].startswith("Rank 1 ended without a word after step 7: ")
    assert ("the card is not at fault" in answer["happened"]) is killed


def test_the_error_file_of_torchelastic(read, tmp_path):
    """Is read as the end of a rank that left nothing else."""
    path = write_capsule(tmp_path / "seen", process_of(1), failure_of(), ending=ended_by_memory())
    error_file(tmp_path / "logs" / "attempt_0" / "0" / "error.json", TIMEOUT, int(NOON + 1800))
    answer = read(str(path), "logs")

    assert 1 == answer["first_failing_rank"]
    assert [(0, f"Missed rank 1 and gave up: {TIMEOUT}")] == [(o["rank"], o["happened"]) for o in answer["others"]]


def test_without_a_capsule(read, tmp_path):
    """GIVEN a disk that was full, THEN the records alone name the rank, by when it says that the card was full."""
    oom = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    for rank, seconds in ((0, 9.5), (1, 8.25)):
        event = WatchedEvent(kind="out-of-memory", step=3, time=NOON + seconds, text="card 0 is full")
        write_record(tmp_path / "seen", process_of(rank), error=oom, exit_code=1, events=[event])
    answer = read("seen")

    assert (1, "times", None) == (answer["first_failing_rank"], answer["told_by"], answer["report"])
    assert "Rank 1 failed first of 2, 1.250 s before rank 0." == answer["happened"]

    error_file(tmp_path / "logs" / "attempt_0" / "0" / "error.json", oom, int(NOON + 4))
    error_file(tmp_path / "logs" / "attempt_0" / "1" / "error.json", oom, int(NOON + 5))
    error_file(tmp_path / "logs" / "attempt_0" / "2" / "error.json", TIMEOUT, int(NOON + 9))

    assert (None, "nothing") == (read("logs")["first_failing_rank"], read("logs")["told_by"])


def test_two_runs_in_one_directory(read, tmp_path):
    """Each has an answer of its own, also where both have one name."""
    for started, pid in ((NOON, 100), (NOON + 3600, 200)):
        for rank in (0, 1):
            process = process_of(rank, started=started, pid=pid + rank)
            write_record(tmp_path / "seen", process, error=TIMEOUT, exit_code=1)
        write_capsule(tmp_path / "seen", process_of(rank, started=started, pid=pid + rank), failure_of())
    first, second = read("seen")

    assert [101, 201] == [run["report"]["run"]["process"]["pid"] for run in (first, second)]
    assert [1, 1] == [len(run["others"]) for run in (first, second)]


def test_the_causes_of_a_capsule(read, tmp_path):
    """Other processes, a cap, a library, memory that grows: each by its figures."""
    cases = {
        0: failure_of(card={"processes": other_process(2 * GIB)}),
        1: failure_of(card={"allowed_bytes": 13 * GIB, "free_bytes": 2 * GIB}),
        2: failure_of(sign=Sign.CUBLAS, requested_bytes=None, message="RuntimeError: CUBLAS_STATUS_ALLOC_FAILED"),
    }
    paths = [write_capsule(tmp_path / "seen", process_of(rank, run=str(rank)), told) for rank, told in cases.items()]
    growing = steps_of(until=6, allocated=lambda step: step * GIB)
    paths.append(write_capsule(tmp_path / "seen", process_of(3, run="3"), failure_of(), steps=growing))
    large = failure_of(step=7, requested_bytes=9 * GIB)
    paths.append(write_capsule(tmp_path / "seen", process_of(4, run="4"), large, steps=steps_of(until=6)))
    kinds = [[cause["kind"] for cause in read(str(path))["report"]["causes"]] for path in paths]

    assert "other-process-holds-card" == kinds[0][0]
    assert "memory-fraction-cap" == kinds[1][0]
    assert "library-without-room" == kinds[2][0]
    assert ["memory-grows-over-steps"] == kinds[3]
    assert "outlier-batch" in kinds[4]


def test_the_page(peaksight, tmp_path):
    """Names rank, line, module, job and what to run next; a hostile name does nothing to the terminal."""
    process = replace(process_of(1), argv=("train.py", "--name", "\x1b[2J"))
    write_capsule(
        tmp_path / "seen", process, failure_of(), steps=steps_of(until=3), ending=ended_by_memory(),
        scheduler={"SLURM_JOB_ID": "77", "SLURMD_NODENAME": "node1"},
    )  # fmt: skip
    done = peaksight("read", "seen")

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.splitlines()[0].startswith("Rank 1 of 4 on node1 ran out of memory in step 4 at train.py:12")
    for words in (
        "Net.relu",
        "JOB_ID 77",
        "2026-11-28 12:00:04 UTC",
        "peaksight fix --from seen/rank1.node1.101.capsule",
        "torch 2.14.1+cu130",
    ):
        assert words in done.stdout
    assert "\x1b" not in done.stdout


def test_no_capsule(peaksight, tmp_path):
    """An empty directory, one that is cut short at once, one of a later version: a sentence and exit 2."""
    (tmp_path / "empty").mkdir()
    path = write_capsule(tmp_path, process_of(0), failure_of())
    path.write_bytes(path.read_bytes()[:100])

    assert "messages.md#nothing-watched" in peaksight("read", "empty").stderr
    assert "messages.md#bad-capsule" in peaksight("read", path.name).stderr


def test_reading_imports_no_torch(tmp_path):
    """Nor does it need it."""
    path = write_capsule(tmp_path, process_of(0), failure_of())
    code = "import sys; from peaksight.cli import main; main(['read', sys.argv[1]]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)

    assert "False" == done.stdout.splitlines()[-1]


@pytest.mark.torch
def test_out_of_memory_on_rank_1_of_torchrun(peaksight, tmp_path):
    """GIVEN two real processes with gloo, THEN the exit code is torchrun's own, and rank 1 is named."""
    script = Path(__file__).parents[1] / "scripts" / "watched" / "oom_on_rank_1.py"
    small = ("--width", "8", "--layers", "1", "--batch", "2", "--fail-at", "2")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    command = [sys.executable, *launcher, "peaksight", "watch", "--directory", "seen", str(script), *small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    answer = json.loads(peaksight("read", "--json", "-", "seen").stdout)

    assert 1 == done.returncode, done.stderr
    assert (1, "cause", [0]) == (
        answer["first_failing_rank"], answer["told_by"], [other["rank"] for other in answer["others"]]
    )  # fmt: skip
    assert "oom_on_rank_1.py:48" == answer["report"]["at"]
    assert [1] == [step["step"] for step in answer["report"]["steps"]]
