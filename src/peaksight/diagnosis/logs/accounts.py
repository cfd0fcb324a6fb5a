"""Who holds the card, by the figures of one message."""

from dataclasses import dataclass

from peaksight.records import OomMessage, ProcessUse
from peaksight.units import GIB, MIB

# What a process can hold beside its allocator: context, kernels, cuBLAS, NCCL (allocator.md, section 2).
MAX_OUTSIDE_BYTES = 6 * GIB
# Context and kernels of one process without NCCL: more than this is somebody else's.
USUAL_OUTSIDE_BYTES = 1536 * MIB
# Messages of a caching allocator, which print what it keeps beside its tensors.
CACHING = ("torch-1.", "torch-2.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The card's bytes by holder; None where the message does not print enough.

    `own` is the process that printed the message, which a container may show under another pid (`own_as`);
    `outside_bytes` is what it holds beside the allocator, `others` are the other processes that are named, and
    `unexplained_bytes` is what is neither free nor held by any of them.
    """

    message: OomMessage
    own_bytes: int | None
    own_as: int | None
    others: tuple[ProcessUse, ...]

    @property
    def others_bytes(self) -> int:
        """What the other processes hold that the message names."""
        return sum(process.bytes for process in self.others)

    @property
    def pool_bytes(self) -> int | None:
        """What the allocator reserved, None where PyTorch's message is cut short of it."""
        message = self.message
        if message.reserved_bytes is not None or message.dialect.startswith(CACHING):
            return message.reserved_bytes
        return message.allocated_bytes

    @property
    def outside_bytes(self) -> int | None:
        """What this process holds beside its allocator."""
        if self.own_bytes is None or self.message.reserved_bytes is None:
            return None
        return max(self.own_bytes - self.message.reserved_bytes, 0)

    @property
    def unexplained_bytes(self) -> int | None:
        """What is neither free nor accounted for; includes the context where the process is not printed."""
        message, held = self.message, self.own_bytes if self.own_bytes is not None else self.pool_bytes
        if message.capacity_bytes is None or message.free_bytes is None or held is None:
            return None
        return max(message.capacity_bytes - message.free_bytes - held - self.others_bytes, 0)

    @property
    def margin_bytes(self) -> int:
        """How far the printed figures together can be off."""
        names = "capacity free allocated reserved idle process"
        figures = [figure for name in names.split() if (figure := self.message.figure(name))]
        return sum(figure.margin_bytes for figure in figures) + MIB


def account_of(message: OomMessage) -> Account:
    """The account of `message`: which process is its own, and which are others."""
    if message.process_bytes is not None:
        return Account(message=message, own_bytes=message.process_bytes, own_as=None, others=message.processes)
    own = _own_process(message)
    others = tuple(process for process in message.processes if process is not own)
    return Account(
        message=message, own_bytes=own.bytes if own else None, own_as=own.pid if own else None, others=others
    )


def _own_process(message: OomMessage) -> ProcessUse | None:
    """The process listed as another that is this one: it holds what the allocator reserved, and little more."""
    reserved = message.reserved_bytes
    if reserved is None or "this process has" in message.text:
        return None
    slack = MIB * 32
    fitting = [
        process
        for process in message.processes
        if reserved - slack <= process.bytes <= reserved + MAX_OUTSIDE_BYTES and _leaves_room(message)
    ]
    return min(fitting, key=lambda process: process.bytes, default=None)


def _leaves_room(message: OomMessage) -> bool:
    """Were every process another one, this one's reserved memory would have to fit beside them: it does not."""
    if message.capacity_bytes is None or message.free_bytes is None or message.reserved_bytes is None:
        return True
    used = message.capacity_bytes - message.free_bytes
    others = sum(other.bytes for other in message.processes)
    return others + message.reserved_bytes > used + GIB // 8
