"""Weights in bfloat16: half of everything that has their dtype, and another training."""

from collections.abc import Iterator

from peaksight.planning.decomposition import has_recorded
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

_HAS_BFLOAT16 = (8, 0)


def _propose(situation: Situation) -> Iterator[Proposal]:
    if not situation.optimizers or not all(row.dtype == "float32" for row in situation.optimizers):
        return
    why = _objection(situation)
    if why:
        yield FIX.not_applied(why)
        return
    yield FIX.candidate(
        "precision",
        cautions=(
            "an update of less than 1/256 of a weight is lost, as those of small learning rates are, and so is what "
            "the optimizer's averages gain by one step",
        ),
    )


def _objection(situation: Situation) -> str:
    """Why it is not to be made, empty if nothing speaks against it."""
    if situation.room.card.capability < _HAS_BFLOAT16:
        return "the card has no arithmetic in bfloat16"
    if situation.capture.world_size > 1:
        return "DistributedDataParallel and FSDP take the dtype of the weights before the model is called"
    if has_recorded(situation, "batch_norm"):
        return "running statistics of BatchNorm would be bfloat16 too, and stop to follow"
    return ""


FIX = FixKind(
    slug="bfloat16-weights",
    title="weights in bfloat16",
    effect=Effect.MODEL,
    text=(
        "A model is made bfloat16 when it is first called: weights, gradients, activations and the optimizer's state "
        "take half as much. Weights have 8 bits of precision then, and there is no copy of them in float32: an update "
        "of less than 1/256 of a weight is lost, as those of small learning rates are. It trains another model; "
        "autocast keeps the weights in float32. `--class model` tries it, and nothing chooses it unasked."
    ),
    propose=_propose,
)
