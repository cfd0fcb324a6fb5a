"""Storages of tensors on one card: each has a block from its birth until Python lets go of it."""

from collections.abc import Callable
from typing import Any
from weakref import ref

from peaksight.records import Role
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.threads import TURN


class _StorageRef(ref[Any]):
    """A weak reference to a storage that remembers its key."""

    __slots__ = ("key",)
    key: int


class Storages:
    """The storages of one card that are alive, by the address of their C++ object."""

    def __init__(self, allocate: Callable[..., Birth], free: Callable[[Birth], None]) -> None:
        """Blocks are those of `Ledger.allocate`, and go back by `Ledger.free`."""
        self._allocate, self._free = allocate, free
        self._alive: dict[int, tuple[_StorageRef, Birth]] = {}

    def born(
        self, storage: Any, op: str, role: Role = Role.UNMARKED, module: str = "", tensor: str = ""
    ) -> Birth | None:
        """Give `storage` a block unless it has one; storages of zero bytes get none, as on the card.

        It belongs to `module`, or else to the one that is running; `tensor` says what it was made for. What is
        new is returned.
        """
        key, num_bytes = storage._cdata, storage.nbytes()
        if not num_bytes or key in self._alive:
            return None
        birth = self._allocate(num_bytes, op, role)
        birth.module, birth.tensor = module or birth.module, tensor
        self._alive[key] = (self._watch(storage, key), birth)
        return birth

    def resized(self, storage: Any, op: str) -> None:
        """A storage changed its size: its old block is freed after the new one was taken."""
        key, num_bytes = storage._cdata, storage.nbytes()
        before = self._alive.get(key)
        if before is not None and before[1].requested_bytes == num_bytes:
            return
        if num_bytes:
            self._alive[key] = (self._watch(storage, key), self._allocate(num_bytes, op))
        else:
            self._alive.pop(key, None)
        if before is not None:
            self._free(before[1])

    def mark(self, storage: Any, role: Role, module: str = "") -> None:
        """Say what `storage` is for, and whose it is where `module` says so.

        The first word stays, but what a module holds counts more than where it came from, and whose it is may be told
        better once more of the model is known.
        """
        birth = self.of(storage)
        if birth is not None and (birth.role in (Role.UNMARKED, Role.INPUT, role) or role is Role.PARAMETER):
            birth.role = role
            birth.module = module or birth.module

    def of(self, storage: Any) -> Birth | None:
        """The block of `storage`, if it has one."""
        alive = self._alive.get(storage._cdata)
        return None if alive is None else alive[1]

    def at(self, address: int) -> Birth | None:
        """The block at `address`, if a storage has it."""
        return next((birth for _, birth in self._alive.values() if birth.block.address == address), None)

    def _watch(self, storage: Any, key: int) -> _StorageRef:
        reference = _StorageRef(storage, self._storage_died)
        reference.key = key
        return reference

    def _storage_died(self, reference: _StorageRef) -> None:
        with TURN:
            alive = self._alive.pop(reference.key, None)
            if alive is not None:
                self._free(alive[1])
