"""Writing a capsule, and what may go wrong with it."""

import errno
import gzip
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from peaksight.errors import CaptureFileError
from peaksight.live.capsule import OomCapsule
from peaksight.live.capsule_file import CapsuleFile, TooLarge
from peaksight.live.out_of_memory import Moment
from peaksight.live.process import this_process
from peaksight.postmortem.capsules import is_capsule, read_capsule
from peaksight.postmortem.capsules.loading import load_capsule
from peaksight.records.capsule import Sign
from peaksight.records.watched import WatchedEnd, WatchedStep
from peaksight.units import GIB

MOMENT = Moment(device=0, requested_bytes=2 * GIB, total_bytes=16 * GIB, free_bytes=GIB)
DISGUISED = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def process_of(rank=0):
    return replace(this_process(("train.py", "--batch", "8")), rank=rank)


@pytest.fixture
def said():
    return []


@pytest.fixture
def capsule(tmp_path, said):
    return OomCapsule(tmp_path / "seen", process_of(rank=3), say=said.append)


def test_what_is_known_without_torch(capsule, said):
    """The failure, the last steps, and where it was; the end is added."""
    capsule.write(WatchedStep(step=7, time=1.0, seconds=0.1))
    capsule.observed(MOMENT)
    capsule.write(WatchedEnd(step=7, time=2.0, exit_code=0))
    found = read_capsule(capsule.path).capsule

    assert [] == said
    assert "rank3." in capsule.path.name
    assert (Sign.ALLOCATOR, 8, 2 * GIB) == (found.failure.sign, found.failure.step, found.failure.requested_bytes)
    assert [7] == [step.step for step in found.steps]
    assert found.failure.stack[0].filename == __file__
    assert (0, False) == (found.ending.exit_code, found.ending.is_out_of_memory)


def test_nothing_without_a_failure(capsule, tmp_path):
    """Errors of other kinds are none."""
    capsule.failed(ValueError("a shape"))
    capsule.write(WatchedEnd(step=0, time=2.0, exit_code=1))
    capsule.close()

    assert [] == list(tmp_path.iterdir())


def test_a_disguise_has_no_observer(capsule):
    """The error itself brings it; another one that the allocator told of is not written twice."""
    capsule.failed(DISGUISED)
    found = read_capsule(capsule.path).capsule

    assert (Sign.CUBLAS, "RuntimeError", None) == (
        found.failure.sign, found.failure.error, found.failure.requested_bytes
    )  # fmt: skip


def test_the_last_failure_counts(capsule):
    """Each replaces the one before."""
    capsule.observed(MOMENT)
    capsule.observed(MOMENT)

    assert 2 == read_capsule(capsule.path).capsule.failure.number
    assert [capsule.path] == list(capsule.path.parent.iterdir())


def test_two_runs_in_one_directory(capsule, tmp_path):
    """GIVEN the same rank, host and process number, THEN neither overwrites the other."""
    other = OomCapsule(tmp_path / "seen", process_of(rank=3), say=print)
    capsule.observed(MOMENT)
    other.observed(MOMENT)

    assert capsule.path != other.path
    assert 2 == len([path for path in (tmp_path / "seen").iterdir() if is_capsule(path)])


def test_a_directory_that_cannot_be_written(tmp_path, said):
    """One sentence, however often memory runs out, and nothing is raised."""
    (tmp_path / "file").write_text("")
    capsule = OomCapsule(tmp_path / "file" / "below", process_of(), say=said.append)
    capsule.observed(MOMENT)
    capsule.observed(MOMENT)
    capsule.failed(DISGUISED)
    capsule.write(WatchedEnd(step=7, time=2.0, exit_code=1))

    assert [f"{capsule.name} is missing or not whole: Not a directory; the script goes on"] == said


def test_a_full_disk(capsule, said, monkeypatch):
    """What was written before it was full stays and is read; the capsule that was whole stays too."""
    put = CapsuleFile._put

    def full(self, kind, content):
        if kind == "names":
            raise OSError(errno.ENOSPC, "No space left on device")
        put(self, kind, content)

    monkeypatch.setattr(CapsuleFile, "_put", full)
    capsule.observed(MOMENT)
    (part,) = (capsule._directory).iterdir()
    found = read_capsule(part).capsule

    assert capsule.path is None
    assert "No space left on device" in said[0]
    assert (False, 1) == (found.is_whole, found.failure.number)

    monkeypatch.undo()
    capsule.observed(MOMENT)
    monkeypatch.setattr(CapsuleFile, "_put", full)
    capsule.observed(MOMENT)

    assert (True, 2) == (read_capsule(capsule.path).capsule.is_whole, read_capsule(capsule.path).capsule.failure.number)


def test_a_disk_that_is_full_from_the_start(capsule, said, monkeypatch):
    """GIVEN a device without room, THEN one sentence."""
    monkeypatch.setattr("peaksight.live.capsule_file.part_of", lambda path: Path("/dev/full"))
    capsule.observed(MOMENT)
    capsule.observed(MOMENT)

    assert [f"{capsule.name} is missing or not whole: No space left on device; the script goes on"] == said
    assert capsule.path is None


def test_cut_short(capsule):
    """At any byte it reads as far as it goes: from where it says what failed on, there is an answer."""
    capsule.write(WatchedStep(step=7, time=1.0, seconds=0.1))
    capsule.observed(MOMENT)
    whole, answers = capsule.path.read_bytes(), []
    for length in range(0, len(whole) + 1, 5):
        capsule.path.write_bytes(whole[:length])
        try:
            answers.append(load_capsule(capsule.path)[0])
        except CaptureFileError as error:
            assert not answers, error

    assert {3} == {found.run.process.rank for found in answers}
    known = [len(found.steps) for found in answers]
    assert (sorted(known), 1) == (known, known[-1])
    assert (False, True) == (answers[0].is_whole, answers[-1].is_whole)


def test_bounds(tmp_path):
    """Neither longer nor larger than it may be; the end is written all the same."""
    slow = CapsuleFile(tmp_path / "slow.capsule", seconds=60)
    slow._deadline = 0
    large = CapsuleFile(tmp_path / "large.capsule", seconds=60, most_bytes=1)
    for file in (slow, large):
        with pytest.raises(TooLarge):
            file.write("names", {"names": []})
        file.finish(left_out=True)

    assert b'"left_out":true' in gzip.decompress((tmp_path / "slow.capsule").read_bytes())
    assert is_capsule(tmp_path / "large.capsule")


def test_a_failure_within(capsule, said, monkeypatch):
    """A bug of ours is a sentence, not the script's exception."""
    monkeypatch.setattr("peaksight.live.running.names_of_tensors", lambda: 1 / 0)
    capsule.observed(MOMENT)

    assert "ZeroDivisionError" in said[0]


def test_in_a_thread_of_a_backward_pass(capsule):
    """Where the main thread waits is kept beside the stack of the thread, which has no line of the script."""
    thread = threading.Thread(target=capsule.observed, args=(MOMENT,), name="backward")
    thread.start()
    thread.join()
    failure = read_capsule(capsule.path).capsule.failure

    assert __file__ in {frame.filename for frame in failure.main_stack}
    assert __file__ not in {frame.filename for frame in failure.stack}
