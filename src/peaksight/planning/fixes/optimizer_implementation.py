"""A fused or a for-loop optimizer: neither makes the temporaries of the size of all parameters that foreach makes."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

# Those of torch.optim with a fused implementation.
_FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}


def _propose(situation: Situation) -> Iterator[Proposal]:
    rows = situation.optimizers
    if not any(row.how == "foreach" for row in rows):
        return
    if all(row.kind in _FUSED for row in rows):
        yield FIX.candidate("optimizer", title="fused optimizer", implementation="fused")
    yield FIX.candidate("optimizer", title="for-loop optimizer", implementation="for-loop")


FIX = FixKind(
    slug="optimizer-implementation",
    title="another implementation of the optimizer",
    effect=Effect.ROUNDING,
    text=(
        "By default torch.optim updates all parameters at once (foreach), with temporaries of the size of all of them. "
        "`fused=True` updates them in one kernel without temporaries and is faster; `foreach=False` takes them one by "
        "one and is slower. The same formula, rounded in another order."
    ),
    propose=_propose,
)
