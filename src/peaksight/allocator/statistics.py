"""The counts behind `torch.cuda.memory_stats()`, as DeviceStats in c10/core/CachingDeviceAllocator.h."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Stat:
    """One amount over time: `current`, its `peak`, and the sums of what came (`allocated`) and went (`freed`).

    A decrease is `current -= amount`: it is the most frequent change, and `freed` follows from the other numbers.
    """

    current: int = 0
    peak: int = 0
    allocated: int = 0
    at_reset: int = 0

    @property
    def freed(self) -> int:
        """What went away since the start or the last reset of the sums."""
        return self.at_reset + self.allocated - self.current

    def increase(self, amount: int) -> None:
        """Add `amount`, which may lift the peak."""
        self.allocated += amount
        self.current = current = self.current + amount
        if current > self.peak:
            self.peak = current

    def change(self, amount: int) -> None:
        """Add or, below zero, take away."""
        if amount > 0:
            self.increase(amount)
        else:
            self.current += amount

    def reset_peak(self) -> None:
        """Let the peak start again at the current amount."""
        self.peak = self.current

    def reset_accumulated(self) -> None:
        """Let both sums start again at zero."""
        self.allocated, self.at_reset = 0, self.current


@dataclass(slots=True)
class PoolStatistics:
    """The counts of one pool, or of all; `_bytes` are bytes, the others numbers of blocks or segments."""

    allocation: Stat = field(default_factory=Stat)
    allocated_bytes: Stat = field(default_factory=Stat)
    requested_bytes: Stat = field(default_factory=Stat)
    active: Stat = field(default_factory=Stat)
    active_bytes: Stat = field(default_factory=Stat)
    inactive_split: Stat = field(default_factory=Stat)
    inactive_split_bytes: Stat = field(default_factory=Stat)
    segment: Stat = field(default_factory=Stat)
    reserved_bytes: Stat = field(default_factory=Stat)

    def count_alloc(self, size: int, requested_size: int) -> None:
        """A block of `size` bytes was handed out for `requested_size` bytes."""
        for stat, amount in (
            (self.allocation, 1),
            (self.allocated_bytes, size),
            (self.requested_bytes, requested_size),
            (self.active, 1),
            (self.active_bytes, size),
        ):  # `increase`, the most frequent call of all, without the call
            stat.allocated += amount
            stat.current = current = stat.current + amount
            if current > stat.peak:
                stat.peak = current

    def count_free_requested(self, size: int) -> None:
        """The tensor of a block of `size` bytes died."""
        self.allocation.current -= 1
        self.allocated_bytes.current -= size

    def count_free_completed(self, size: int, requested_size: int) -> None:
        """A block of `size` bytes became reusable."""
        self.active.current -= 1
        self.active_bytes.current -= size
        self.requested_bytes.current -= requested_size

    def count_inactive_split(self, num_blocks: int, nbytes: int) -> None:
        """The free parts of split segments changed by `num_blocks` blocks and `nbytes` bytes."""
        self.inactive_split.change(num_blocks)
        self.inactive_split_bytes.change(nbytes)


@dataclass(slots=True)
class DeviceStatistics:
    """The counts of one device; `max_split_size` in bytes, -1 without a limit.

    Oversize blocks exist only under `max_split_size_mb`.
    """

    all: PoolStatistics = field(default_factory=PoolStatistics)
    small_pool: PoolStatistics = field(default_factory=PoolStatistics)
    large_pool: PoolStatistics = field(default_factory=PoolStatistics)
    oversize_allocations: Stat = field(default_factory=Stat)
    oversize_segments: Stat = field(default_factory=Stat)
    num_alloc_retries: int = 0
    num_ooms: int = 0
    num_sync_all_streams: int = 0
    num_device_alloc: int = 0
    num_device_free: int = 0
    num_oom_rejections: int = 0
    max_split_size: int = -1

    def reset_peak(self) -> None:
        """Let every peak start again at the current amount."""
        for _, stat in self._named_stats():
            stat.reset_peak()

    def reset_accumulated(self) -> None:
        """Let every sum and every counter start again at zero, as `resetAccumulatedStats`."""
        for _, stat in self._named_stats():
            stat.reset_accumulated()
        for counter in _COUNTERS:
            setattr(self, counter, 0)

    def flatten(self) -> dict[str, int]:
        """Every count under its key in `torch.cuda.memory_stats()`, sorted."""
        flat = {
            f"{name}.{metric}": getattr(stat, metric)
            for name, stat in self._named_stats()
            for metric in ("current", "peak", "allocated", "freed")
        }
        flat |= {counter: getattr(self, counter) for counter in _COUNTERS}
        flat["max_split_size"] = self.max_split_size
        return dict(sorted(flat.items()))

    def _named_stats(self) -> Iterator[tuple[str, Stat]]:
        for pool_name in ("all", "small_pool", "large_pool"):
            pool = getattr(self, pool_name)
            yield from ((f"{stat.name}.{pool_name}", getattr(pool, stat.name)) for stat in fields(PoolStatistics))
        yield "oversize_allocations", self.oversize_allocations
        yield "oversize_segments", self.oversize_segments


_COUNTERS = (
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
)
