"""Blocks that streams other than their own use: they are free once those are done with them.

Mirrors `recordStream`, `insert_events` and `process_events` of c10/cuda/CUDACachingAllocator.cpp, on the predicted
clocks of the host and of each stream.
"""

from peaksight.allocator.caching import CachingAllocator
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.timing.clocks import Clocks


class RecordedStreams:
    """Which streams use which blocks of one card, and when they are done with those that died."""

    def __init__(self, allocator: CachingAllocator, device: int) -> None:
        """For the blocks of `allocator`, that of card number `device`; `clocks` may be exchanged for those of a run.

        `awaiting` are those that died, each with the second when its streams are done.
        """
        self.clocks = Clocks()
        self._allocator, self._device = allocator, device
        self._used_by: dict[Birth, set[int]] = {}
        self.awaiting: dict[Birth, float] = {}

    def record(self, birth: Birth, stream: int) -> bool:
        """`stream` uses the block of `birth`; False on the block's own stream, where order is enough."""
        if stream == birth.stream:
            return False
        self._used_by.setdefault(birth, set()).add(stream)
        return True

    def free_requested(self, birth: Birth) -> bool:
        """The tensor of `birth` died: True where streams use its block, each of which gets an event."""
        streams = self._used_by.pop(birth, None)
        if streams is None:
            return False
        self.awaiting[birth] = max(self.clocks.of((self._device, stream)) for stream in streams)
        return True

    def completed(self) -> list[Birth]:
        """Those whose streams are done by now; all of them where the allocator itself has waited for them."""
        if not self.awaiting:
            return []
        if not self._allocator.awaiting_free_bytes:
            self.clocks.synchronize(max(self.awaiting.values()))
        return self._take(self.clocks.host)

    def never_completed(self) -> list[Birth]:
        """Those that nothing polled for: the run ended before."""
        return self._take(float("inf"))

    def _take(self, until: float) -> list[Birth]:
        done = [birth for birth, seconds in self.awaiting.items() if seconds <= until]
        for birth in done:
            del self.awaiting[birth]
        return done
