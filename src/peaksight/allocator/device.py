"""The memory that segments are made of: how much there is, and at which addresses."""

from peaksight.allocator.addresses import SegmentAddresses
from peaksight.allocator.pools import BlockPool
from peaksight.allocator.statistics import DeviceStatistics
from peaksight.units import MIB

# Measured: of the bytes that are free to a process, the driver never gives the last 2 MiB.
KEPT_BY_DRIVER = 2 * MIB


class DeviceOutOfMemory(Exception):
    """The device cannot serve an allocation, even after every cached segment was released.

    `requested_bytes` is what the tensor asked for, `segment_bytes` what the device was asked for (the figure in
    PyTorch's message); the others are those of the allocator at that moment. `is_rejected` where
    `throw_on_cudamalloc_oom` refused the request before anything was released, in other words than usual.
    """

    def __init__(
        self,
        *,
        requested_bytes: int,
        segment_bytes: int,
        allocated_bytes: int,
        reserved_bytes: int,
        outside_bytes: int,
        allowed_bytes: int | None,
        is_rejected: bool = False,
    ) -> None:
        """Keep the sizes."""
        super().__init__(f"cannot allocate {requested_bytes} bytes: {reserved_bytes} are reserved")
        self.requested_bytes = requested_bytes
        self.segment_bytes = segment_bytes
        self.allocated_bytes = allocated_bytes
        self.reserved_bytes = reserved_bytes
        self.outside_bytes = outside_bytes
        self.allowed_bytes = allowed_bytes
        self.is_rejected = is_rejected


class DeviceMemory:
    """Gives memory to one process.

    `limit_bytes` is what the process can hold, in segments and outside of them; None is no limit. `allowed_bytes` is
    PyTorch's own cap on what is reserved; None is no cap. With `has_everything` neither holds. `outside_bytes` are
    taken by others than the allocator. `num_calls` is how often memory for segments was taken or given back.
    """

    def __init__(
        self,
        *,
        limit_bytes: int | None,
        total_bytes: int | None,
        segment_address: SegmentAddresses,
        statistics: DeviceStatistics,
    ) -> None:
        """Start with nothing taken; `segment_address` gives the base address of a new segment of a given size."""
        self.limit_bytes = limit_bytes
        self._total_bytes = total_bytes
        self.allowed_bytes: int | None = None
        self.outside_bytes = 0
        self.num_calls = 0
        self.has_everything = False
        self.segment_address = segment_address
        self._statistics = statistics

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the segments, `total_allocated_memory` in C++."""
        return self._statistics.all.reserved_bytes.current

    def set_memory_fraction(self, fraction: float) -> None:
        """Allow `fraction` of the device's memory for segments, as `setMemoryFraction`; 1 allows all.

        Raises:
            ValueError: nobody told how much memory the device has.
        """
        if fraction >= 1:
            self.allowed_bytes = None
        elif self._total_bytes is None:
            raise ValueError("a memory fraction needs the device's total_bytes")
        else:
            self.allowed_bytes = int(fraction * self._total_bytes)

    def allows(self, segment_size: int) -> bool:
        """Whether PyTorch asks the device for `segment_size` bytes: not beyond `allowed_bytes`."""
        if self.allowed_bytes is None or self.has_everything:
            return True
        return self.reserved_bytes + segment_size <= self.allowed_bytes

    def is_within(self, fraction: float, segment_size: int) -> bool:
        """Whether `segment_size` bytes more leave what is reserved within `fraction` of the device's memory."""
        if self._total_bytes is None or self.has_everything:
            return True
        return self.reserved_bytes + segment_size <= int(fraction * self._total_bytes)

    def reserve(self, pool: BlockPool, size: int) -> bool:
        """Take `size` bytes for `pool`, as cudaMalloc or cuMemMap; False if the device has not so many left."""
        if not self._has(size):
            return False
        for statistics in pool.statistics:
            statistics.reserved_bytes.increase(size)
        self._statistics.num_device_alloc += 1
        self.num_calls += 1
        return True

    def release(self, pool: BlockPool, size: int) -> None:
        """Give `size` bytes of `pool` back, as cudaFree or cuMemUnmap."""
        for statistics in pool.statistics:
            statistics.reserved_bytes.current -= size
        self._statistics.num_device_free += 1
        self.num_calls += 1

    def take_outside(self, nbytes: int) -> bool:
        """Take `nbytes` for a library or the driver; False if the device has not so many left."""
        if not self._has(nbytes):
            return False
        self.outside_bytes += nbytes
        return True

    def _has(self, nbytes: int) -> bool:
        if self.limit_bytes is None or self.has_everything:
            return True
        return self.reserved_bytes + self.outside_bytes + nbytes + KEPT_BY_DRIVER <= self.limit_bytes
