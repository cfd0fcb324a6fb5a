"""A loader as it is read: what it has given, and the largest of the batches that are skipped."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from typing import Any
from weakref import ref

from peaksight.virtual_gpu.timing.pinned import pin
from peaksight.virtual_gpu.training.extents import NOTHING, Extent, extent_of, largest_places

# For the batches that are read only to find the largest.
MAX_SECONDS = 10.0
# It hands a batch on when it has read the next one.
_READS_AHEAD = "accelerate.data_loader"


class Reading:
    """One pass of `iterator` through a loader, in the worker that `in_worker` stands for.

    `on_batch` is called with every batch that the script gets; `pins` says whether that is pinned.
    """

    def __init__(
        self,
        iterator: Iterator[Any],
        in_worker: Callable[[], AbstractContextManager[None]],
        on_batch: Callable[[Any], None],
        *,
        pins: bool,
    ) -> None:
        """Nothing is read yet."""
        self._iterator = ref(iterator)
        self._in_worker, self._on_batch, self._pins = in_worker, on_batch, pins
        self._fetch: Callable[[Any], Any] | None = None
        self._kept: deque[Any] = deque()
        self._largest = NOTHING
        self._is_read_ahead = self._gave_kept = False
        self.is_read = self.varies = False
        self.num_given = 0

    @property
    def num_kept(self) -> int:
        """How many batches were read that the script has not got yet."""
        return len(self._kept)

    @property
    def goes_on(self) -> bool:
        """Whether it has begun and may give more."""
        return self.num_given > 0 and (self.has_kept or not self.is_read)

    @property
    def has_kept(self) -> bool:
        """Whether the script has not trained yet on a batch that was kept."""
        return bool(self._kept) or (self._gave_kept and self._is_read_ahead)

    def give(self, fetch: Callable[[Any], Any]) -> Any:
        """The next batch for the script, which called `__next__` two frames above; `fetch(iterator)` reads one."""
        self._fetch = fetch
        self._is_read_ahead = sys._getframe(3).f_globals.get("__name__") == _READS_AHEAD
        self._gave_kept = bool(self._kept)
        batch = self._kept.popleft() if self._kept else self._read()
        extent = _extent(batch)
        self.varies |= self.num_given > 0 and extent != self._largest
        self._largest = self._largest.joined(extent)
        self.num_given += 1
        if self._pins:
            pin(batch)
        self._on_batch(batch)
        return batch

    def skip_to_largest(self, max_batches: float) -> int:
        """Read up to `max_batches` that the script does not get, but those that are larger than all it got.

        Of them it gets the one of the most elements and the one with the longest side next. Returns how many were read.
        """
        batches: list[Any] = []
        end = time.monotonic() + MAX_SECONDS
        for num_read in count():
            if num_read >= max_batches or time.monotonic() > end:
                break
            try:
                batches.append(self._read())
            except Exception:
                break
            batches = [batches[place] for place in largest_places(list(map(_extent, batches)), self._largest)]
        self._kept.extend(batches)
        return num_read

    def _read(self) -> Any:
        assert self._fetch is not None
        self.is_read = True
        with self._in_worker():
            batch = self._fetch(self._iterator())
        self.is_read = False
        return batch


def _extent(batch: Any) -> Extent:
    try:
        return extent_of(batch)
    except Exception:  # whatever a class of the script's does that is asked for its parts
        return NOTHING
