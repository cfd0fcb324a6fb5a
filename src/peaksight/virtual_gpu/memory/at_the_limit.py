"""At the limit: what the card cannot serve is raised in the script, in PyTorch's own words."""

from collections.abc import Callable, Iterator
from itertools import chain

import torch

from peaksight.allocator.device import DeviceOutOfMemory
from peaksight.errors import StopSimulation
from peaksight.gpus import Room
from peaksight.records import Action, Failure
from peaksight.units import GIB, KIB, MIB
from peaksight.virtual_gpu.memory.births import Circumstances
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.script.tracebacks import remove_our_frames

# A script that asks again for ever is as stuck on the card.
MAX_FAILURES_WITHOUT_STEP = 100
_INDEX = "_peaksight_failure"


class Failures:
    """What the card could not serve, and how often the script got over it.

    After `max_failures` of them (None: never) the card has no limit any more, which shows what the job needs.
    """

    def __init__(
        self,
        room: Room,
        *,
        max_failures: int | None,
        backward_source: Callable[[], str],
        num_births: Callable[[], int],
    ) -> None:
        """No failure yet on any card like that of `room`.

        `backward_source` names the line that called the backward pass, `num_births` counts the blocks handed out.
        """
        self.records: list[Failure] = []
        self.observers: list[Callable[[int, int, int, int], None]] = []
        self._room = room
        self._max_failures = max_failures
        self._backward_source = backward_source
        self._count_births = num_births
        self._devices: list[int] = []
        self._num_births = 0
        self._num_without_step = 0
        self.in_search = False

    def step_ended(self) -> None:
        """The script got over every failure so far."""
        self._num_without_step = 0

    def out_of_memory(self, ledger: Ledger, about: Circumstances, error: DeviceOutOfMemory, op: str) -> None:
        """Raise `torch.OutOfMemoryError` for an allocation of `op`; return when enough was raised."""
        if self._were_enough():
            return
        message = out_of_memory_message(error, self._room, ledger.device)
        ledger.note(Action.FAILED, error.requested_bytes, op)
        self._note(ledger, about, error.requested_bytes, op, message)
        self.tell(ledger, error)
        raise self._marked(torch.OutOfMemoryError(message))

    def library_failed(
        self, ledger: Ledger, about: Circumstances, what: str, num_bytes: int, error: BaseException
    ) -> None:
        """Raise `error` of a library that could not get `num_bytes` from the card; return when enough was raised."""
        if self._were_enough():
            return
        self._note(ledger, about, num_bytes, what, str(error))
        raise self._marked(error)

    def on(self, device: int) -> tuple[Failure, ...]:
        """Those of card number `device`."""
        return tuple(failure for failure, on in zip(self.records, self._devices, strict=True) if on == device)

    def ending(self, error: BaseException | None, exit_code: int, num_births: int) -> int | None:
        """The number of the failure that ended the run, None if none did.

        It is the one behind `error`, which ended the script. A script that reports it in its own way is recognised by
        its exit code, when no step followed, or by its asking the card for nothing more: unless it was searching for
        what fits (`in_search`), and has found it.
        """
        marked = next((index for cause in _causes(error) if (index := getattr(cause, _INDEX, None)) is not None), None)
        if marked is not None:
            return marked
        stopped_here = num_births == self._num_births and not self.in_search
        gave_up = self._num_without_step and (exit_code != 0 or stopped_here)
        return len(self.records) - 1 if gave_up else None

    def _were_enough(self) -> bool:
        return self._max_failures is not None and len(self.records) >= self._max_failures

    def tell(self, ledger: Ledger, error: DeviceOutOfMemory) -> None:
        """What C++ tells of an `error` before it raises: the history, and the observers that the script attached."""
        free = self._room.free_bytes(error.reserved_bytes + error.outside_bytes)
        if ledger.history is not None:
            size = ledger.allocator.round_size(error.requested_bytes)
            ledger.history.failed(size, ledger.stream, device_free_bytes=free)
        allowed = self._room.card.total_bytes if error.allowed_bytes is None else error.allowed_bytes
        for observer in self.observers:
            observer(ledger.device, error.segment_bytes, allowed, free)

    def _note(self, ledger: Ledger, about: Circumstances, num_bytes: int, op: str, message: str) -> None:
        failure = Failure(
            tick=ledger.tick,
            message=message,
            requested_bytes=num_bytes,
            allocated_bytes=ledger.allocator.allocated_bytes,
            reserved_bytes=ledger.allocator.reserved_bytes,
            free_bytes=self._room.free_bytes(ledger.allocator.reserved_bytes + ledger.allocator.outside_bytes),
            step=about.step,
            phase=about.phase,
            op=op,
            module=about.module,
            source=about.lines.source,
            library=about.lines.library,
            backward_source=self._backward_source(),
            number=len(self.records),
        )
        self.records.append(failure)
        self._devices.append(ledger.device)
        self._num_births = self._count_births()
        self._num_without_step += 1
        if self._num_without_step > MAX_FAILURES_WITHOUT_STEP:
            raise StopSimulation("failed")

    def _marked(self, error: BaseException) -> BaseException:
        setattr(error, _INDEX, len(self.records) - 1)
        return error


def let_go(error: BaseException) -> None:
    """Take our frames out of the traceback of a failure: what they hold does not exist on the card by now."""
    if hasattr(error, _INDEX):
        remove_our_frames(error)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """`error`, what it was raised from and what was being handled then."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        current = pending.pop(0)
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            yield current
            pending += chain((current.__cause__, current.__context__), getattr(current, "exceptions", ()))


def out_of_memory_message(error: DeviceOutOfMemory, room: Room, device: int = 0) -> str:
    """The text of `torch.OutOfMemoryError` of card number `device`, as `DeviceCachingAllocator::malloc` writes it."""
    if error.is_rejected:
        return (
            "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
            f"per_process_memory_fraction limit. Requested size: {format_size(error.requested_bytes)}"
        )
    allowed = f"{format_size(error.allowed_bytes)} allowed; " if error.allowed_bytes is not None else ""
    taken_bytes = error.reserved_bytes + error.outside_bytes
    in_use = format_size(room.context_bytes + taken_bytes)
    return (
        f"CUDA out of memory. Tried to allocate {format_size(error.segment_bytes)}. "
        f"GPU {device} has a total capacity of {format_size(room.card.total_bytes)} "
        f"of which {format_size(room.free_bytes(taken_bytes))} is free. "
        f"Including non-PyTorch memory, this process has {in_use} memory in use. "
        f"{allowed}Of the allocated memory {format_size(error.allocated_bytes)} is allocated by PyTorch, and "
        f"{format_size(error.reserved_bytes - error.allocated_bytes)} is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to "
        "avoid fragmentation.  See documentation for Memory Management  "
        "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def format_size(num_bytes: int) -> str:
    """As `format_size` in CUDACachingAllocator.cpp: the unit changes above, not at, its multiple."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if num_bytes > unit:
            return f"{num_bytes / unit:.2f} {name}"
    return f"{num_bytes} bytes"
