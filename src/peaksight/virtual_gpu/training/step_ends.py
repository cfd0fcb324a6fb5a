"""What is seen of a step at its end."""

from collections.abc import Sequence

from peaksight.records import StepPeak
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.memory.left_behind import left_behind_bytes
from peaksight.virtual_gpu.training.stopping import StepEnd


def end_of_step(step: int, ledgers: Sequence[Ledger], peaks: Sequence[StepPeak]) -> StepEnd:
    """That of `step` on all cards, each with its ledger and its peak."""
    awaiting = sum(ledger.allocator.awaiting_free_bytes for ledger in ledgers)
    return StepEnd(
        peak_bytes=sum(peak.peak_allocated_bytes for peak in peaks) + awaiting,
        left_bytes=sum(left_behind_bytes(ledger.births, step) for ledger in ledgers),
        layout=_layout(ledgers) if any(peak.num_alloc_retries for peak in peaks) else None,
    )


def _layout(ledgers: Sequence[Ledger]) -> int:
    """Equal where the segments, from the lowest address on, have blocks of the same sizes, taken and free."""
    segments = (segment for ledger in ledgers for segment in ledger.allocator.segments())
    return hash(tuple(tuple((block.size, block.state) for block in segment.blocks) for segment in segments))
