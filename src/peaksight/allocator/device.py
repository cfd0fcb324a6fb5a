"""The memory that segments are made of: how much there is, and at which addresses."""

from collections.abc import Callable

from peaksight.allocator.pools import BlockPool
from peaksight.allocator.statistics import DeviceStatistics


class DeviceOutOfMemory(Exception):
    """The device cannot serve an allocation, even after every cached segment was released.

    `requested_bytes` is what the tensor asked for, `segment_bytes` what the device was asked for (the figure in
    PyTorch's message); `allocated_bytes` and `reserved_bytes` are those at that moment.
    """

    def __init__(self, *, requested_bytes: int, segment_bytes: int, allocated_bytes: int, reserved_bytes: int) -> None:
        """Keep the four sizes."""
        super().__init__(f"cannot allocate {requested_bytes} bytes: {reserved_bytes} are reserved")
        self.requested_bytes = requested_bytes
        self.segment_bytes = segment_bytes
        self.allocated_bytes = allocated_bytes
        self.reserved_bytes = reserved_bytes


class DeviceMemory:
    """Gives memory for segments until `limit_bytes` are reserved; None is no limit."""

    def __init__(
        self, *, limit_bytes: int | None, segment_address: Callable[[int], int], statistics: DeviceStatistics
    ) -> None:
        """Start with nothing reserved; `segment_address` gives the base address of a new segment of a given size."""
        self.limit_bytes = limit_bytes
        self.segment_address = segment_address
        self._statistics = statistics

    def reserve(self, pool: BlockPool, size: int) -> bool:
        """Take `size` bytes for `pool`, as cudaMalloc or cuMemMap; False if the device has not so many left."""
        if self.limit_bytes is not None and self._statistics.all.reserved_bytes.current + size > self.limit_bytes:
            return False
        for statistics in pool.statistics:
            statistics.reserved_bytes.increase(size)
        self._statistics.num_device_alloc += 1
        return True

    def release(self, pool: BlockPool, size: int) -> None:
        """Give `size` bytes of `pool` back, as cudaFree or cuMemUnmap."""
        for statistics in pool.statistics:
            statistics.reserved_bytes.current -= size
        self._statistics.num_device_free += 1
