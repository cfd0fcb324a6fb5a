"""A kill by the host is told by those who survive it."""

from peaksight.live.host_kills import HostKills
from peaksight.records.capsule import HostMemory
from peaksight.records.watched import WatchedStep


def test_the_counter():
    """Only what grows while we watch; looked at seldom, and at the end."""
    kills, now = [3], [0.0]
    watcher = HostKills(lambda: HostMemory(oom_kills=kills[0]), lambda: now[0])
    step = WatchedStep(step=1, time=0.0, seconds=0.1)

    assert [] == list(watcher.after(step))

    kills[0] = 4

    assert [] == list(watcher.after(step))

    now[0] = 10.0

    assert [("host-oom-kill", "the host killed 1 process(es) of this job for want of memory (RAM)")] == list(
        watcher.after(step)
    )
    assert [] == list(watcher.at_end())

    kills[0] = 6

    assert ["host-oom-kill"] == [kind for kind, _ in watcher.at_end()]


def test_without_a_control_group():
    """Nothing is known, and nothing is said."""
    watcher = HostKills(HostMemory)

    assert [] == [*watcher.after(WatchedStep(step=1, time=0.0, seconds=0.1)), *watcher.at_end()]
