"""What is saved for the backward pass waits in host memory."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect


def _propose(situation: Situation) -> Iterator[Proposal]:
    if situation.saved:
        caution = "the host needs as much pinned memory as the card is relieved of"
        yield FIX.candidate("checkpoint", title="saved activations in host memory", cautions=(caution,))


FIX = FixKind(
    slug="saved-on-host",
    title="activations in host memory",
    effect=Effect.BITWISE,
    text=(
        "Tensors that a backward pass needs are copied to pinned host memory and back (torch.autograd.graph's saved "
        "tensor hooks). The same numbers; costs their way over the link twice, which usually takes longer than to "
        "compute them again."
    ),
    propose=_propose,
)
