"""Autocast in bfloat16: half as much is saved of what matrix products and convolutions read."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

_HAS_BFLOAT16 = (8, 0)


def _propose(situation: Situation) -> Iterator[Proposal]:
    is_single = all(row.dtype == "float32" for row in situation.optimizers)
    has_half = any(a.tensor.startswith(("bfloat16", "float16")) for a in situation.saved)
    if not is_single or has_half or not situation.saved:
        return
    if situation.room.card.capability < _HAS_BFLOAT16:
        why = "the card has no arithmetic in bfloat16; float16 needs a GradScaler beside it"
        yield FIX.not_applied(why)
        return
    yield FIX.candidate("precision", cautions=("products are rounded to 8 bits",), dtype="bfloat16")


FIX = FixKind(
    slug="autocast",
    title="autocast in bfloat16",
    effect=Effect.NOISE,
    text=(
        "Models and losses run under torch.autocast: matrix products and convolutions read and give bfloat16, losses "
        "and normalisations stay float32, parameters and the optimizer's state too. What is saved between them takes "
        "half as much, and a copy of every weight is there during a pass. Faster on cards with tensor cores."
    ),
    propose=_propose,
)
