"""What an allocator tells about itself, under PyTorch's names."""

from peaksight.allocator.statistics import DeviceStatistics


class ReportedStatistics:
    """The numbers of `torch.cuda.memory_stats()`, by name and as a whole.

    Every number in bytes; the numbers without `peak_` are current.
    """

    def __init__(self, statistics: DeviceStatistics) -> None:
        """Report `statistics`, which may go on changing; `everything` counts both pools."""
        self._statistics = statistics
        self.everything = statistics.all

    def reset_peak_stats(self) -> None:
        """As `torch.cuda.reset_peak_memory_stats()`."""
        self._statistics.reset_peak()

    def reset_accumulated_stats(self) -> None:
        """As `torch.cuda.reset_accumulated_memory_stats()`."""
        self._statistics.reset_accumulated()

    def memory_stats(self) -> dict[str, int]:
        """As `torch.cuda.memory_stats()`: the same keys, sorted."""
        return self._statistics.flatten()

    @property
    def num_alloc_retries(self) -> int:
        """How often cached segments were released because the device had nothing left, since the last reset."""
        return self._statistics.num_alloc_retries

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the blocks that tensors hold."""
        return self.everything.allocated_bytes.current

    @property
    def active_bytes(self) -> int:
        """Bytes of the blocks that tensors hold or another stream may still use."""
        return self.everything.active_bytes.current

    @property
    def awaiting_free_bytes(self) -> int:
        """Bytes of the blocks whose tensor died while another stream may still use them."""
        return self.active_bytes - self.allocated_bytes

    @property
    def requested_bytes(self) -> int:
        """Bytes asked for in the active blocks, before rounding."""
        return self.everything.requested_bytes.current

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the segments."""
        return self.everything.reserved_bytes.current

    @property
    def peak_allocated_bytes(self) -> int:
        """The most `allocated_bytes` since the start or the last reset."""
        return self.everything.allocated_bytes.peak

    @property
    def peak_active_bytes(self) -> int:
        """The most `active_bytes` since the start or the last reset."""
        return self.everything.active_bytes.peak

    @property
    def peak_requested_bytes(self) -> int:
        """The most `requested_bytes` since the start or the last reset."""
        return self.everything.requested_bytes.peak

    @property
    def peak_reserved_bytes(self) -> int:
        """The most `reserved_bytes` since the start or the last reset."""
        return self.everything.reserved_bytes.peak
