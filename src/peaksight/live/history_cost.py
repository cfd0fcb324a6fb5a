"""Whether the allocator's history is worth its time: it names the lines of what is alive when memory runs out.

For each allocation the stack of Python is noted. Where the card is the bottleneck that costs nothing; where Python is,
it may cost more than a watched run is to cost. So it is on in the first steps, when parameters and the state of the
optimizer are made, then off for as many, and from there on only if that made no difference.
"""

from collections.abc import Iterable
from statistics import median
from typing import Protocol

from peaksight.live.watcher import Saying, Watcher
from peaksight.records.watched import WatchedStep

# Those that make what the others keep, and compile.
_FIRST_STEPS = 4
_STEPS_EACH_WAY = 8
# The slow-down that is still none.
_AFFORDABLE = 1.01
# Around these it is wanted at any price.
_TROUBLE = ("retry", "out-of-memory", "growth", "nearly-full")


class Switch(Protocol):
    """The allocator's history."""

    def resume(self) -> None:
        """On, unless the script records it itself."""
        ...

    def pause(self) -> None:
        """Off, unless the script records it itself."""
        ...


class HistoryWhereAffordable(Watcher):
    """Switches the history by what it was seen to cost."""

    def __init__(self, switch: Switch) -> None:
        """It is on."""
        self._switch = switch
        self._device: int | None = None
        self._seconds: list[float] = []
        self._is_decided = False

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """Switch it off and on again to see what it costs, once."""
        self._device = step.device if self._device is None else self._device
        if self._is_decided or step.device is None or step.device != self._device:
            return
        self._seconds.append(step.seconds)
        if len(self._seconds) == _FIRST_STEPS + _STEPS_EACH_WAY:
            self._switch.pause()
        elif len(self._seconds) == _FIRST_STEPS + 2 * _STEPS_EACH_WAY:
            self._is_decided = True
            with_it = self._seconds[_FIRST_STEPS:-_STEPS_EACH_WAY]
            if median(with_it) <= _AFFORDABLE * median(self._seconds[-_STEPS_EACH_WAY:]):
                self._switch.resume()
            else:
                yield (
                    "history-off",
                    "to note the line of each allocation slows this script down: it is noted again when the card is "
                    "full or memory grows",
                )

    def happened(self, kind: str) -> None:
        """Where there is trouble it is on for good."""
        if kind in _TROUBLE:
            self._is_decided = True
            self._switch.resume()
