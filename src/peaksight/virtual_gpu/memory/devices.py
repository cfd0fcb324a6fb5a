"""The cards of one process: how many it sees, which is the current one, and the ledger of each."""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.allocator.addresses import DriverAddresses
from peaksight.allocator.caching import CachingAllocator
from peaksight.gpus import Room
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.runtime_errors import INVALID_DEVICE, runtime_error
from peaksight.virtual_gpu.tensors.devices import current_device, exchange_device, for_cpp

NO_DEVICES = "No CUDA GPUs are available"
# The segments of each card lie in a part of the address space of its own.
_TOP_ADDRESS, _ADDRESSES_A_CARD = 1 << 47, 1 << 42


class Devices:
    """`num_gpus` cards of one kind; `ledgers` has one for each, by its index.

    Where there are several, CUDA_VISIBLE_DEVICES says which of them the process sees, as on the card until its first
    use: later changes have no effect. A single card is the visible one, whatever its number there.
    """

    def __init__(self, num_gpus: int, new_ledger: Callable[[int], Ledger], release: tuple[int, int]) -> None:
        """`new_ledger` makes the ledger of the card with an index; `release` is that of torch, for its errors."""
        self.ledgers = tuple(map(new_ledger, range(num_gpus)))
        self._release = release
        self._visible: tuple[int, ...] | None = None

    @property
    def visible(self) -> tuple[int, ...]:
        """The numbers that the driver gives the cards of this process, by their index."""
        if self._visible is not None:
            return self._visible
        visible = _visible_of(len(self.ledgers))
        if self.are_used:
            self._visible = visible
        return visible

    @property
    def count(self) -> int:
        """How many cards this process sees, as `torch.cuda.device_count()`."""
        return len(self.visible)

    @property
    def current(self) -> Ledger:
        """The ledger of the current device of this thread."""
        return self.ledgers[current_device()]

    @property
    def are_used(self) -> bool:
        """Whether anything was asked of a card yet."""
        return any(ledger.is_used for ledger in self.ledgers)

    @property
    def used(self) -> tuple[Ledger, ...]:
        """The ledgers of the cards that memory was asked of, the first one if there is none."""
        return tuple(ledger for ledger in self.ledgers if ledger.was_asked) or self.ledgers[:1]

    @property
    def num_births(self) -> int:
        """How many blocks all cards have handed out."""
        return sum(len(ledger.births) for ledger in self.ledgers)

    def index_of(self, device: Any) -> int:
        """The index of what names a device of the card, the current one for None.

        Raises:
            torch.AcceleratorError: there is no such card.
        """
        asked = for_cpp("cuda" if device is None else device)
        index: int = asked.index if isinstance(asked, torch.device) else asked
        self.demand(index)
        return index

    def demand(self, index: int) -> None:
        """Raise what the runtime says of a card that is not there."""
        if not self.count:
            raise RuntimeError(NO_DEVICES)
        if not 0 <= index < self.count:
            raise runtime_error(INVALID_DEVICE, self._release)

    def exchange(self, device: Any) -> int:
        """Make `device` the current one of this thread, unless its index is negative; returns the index before."""
        if isinstance(device, int) and device < 0:
            return current_device()
        return exchange_device(self.index_of(device))

    def lift_limits(self) -> None:
        """Let all cards serve everything from here on."""
        for ledger in self.ledgers:
            ledger.lift_limit()

    def begin_step_anew(self) -> None:
        """What came so far in this step is not to be in its peaks on any card."""
        for ledger in self.ledgers:
            ledger.begin_step_anew()

    def birth_of(self, tensor: Any) -> Birth | None:
        """The block of a fake tensor that is on a card."""
        device = tensor.fake_device
        return self.ledgers[device.index].storages.of(tensor.untyped_storage()) if device.type == "cuda" else None

    def holding(self, storage: Any) -> Ledger | None:
        """The ledger in which `storage` has a block."""
        return next((ledger for ledger in self.ledgers if ledger.storages.of(storage) is not None), None)


def allocator_of(room: Room, index: int) -> CachingAllocator:
    """An allocator with nothing reserved on card number `index`, of which a process finds `room`."""
    return CachingAllocator(
        limit_bytes=room.usable_bytes,
        total_bytes=room.card.total_bytes,
        segment_address=DriverAddresses(_TOP_ADDRESS - index * _ADDRESSES_A_CARD),
    )


def _visible_of(num_gpus: int) -> tuple[int, ...]:
    """What CUDA_VISIBLE_DEVICES leaves of `num_gpus` cards: numbers up to the first that is not there, or names."""
    if num_gpus == 1:
        return (0,)
    named = torch.cuda._parse_visible_devices()
    if any(isinstance(name, str) for name in named):
        return tuple(range(min(num_gpus, len(named))))
    known = [0 <= int(number) < num_gpus for number in named]
    return tuple(int(number) for number in named[: (*known, False).index(False)])
