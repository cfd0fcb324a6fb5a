"""Segments that grow: less memory that is reserved and does not fit what is asked for."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records import Action
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

_SLUG = "allocator-settings"
_EXPANDABLE = "expandable_segments:True"
# Of what is reserved, the part that has to be more than what is allocated.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    capture = situation.capture
    unused = capture.peak_reserved_bytes - capture.peak_allocated_bytes
    in_use = any(_EXPANDABLE in call.what for call in capture.calls if call.action is Action.SETTINGS)
    if unused > _MIN_SHARE * capture.peak_reserved_bytes and not in_use:
        yield Candidate(
            kinds=(_SLUG,),
            title=f"PYTORCH_CUDA_ALLOC_CONF={_EXPANDABLE}",
            slots=("allocator",),
            effect=Effect.BITWISE,
            changes=(Change(kind=_SLUG, parameters={"settings": _EXPANDABLE}),),
            cautions=("tensors on the card cannot be sent to other processes (CUDA IPC)",),
        )


FIX = FixKind(
    slug=_SLUG,
    title="settings of the caching allocator",
    effect=Effect.BITWISE,
    text=(
        "With expandable segments the allocator grows one segment where it would reserve another one, so that less of "
        "what is reserved goes unused. Changes addresses, no number."
    ),
    propose=_propose,
)
