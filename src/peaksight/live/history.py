"""Has the allocator keep its last events for the OOM capsule, as long as the script does not record them itself."""

from collections.abc import Callable
from typing import Any

from peaksight.overlays.patches import Patches

Guarded = Callable[..., None]


def keep_history(patches: Patches, max_events: int, guarded: Guarded) -> None:
    """From the first use of CUDA until `patches` is left, record the last events with their Python stacks.

    A script that records them itself, before or later, keeps what it asked for. `guarded` calls a function and says
    what fails.
    """
    guarded(_begin, patches, max_events, guarded)


def _begin(patches: Patches, max_events: int, guarded: Guarded) -> None:
    from peaksight.live import torch_private

    history = _History()
    record = torch_private.replace_recording(patches, history.taken_over)
    if record is not None:
        torch_private.once_initialized(lambda: guarded(history.start, record, max_events))
        patches.callback(guarded, history.stop, record)


class _History:
    """Whether what is recorded is ours."""

    def __init__(self) -> None:
        self._is_ours = self._is_over = False

    def start(self, record: Callable[..., Any], max_events: int) -> None:
        from peaksight.live.torch_private import history_is_recorded

        if not self._is_over and not history_is_recorded():
            self._is_ours = True
            record(max_entries=max_events, context="alloc", stacks="python")

    def taken_over(self) -> None:
        """The script starts or ends a recording of its own."""
        self._is_ours = False

    def stop(self, record: Callable[..., Any]) -> None:
        self._is_over = True
        if self._is_ours:
            record(enabled=None)
