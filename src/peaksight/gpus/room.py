"""How much of a card the allocator can reserve, and how sure that is."""

from dataclasses import dataclass

from peaksight.gpus.cards import Card, find_card
from peaksight.records import Approximation, Gpu
from peaksight.units import MIB

_MEASURED_CARD = "h100-80gb"

# The most that any of 37 training processes on an H100 held beyond its context and its reserved memory.
_LOADED_KERNELS_BYTES = 320 * MIB


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
        """What the allocator can reserve: the total less the context and the other processes, never below zero."""
        return max(0, self.card.total_bytes - self.context_bytes - self.others_bytes)

    @property
    def surely_usable_bytes(self) -> int:
        """What is left when the context is at its largest and CUDA has loaded as many kernels as ever seen."""
        return max(0, self.usable_bytes - self.context_margin_bytes - _LOADED_KERNELS_BYTES)

    @property
    def possibly_usable_bytes(self) -> int:
        """What is left when the context is at its smallest."""
        return self.usable_bytes + self.context_margin_bytes

    @property
    def gpu(self) -> Gpu:
        """The card as the report names it."""
        return Gpu(name=self.card.product_name, total_bytes=self.card.total_bytes, usable_bytes=self.usable_bytes)


def room_on(card: Card, *, others_bytes: int = 0) -> Room:
    """The room on `card`, of which other processes hold `others_bytes`.

    A context that is not measured is scaled from the H100's by multiprocessors and may be off by half.
    """
    if card.context_bytes is not None:
        return Room(card=card, context_bytes=card.context_bytes, context_margin_bytes=0, others_bytes=others_bytes)
    estimate = _estimated_context_bytes(card)
    return Room(card=card, context_bytes=estimate, context_margin_bytes=estimate // 2, others_bytes=others_bytes)


def _estimated_context_bytes(card: Card) -> int:
    measured = find_card(_MEASURED_CARD)
    assert measured.context_bytes is not None
    return measured.context_bytes * card.multi_processor_count // measured.multi_processor_count


def outside_the_allocator(room: Room) -> tuple[Approximation, ...]:
    """What a process holds beside the allocator's memory and is not simulated."""
    kernels = Approximation(
        slug="loaded-kernels", what="kernels and handles that CUDA loads as the job runs, outside PyTorch", bytes=None
    )
    if room.context_margin_bytes == 0:
        return (kernels,)
    what = f"CUDA context of {room.card.product_name}: not measured, scaled from the H100's"
    return (Approximation(slug="context-estimated", what=what, bytes=room.context_bytes), kernels)
