"""A failure as reports tell it: with what was alive."""

from peaksight.attribution.live_set import live_set
from peaksight.records import Capture, Failure, OutOfMemory


def out_of_memory(capture: Capture, failure: Failure) -> OutOfMemory:
    """`failure` of `capture`."""
    return OutOfMemory(
        message=failure.message,
        requested_bytes=failure.requested_bytes,
        allocated_bytes=failure.allocated_bytes,
        reserved_bytes=failure.reserved_bytes,
        step=failure.step,
        phase=failure.phase,
        at=failure.source,
        backward_at=failure.backward_source or None,
        free_bytes=failure.free_bytes,
        live=live_set(capture, failure.tick),
        device=capture.device,
        rank=capture.rank,
    )
