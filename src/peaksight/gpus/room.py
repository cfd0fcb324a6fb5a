"""How much of a card one process can take, and how sure that is."""

from dataclasses import dataclass

from peaksight.gpus.cards import Card
from peaksight.records import Approximation, Gpu
from peaksight.units import KIB, MIB

# The line through the contexts that 135 OutOfMemoryErrors of 23 cards show, true to 64 MiB in nine of ten: what the
# driver holds for each thread that can be resident, and a constant.
_CONTEXT_BYTES_PER_10_THREADS = 18 * KIB
_CONTEXT_CONSTANT_BYTES = 43 * MIB
_MARGIN_BYTES = 64 * MIB
# No context of a slice is among them.
_SLICE_MARGIN_BYTES = 128 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The memory of one card as one process finds it.

    `context_bytes` is the CUDA context, true to `context_margin_bytes` either way (zero where it is measured);
    `others_bytes` belongs to other processes.
    """

    card: Card
    context_bytes: int
    context_margin_bytes: int
    others_bytes: int

    @property
    def usable_bytes(self) -> int:
        """What this process can take beyond its context: never below zero."""
        return max(0, self.card.total_bytes - self.context_bytes - self.others_bytes)

    @property
    def surely_usable_bytes(self) -> int:
        """What is left when the context is at its largest."""
        return max(0, self.usable_bytes - self.context_margin_bytes)

    @property
    def possibly_usable_bytes(self) -> int:
        """What is left when the context is at its smallest."""
        return self.usable_bytes + self.context_margin_bytes

    def free_bytes(self, taken_bytes: int) -> int:
        """What `cudaMemGetInfo` calls free when this process has taken `taken_bytes` beyond its context."""
        return max(0, self.usable_bytes - taken_bytes)

    @property
    def gpu(self) -> Gpu:
        """The card as the report names it."""
        return Gpu(name=self.card.product_name, total_bytes=self.card.total_bytes, usable_bytes=self.usable_bytes)


def room_on(card: Card, *, others_bytes: int = 0) -> Room:
    """The room on `card`, of which other processes hold `others_bytes`; a context that nobody measured is estimated."""
    measured = card.context_bytes
    return Room(
        card=card,
        context_bytes=_estimated_context_bytes(card) if measured is None else measured,
        context_margin_bytes=_context_margin_bytes(card),
        others_bytes=others_bytes,
    )


def _estimated_context_bytes(card: Card) -> int:
    threads = card.multi_processor_count * card.threads_per_multi_processor
    return _CONTEXT_BYTES_PER_10_THREADS * threads // 10 + _CONTEXT_CONSTANT_BYTES


def _context_margin_bytes(card: Card) -> int:
    if card.context_bytes is not None:
        return 0
    return _MARGIN_BYTES if card.mig_profile is None else _SLICE_MARGIN_BYTES


def outside_the_allocator(room: Room) -> tuple[Approximation, ...]:
    """What is not known of the memory that a process holds beside the allocator's: the context, unless measured."""
    if room.context_margin_bytes == 0:
        return ()
    margin = room.context_margin_bytes // MIB
    what = f"CUDA context of {room.card.product_name}: an estimate, taken as true to {margin} MiB"
    return (Approximation(slug="context-estimated", what=what, bytes=room.context_bytes),)
