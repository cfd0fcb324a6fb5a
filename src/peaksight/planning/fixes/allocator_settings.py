"""Segments that grow: less memory that is reserved and does not fit what is asked for."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records import Action
from peaksight.records.findings import Effect

_EXPANDABLE = "expandable_segments:True"
# Of what is reserved, the part that has to be more than what is allocated.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    capture = situation.capture
    unused = capture.peak_reserved_bytes - capture.peak_allocated_bytes
    in_use = any(_EXPANDABLE in call.what for call in capture.calls if call.action is Action.SETTINGS)
    if unused > _MIN_SHARE * capture.peak_reserved_bytes and not in_use:
        yield FIX.candidate(
            "allocator",
            title=f"PYTORCH_CUDA_ALLOC_CONF={_EXPANDABLE}",
            cautions=("tensors on the card cannot be sent to other processes (CUDA IPC)",),
            settings=_EXPANDABLE,
        )


FIX = FixKind(
    slug="allocator-settings",
    title="settings of the caching allocator",
    effect=Effect.BITWISE,
    text=(
        "With expandable segments the allocator grows one segment where it would reserve another one, so that less of "
        "what is reserved goes unused. Changes addresses, no number."
    ),
    propose=_propose,
)
