"""Which simulations make up a run: of ranks, and again without a limit."""

from dataclasses import dataclass, field, replace

import pytest

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution import report_on
from peaksight.cli.simulated import Simulations
from peaksight.errors import PeaksightError
from peaksight.gpus import find_card, room_on
from peaksight.records import ScriptCommand
from peaksight.units import GIB

H100 = room_on(find_card("h100-80gb"))


def run_of(num_bytes, rank, size, **about):
    """A rank that takes as much in its only step."""
    steps = [step_of(1, 1, 1)]
    return (capture_of(allocation_of(num_bytes, born=1), steps=steps, rank=rank, world_size=size, **about),)


@dataclass
class Job:
    """A job of ranks that hold as much; `simulated` are the ranks in order, and how many may fail.

    The script of the rank `failing` fails.
    """

    held: list
    simulated: list = field(default_factory=list)
    failing: int | None = None

    def simulate(self, command, room, *, rank, on_step, max_failures=None):
        """As the virtual GPU would."""
        self.simulated.append((rank, max_failures))
        if self.held[rank] is None:
            return None
        ends = "failed" if rank == self.failing else "steady"
        run = run_of(self.held[rank], rank, len(self.held), finished=ends)
        if max_failures is None and self.held[rank] > 79 * GIB:
            failure = failure_of(90 * GIB, tick=1)
            return tuple(replace(each, failures=(failure,), fatal=0, finished="failed") for each in run)
        return run

    def captures(self, ranks=None):
        """Of the run."""
        command = ScriptCommand(target="train.py", processes=len(self.held))
        simulate = self.simulate
        return Simulations(
            command=command, room=H100, ranks=ranks, here=simulate, elsewhere=simulate, how={}, progress=Silent()
        ).captures()


class Silent:
    """Nobody listens."""

    def again(self, room):
        """The run starts again."""

    def another(self, rank, world_size):
        """Another rank starts."""


@pytest.mark.parametrize(
    ("held", "asked", "simulated", "shown"),
    [
        ([1], None, [0], [0]),
        ([1, 1], None, [0, 1], [0, 1]),
        ([1, 1, 1, 1], None, [0, 3], [0, 3]),
        ([2, 1, 1, 1], None, [0, 3, 1], [0, 1, 3]),
        ([2, 1, 1, 1], "0", [0], [0]),
        ([2, 1, 1, 1], "3,1", [0, 1, 3], [1, 3]),
        ([90, 1, 1, 1], "2", [0, 2], [2]),
        ([1, 1, 1, 1], "all", [0, 1, 2, 3], [0, 1, 2, 3]),
    ],
)
def test_which_ranks_are_simulated(held, asked, simulated, shown):
    """The first and the last, and the second where these differ; those that were asked for, after the first."""
    job = Job([num * GIB for num in held])
    captures = job.captures(asked)

    assert job.simulated == [(rank, None) for rank in simulated]
    assert [capture.rank for capture in captures] == shown


def test_the_rank_that_runs_out():
    """It is the one that is told of, and is simulated again without a limit."""
    job = Job([GIB, GIB, GIB, 90 * GIB])
    report = report_on(job.captures(), H100)

    assert job.simulated == [(0, None), (3, None), (3, 0), (1, None)]
    assert (report.fits, report.rank, report.oom.rank) == (False, 3, 3)
    assert [(row.rank, row.oom is None) for row in report.devices] == [(0, True), (1, True), (3, False)]
    assert report.peak.allocated_bytes == 90 * GIB


def test_why_ranks_differ():
    """By line and category, beyond each of the others."""
    report = report_on(Job([3 * GIB, GIB, GIB]).captures(), H100)

    assert [(each.rank, each.source, each.difference_bytes) for each in report.rank_differences] == [
        (1, "train.py:1", 2 * GIB),
        (2, "train.py:1", 2 * GIB),
    ]


def test_a_script_that_fails_fails_on_all_ranks():
    """The others are not tried."""
    job = Job([GIB, GIB], failing=0)

    assert len(job.captures()) == 1


def test_a_rank_that_fails_ends_the_job():
    """The launcher stops the others then, however far they are."""
    job = Job([2 * GIB, GIB, GIB, GIB], failing=3)
    report = report_on(job.captures(), H100)

    assert [rank for rank, _ in job.simulated] == [0, 3]
    assert (report.finished, report.rank) == ("failed", 3)


@pytest.mark.parametrize(("held", "asked", "slug"), [([1, 1], "2", "no-such-rank"), ([1, None], None, "rank-failed")])
def test_no_answer(held, asked, slug):
    """A rank that is not there, and one whose process ended."""
    with pytest.raises(PeaksightError) as caught:
        Job([num and num * GIB for num in held]).captures(asked)

    assert caught.value.slug == slug
