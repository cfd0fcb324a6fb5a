"""Blocks by their address: `torch.cuda.caching_allocator_alloc`, and what torch asks about an allocation."""

from typing import Any

from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.ledger import Ledger


class RawMemory:
    """The blocks of one card that a script holds by address, and those of its tensors."""

    def __init__(self, ledger: Ledger) -> None:
        """None is held by address yet; all of them are blocks of `ledger`."""
        self._ledger = ledger
        self._held: dict[int, Birth] = {}

    def answers(self) -> dict[str, Any]:
        """The C functions."""
        return {
            "_cuda_cudaCachingAllocator_raw_alloc": self.alloc,
            "_cuda_cudaCachingAllocator_raw_delete": self.delete,
        }

    def alloc(self, size: int, stream: int) -> int:
        """The address of a block for `size` bytes on `stream`; 0 for no bytes, as in C++."""
        if size < 0:
            raise RuntimeError("Invalid memory size: . caching_allocator_alloc requires a non-negative size.")
        if size == 0:
            return 0
        before, self._ledger.stream = self._ledger.stream, stream
        try:
            birth = self._ledger.allocate(size, "caching_allocator_alloc")
        finally:
            self._ledger.stream = before
        self._held[birth.block.address] = birth
        return birth.block.address

    def delete(self, address: int) -> None:
        """Give the block at `address` back.

        Raises:
            RuntimeError: the script holds no such block.
        """
        birth = self._held.pop(address, None)
        if birth is not None:
            self._ledger.free(birth)
        elif address:
            raise RuntimeError(f"invalid device pointer: {address:#x}")

    def at(self, address: int) -> Birth | None:
        """The block that begins at `address`, if it is in use."""
        return self._held.get(address) or self._ledger.at(address)
