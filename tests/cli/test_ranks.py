"""Runs of several ranks: GIVEN a script that shards its model, THEN the answer has those that were simulated."""

import json
from pathlib import Path

import pytest

from peaksight.units import MIB

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parents[1] / "scripts" / "ranks.py"
H100 = ("--gpu", "h100-80gb", "--steps", "2")


@pytest.fixture
def report_of(peaksight):
    """The report of the script, and what was said on the way."""

    def run(*words):
        done = peaksight("run", *H100, "--json", "-", *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    return run


def rows(report):
    return [(row["rank"], row["index"]) for row in report["devices"]]


def test_ranks_that_are_alike(report_of):
    """The first and the last are simulated, each on its own card, and nothing differs."""
    report, said = report_of("--ranks", 16, SCRIPT)

    assert (report["world_size"], report["rank"], report["rank_differences"]) == (16, 0, [])
    assert rows(report) == [(0, 0), (15, 7)]
    assert report["devices"][0]["peak"]["allocated_bytes"] == report["devices"][1]["peak"]["allocated_bytes"]
    assert "rank 15 of 16" in said


def test_one_rank_does_more(report_of, peaksight, tmp_path):
    """GIVEN an evaluation on rank 0 only, THEN the second rank is simulated too, and the difference has its line."""
    words = ("--save", "run.capture", "torchrun", "--nproc-per-node", 4, SCRIPT, "--only", "evaluate")
    report, _ = report_of(*words)
    peaks = [row["peak"]["allocated_bytes"] for row in report["devices"]]
    page = peaksight("report", tmp_path / "run.capture").stdout

    assert rows(report) == [(0, 0), (1, 1), (3, 3)]
    assert report["rank"] == 0
    assert peaks[0] > peaks[1] + 200 * MIB
    assert peaks[1] == peaks[2]
    (first, *_), line = report["rank_differences"], f"{SCRIPT.name}:27"
    assert (first["rank"], first["source"], first["difference_bytes"]) == (1, line, 256 * MIB)
    assert "Why the ranks differ: rank 0 holds" in page


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("--ranks", 4, "--rank", 4), "no-such-rank"),
        (("--ranks", 6, "--gpus", 4), "ranks-per-machine"),
    ],
)
def test_ranks_that_are_not_there(words, slug, peaksight):
    """One sentence, and nothing runs."""
    done = peaksight("run", *words, SCRIPT)

    assert done.returncode == 2
    assert done.stderr.endswith(f"See docs/messages.md#{slug}.\n")
    assert done.stderr.count("\n") == 1


def test_ranks_that_wait_for_each_other(peaksight):
    """GIVEN a collective on rank 0 only, THEN there is no answer, and both lines are named."""
    done = peaksight("run", *H100, "--ranks", 2, "--json", "-", SCRIPT, "--only", "reduce")
    report = json.loads(done.stdout)

    assert done.returncode == 2
    assert (report["fits"], report["finished"]) == (None, "deadlock")
    assert "rank 0 calls all_reduce of float32[64, 256] at ranks.py:30, and rank 1 calls all_gather" in done.stderr
    assert done.stderr.endswith("See docs/messages.md#ranks-disagree.\n")
