"""What the allocator has reserved and no tensor uses: how much other settings would need, and what keeps it."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from peaksight.attribution import pins_of, replay_capture, segments_when_reserved
from peaksight.records import Action, AllocatorCall, Capture
from peaksight.records.recording import Pin

SETTING = "expandable_segments:True"
# From this part of what is reserved on, what is not used is more than the allocator's usual rest.
LARGE_PART = 1 / 4
# So much of it must be left by earlier steps for these to be the reason.
MOST = 0.5


class Reserved:
    """The reserved memory of one capture; what would be comes from replays of its calls on a card without a limit."""

    def __init__(self, capture: Capture) -> None:
        """Nothing is replayed before it is asked for."""
        self._capture = capture

    @property
    def peak_bytes(self) -> int:
        """What was reserved at most: a card that was full has given its cache back before."""
        return self._capture.peak_reserved_bytes

    @property
    def unused_bytes(self) -> int:
        """What was reserved at most, less what was allocated at most."""
        return self.peak_bytes - self._capture.peak_allocated_bytes

    @cached_property
    def expandable_saves_bytes(self) -> int:
        """By how much less would be reserved with expandable segments."""
        setting = AllocatorCall(tick=-1, action=Action.SETTINGS, what=SETTING)
        others = (call for call in self._capture.calls if call.action is not Action.SETTINGS)
        return self.peak_bytes - self._peak_with((setting, *others))

    @cached_property
    def left_by_steps_bytes(self) -> int:
        """By how much less would be reserved if each step began with an empty cache."""
        emptied = (AllocatorCall(tick=step.first_tick - 1, action=Action.EMPTY_CACHE) for step in self._capture.steps)
        return self.peak_bytes - self._peak_with((*self._capture.calls, *emptied))

    @property
    def is_of_steps(self) -> bool:
        """Whether a large part is not used, and most of that is segments that earlier steps left."""
        is_large = self.unused_bytes >= LARGE_PART * self.peak_bytes
        return is_large and self.left_by_steps_bytes >= MOST * self.unused_bytes

    @cached_property
    def pins(self) -> tuple[Pin, ...]:
        """The lines whose blocks keep segments that are partly free, when as much is reserved for the first time."""
        return pins_of(self._capture, segments_when_reserved(self._capture, self.peak_bytes))

    def by_emptying(self) -> tuple[int, int]:
        """What is reserved at most with the script's calls of `torch.cuda.empty_cache()`, and without them."""
        others = (call for call in self._capture.calls if call.action is not Action.EMPTY_CACHE or not call.what)
        return self._peak_with(self._capture.calls), self._peak_with(others)

    def _peak_with(self, calls: Iterable[AllocatorCall]) -> int:
        capture = replace(self._capture, calls=tuple(calls))
        return replay_capture(capture, limit_bytes=None).peak_reserved_bytes
