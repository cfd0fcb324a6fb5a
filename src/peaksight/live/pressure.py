"""A card that is nearly full: the allocator gives its cache back to go on, and waits for the card each time."""

from collections import defaultdict, deque
from collections.abc import Iterable

from peaksight.live.watcher import Saying, Watcher
from peaksight.records.watched import WatchedStep
from peaksight.units import GIB, format_bytes

_NUM_STEPS = 10
# Steps with retries among the last ones from which on it is a habit.
_THRASHING = 3
# What others take more of the card than at first, from which on it is worth a word.
_GROWN_OTHERS_BYTES = GIB


class Pressure(Watcher):
    """Watches for retries, and for memory of the card that this process does not have in its allocator."""

    def __init__(self) -> None:
        """No step has been seen."""
        self._last: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=_NUM_STEPS))
        self._thrashes: set[int] = set()
        self._most_free: dict[int, int] = {}

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """The first retry, that they go on, and that others grow; each once until it has stopped."""
        if step.device is None:
            return
        yield from self._retries(step, step.device)
        yield from self._others(step, step.device)

    def _retries(self, step: WatchedStep, device: int) -> Iterable[Saying]:
        last = self._last[device]
        if not step.retries and not any(last):
            self._thrashes.discard(device)
            return
        if step.retries and not any(last):
            yield "retry", "the card was full for a moment: the allocator gave its cache back and went on"
        last.append(step.retries)
        num_steps = sum(count > 0 for count in last)
        if num_steps >= _THRASHING and device not in self._thrashes:
            self._thrashes.add(device)
            yield (
                "thrash",
                f"the card is too full: in {num_steps} of the last {len(last)} steps the allocator gave its cache back "
                f"({sum(last)} times) and waited for the card; a smaller batch may be faster",
            )

    def _others(self, step: WatchedStep, device: int) -> Iterable[Saying]:
        """`free + reserved` falls only if something else takes memory: another process, NCCL, a library."""
        if step.free_bytes is None:
            return
        ours = step.free_bytes + step.reserved_bytes
        most = self._most_free.setdefault(device, ours)
        if ours < most - _GROWN_OTHERS_BYTES:
            self._most_free[device] = ours
            yield (
                "others",
                f"something outside of PyTorch's allocator has taken {format_bytes(most - ours)} of the card: another "
                "process, or a library such as NCCL",
            )
