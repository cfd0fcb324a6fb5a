"""Tells that the host killed a process of this one's control group: a killed process cannot say it itself."""

import time
from collections.abc import Callable, Iterable, Iterator

from peaksight.live.surroundings import host_memory
from peaksight.live.watcher import Saying, Watcher
from peaksight.records.capsule import HostMemory
from peaksight.records.watched import WatchedStep

_SECONDS_BETWEEN_LOOKS = 5.0


class HostKills(Watcher):
    """Looks at the counter of the control group, seldom and at the end."""

    def __init__(self, look: Callable[[], HostMemory] = host_memory, clock: Callable[[], float] = time.time) -> None:
        """What was killed before does not count."""
        self._look, self._clock = look, clock
        self._known = look().oom_kills
        self._next = 0.0

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """What was killed since the last look."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + _SECONDS_BETWEEN_LOOKS
        for text in self._killed():
            yield "host-oom-kill", text

    def at_end(self) -> Iterable[Saying]:
        """The same, once more."""
        for text in self._killed():
            yield "host-oom-kill", text

    def _killed(self) -> Iterator[str]:
        kills = self._look().oom_kills
        if kills is not None and self._known is not None and kills > self._known:
            yield f"the host killed {kills - self._known} process(es) of this job for want of memory (RAM)"
        self._known = kills if kills is not None else self._known
