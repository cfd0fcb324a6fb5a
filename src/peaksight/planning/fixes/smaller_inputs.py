"""Shorter or smaller inputs: another training, so that it is shown and never chosen."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

# Of the allocated peak, what activations have to hold for inputs to matter.
_MIN_SHARE = 0.1


def _propose(situation: Situation) -> Iterator[Proposal]:
    saved = sum(a.allocated_bytes for a in situation.saved)
    if saved > _MIN_SHARE * situation.capture.peak_allocated_bytes:
        yield FIX.not_applied(
            f"trains something else; {format_bytes(saved)} of activations depend on their size",
            "`--sweep` shows what a flag of the script for it brings, as in --sweep seq=512,384,256",
        )


FIX = FixKind(
    slug="smaller-inputs",
    title="shorter or smaller inputs",
    effect=Effect.MODEL,
    text=(
        "Activations grow with the length of a sequence or the area of an image, attention that is written out with "
        "its square. What a model learns from shorter or smaller ones is something else: nothing chooses that but you."
    ),
    propose=_propose,
)
