"""What is saved for the backward pass waits in host memory."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

_SLUG = "saved-on-host"


def _propose(situation: Situation) -> Iterator[Proposal]:
    if situation.saved:
        yield Candidate(
            kinds=(_SLUG,),
            title="saved activations in host memory",
            slots=("checkpoint",),
            effect=Effect.BITWISE,
            changes=(Change(kind=_SLUG),),
            cautions=("the host needs as much pinned memory as the card is relieved of",),
        )


FIX = FixKind(
    slug=_SLUG,
    title="activations in host memory",
    effect=Effect.BITWISE,
    text=(
        "Tensors that a backward pass needs are copied to pinned host memory and back (torch.autograd.graph's saved "
        "tensor hooks). The same numbers; costs their way over the link twice, which usually takes longer than to "
        "compute them again."
    ),
    propose=_propose,
)
