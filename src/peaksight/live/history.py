"""Has the allocator keep its last events for the OOM capsule, as long as the script does not record them itself."""

from collections.abc import Callable
from typing import Any

from peaksight.overlays.patches import Patches

Guarded = Callable[..., None]


class History:
    """Whether events are recorded, and whether what is recorded is ours; nothing is before `keep_history`."""

    def __init__(self) -> None:
        """Nothing is recorded."""
        self._is_ours = self._is_over = self._is_the_scripts = False
        self._record: Callable[..., Any] | None = None
        self._max_events = 0

    def start(self, record: Callable[..., Any], max_events: int) -> None:
        """Record by `record` from now on."""
        self._record, self._max_events = record, max_events
        self.resume()

    def resume(self) -> None:
        """Go on, unless the script records itself."""
        if self._record is None or self._is_over or self._is_the_scripts:
            return
        from peaksight.live.torch_private import history_is_recorded  # with the script's torch

        if not history_is_recorded():
            self._is_ours = True
            self._record(max_entries=self._max_events, context="alloc", stacks="python")

    def pause(self) -> None:
        """Record no events; what is alive keeps its stacks."""
        if self._record and self._is_ours:
            self._is_ours = False
            self._record(enabled=None)

    def taken_over(self) -> None:
        """The script starts or ends a recording of its own."""
        self._is_ours, self._is_the_scripts = False, True

    def stop(self) -> None:
        """Record no more."""
        self._is_over = True
        self.pause()


def keep_history(history: History, patches: Patches, max_events: int, guarded: Guarded) -> None:
    """From the first use of CUDA until `patches` is left, record the last events with their Python stacks.

    A script that records them itself, before or later, keeps what it asked for. `guarded` calls a function and says
    what fails.
    """
    guarded(_begin, history, patches, max_events, guarded)


def _begin(history: History, patches: Patches, max_events: int, guarded: Guarded) -> None:
    from peaksight.live import torch_private

    record = torch_private.replace_recording(patches, history.taken_over)
    if record is not None:
        torch_private.once_initialized(lambda: guarded(history.start, record, max_events))
        patches.callback(guarded, history.stop)
