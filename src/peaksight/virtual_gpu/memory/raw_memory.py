"""Blocks by their address: `torch.cuda.caching_allocator_alloc`, and what torch asks about an allocation."""

from typing import Any

from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.memory.ledger import Ledger


class RawMemory:
    """The blocks that a script holds by address, and those of its tensors: no two cards share an address."""

    def __init__(self, devices: Devices) -> None:
        """None is held by address yet; all of them are blocks of `devices`."""
        self._devices = devices
        self._held: dict[int, tuple[Ledger, Birth]] = {}

    def answers(self) -> dict[str, Any]:
        """The C functions."""
        return {
            "_cuda_cudaCachingAllocator_raw_alloc": self.alloc,
            "_cuda_cudaCachingAllocator_raw_delete": self.delete,
        }

    def alloc(self, size: int, stream: int) -> int:
        """The address of a block for `size` bytes on `stream` of the current device; 0 for no bytes, as in C++."""
        if size < 0:
            raise RuntimeError("Invalid memory size: . caching_allocator_alloc requires a non-negative size.")
        if size == 0:
            return 0
        ledger = self._devices.current
        before, ledger.stream = ledger.stream, stream
        try:
            birth = ledger.allocate(size, "caching_allocator_alloc")
        finally:
            ledger.stream = before
        self._held[birth.block.address] = ledger, birth
        return birth.block.address

    def delete(self, address: int) -> None:
        """Give the block at `address` back.

        Raises:
            RuntimeError: the script holds no such block.
        """
        ledger, birth = self._held.pop(address, (None, None))
        if ledger is not None and birth is not None:
            ledger.free(birth)
        elif address:
            raise RuntimeError(f"invalid device pointer: {address:#x}")

    def at(self, address: int) -> tuple[Ledger, Birth] | None:
        """The block that begins at `address`, with the ledger of its card, if it is in use."""
        if address in self._held:
            return self._held[address]
        found = ((ledger, ledger.storages.at(address)) for ledger in self._devices.ledgers)
        return next(((ledger, birth) for ledger, birth in found if birth is not None), None)
