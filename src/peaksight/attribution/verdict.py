"""Does it fit: the capture's allocations replayed through the caching allocator of a card of limited size."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from peaksight.allocator import Block, CachingAllocator, DeviceOutOfMemory
from peaksight.gpus import Room
from peaksight.records import Allocation, Capture, OutOfMemory
from peaksight.units import GIB, format_bytes

UNBOUNDED_BYTES = sys.maxsize
# Approximations without a size that may still decide the verdict, and the most each is taken to hold.
DECIDING_BYTES = {
    "convolution-workspace": GIB // 2,
    "linalg-workspace": GIB,
    "index-workspace": GIB,
    "fft-workspace": GIB,
    "recurrent-layers": GIB,
    "unknown-operator": UNBOUNDED_BYTES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`fits` is None when an unknown could turn the answer around; `oom` then still says which way is likelier."""

    fits: bool | None
    oom: OutOfMemory | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The allocation that a limited card cannot serve, and what the allocator held when it was asked for."""

    allocation: Allocation
    error: DeviceOutOfMemory


def judge(capture: Capture, room: Room) -> Verdict:
    """Decide whether `capture` fits in `room`.

    It fits when the allocations succeed even in the smallest room that the unknowns leave, and does not when they
    fail even in the largest; in between, `fits` is None.
    """
    failure = first_failure(capture, room.usable_bytes)
    if failure is None:
        smallest = max(0, room.surely_usable_bytes - _undecided_bytes(capture))
        return Verdict(fits=True if first_failure(capture, smallest) is None else None, oom=None)
    sure = first_failure(capture, room.possibly_usable_bytes) is not None
    return Verdict(fits=False if sure else None, oom=_out_of_memory(failure, room))


def first_failure(capture: Capture, limit_bytes: int) -> Failure | None:
    """The first allocation of `capture` that fails on a card of which the allocator can reserve `limit_bytes`.

    Limitations:
        `torch.cuda.empty_cache` calls of the script are not in the capture, so cached memory stays reserved until
        the allocator itself gives it back.
    """
    if capture.peak_reserved_bytes <= limit_bytes:
        return None
    allocator = CachingAllocator()
    allocator.allowed_bytes = limit_bytes
    blocks: dict[int, Block] = {}
    for allocation, is_birth in _events(capture):
        if not is_birth:
            allocator.free(blocks.pop(allocation.born))
            continue
        try:
            blocks[allocation.born] = allocator.malloc(allocation.requested_bytes, allocation.stream)
        except DeviceOutOfMemory as error:
            return Failure(allocation=allocation, error=error)
    return None


def _events(capture: Capture) -> Iterator[tuple[Allocation, bool]]:
    """Births (True) and deaths of the capture's allocations in the order of their ticks."""
    births = [(a.born, a, True) for a in capture.allocations]
    deaths = [(a.died, a, False) for a in capture.allocations if a.died is not None]
    return ((a, is_birth) for _, a, is_birth in sorted(births + deaths, key=lambda event: event[0]))


def _undecided_bytes(capture: Capture) -> int:
    return sum(DECIDING_BYTES.get(unknown.slug, 0) for unknown in capture.not_simulated if unknown.bytes is None)


def _out_of_memory(failure: Failure, room: Room) -> OutOfMemory:
    allocation, error = failure.allocation, failure.error
    return OutOfMemory(
        message=_message(error, room),
        requested_bytes=error.requested_bytes,
        allocated_bytes=error.allocated_bytes,
        reserved_bytes=error.reserved_bytes,
        step=allocation.step,
        phase=allocation.phase,
        at=allocation.source,
        backward_at=None,
    )


def _message(error: DeviceOutOfMemory, room: Room) -> str:
    """PyTorch's own words for the situation, as torch.OutOfMemoryError prints them."""
    in_use = room.context_bytes + error.reserved_bytes
    return (
        f"CUDA out of memory. Tried to allocate {format_bytes(error.segment_bytes)}. "
        f"GPU 0 has a total capacity of {format_bytes(room.card.total_bytes)} "
        f"of which {format_bytes(room.usable_bytes - error.reserved_bytes)} is free. "
        f"Including non-PyTorch memory, this process has {format_bytes(in_use)} memory in use. "
        f"Of the allocated memory {format_bytes(error.allocated_bytes)} is allocated by PyTorch, and "
        f"{format_bytes(error.reserved_bytes - error.allocated_bytes)} is reserved by PyTorch but unallocated."
    )
