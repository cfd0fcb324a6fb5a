"""Files of several ranks, simulated one after the other in one scratch directory."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from peaksight.virtual_gpu.script import Scratch
from peaksight.virtual_gpu.script.shared_files import JobFiles


@pytest.fixture
def job(tmp_path):
    """A job of which no rank has run."""
    root = tmp_path / "job"
    root.mkdir()
    return JobFiles(str(root))


def meets(scratch, ranks="0-3", *, is_barrier=False):
    scratch.met(ranks, is_barrier=is_barrier)


def test_files_are_seen_after_the_next_collective(home, job):
    """GIVEN a file that rank 0 writes between two, THEN another rank sees it from the second on."""
    with Scratch(job) as scratch:
        meets(scratch)
        Path("saved.pt").write_text("weights")
        os.makedirs("runs/new/1")
        meets(scratch)
    with Scratch(job) as scratch:
        meets(scratch)
        before = os.path.exists("saved.pt"), os.path.exists("runs/new/1")
        meets(scratch)
        after = Path("saved.pt").read_text(), os.path.isdir("runs/new/1")

    assert before == (False, False)
    assert after == ("weights", True)
    assert not (home / "saved.pt").exists()


def test_files_are_seen_until_they_are_removed(home, job):
    """Which the others see after the next collective too; near miss: a file of that name that this rank made."""
    with Scratch(job) as scratch:
        Path("a.txt").write_text("0")
        Path("b.txt").write_text("0")
        meets(scratch)
        os.remove("a.txt")
        os.rename("b.txt", "c.txt")
        meets(scratch)
    with Scratch(job) as scratch:
        Path("b.txt").write_text("mine")
        meets(scratch)
        first = Path("a.txt").read_text(), Path("b.txt").read_text()
        meets(scratch)
        second = os.path.exists("a.txt"), Path("b.txt").read_text(), Path("c.txt").read_text()

    assert first == ("0", "mine")
    assert second == (False, "mine", "0")


def test_temporary_files_have_the_same_names(job):
    """A directory that one rank makes and names to the others."""
    with Scratch(job) as scratch:
        directory = tempfile.mkdtemp()
        (Path(directory) / "x").write_text("1")
        meets(scratch)
        shutil.rmtree(directory)
    with Scratch(job) as scratch:
        meets(scratch)
        text = (Path(directory) / "x").read_text()

    assert text == "1"


def test_groups_meet_apart(home, job):
    """What is written after a collective of the one group is not seen after that of another."""
    with Scratch(job) as scratch:
        meets(scratch, "0,1")
        Path("late.txt").write_text("0")
        meets(scratch, "0-3")
    with Scratch(job) as scratch:
        meets(scratch, "0,1")
        before = os.path.exists("late.txt")
        meets(scratch, "0-3")
        after = os.path.exists("late.txt")

    assert (before, after) == (False, True)


def test_worker_processes_write_before_a_barrier(home, job):
    """As those of `Dataset.map` do while the other ranks wait."""
    with Scratch(job) as scratch:
        meets(scratch)
        if (child := os.fork()) == 0:
            Path("cache.arrow").write_text("rows")
            os._exit(0)
        os.waitpid(child, 0)
        meets(scratch, is_barrier=True)
    with Scratch(job) as scratch:
        meets(scratch)
        meets(scratch, is_barrier=True)
        text = Path("cache.arrow").read_text()

    assert text == "rows"


def test_nothing_is_left_over_from_a_rank_before(home, job):
    """What it wrote and nobody met after, and what it listed."""
    with Scratch(job) as first:
        Path("alone.txt").write_text("0")
    with Scratch(job) as second:
        is_there = os.path.exists("alone.txt")

    assert not is_there
    assert [write.path for write in first.writes()] == ["alone.txt"]
    assert second.writes() == ()
