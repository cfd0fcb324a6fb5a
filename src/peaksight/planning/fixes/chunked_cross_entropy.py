"""The cross entropy of a language model in chunks of its positions."""

from collections.abc import Iterator

from peaksight.diagnosis.shapes import parsed
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

# Of the peak, what log-probabilities have to be.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    capture = situation.capture
    saved = [a for a in situation.saved if "LogSoftmax" in a.saved_by and len(parsed(a.tensor).sizes) == 2]
    if sum(a.allocated_bytes for a in saved) < _MIN_SHARE * capture.peak_allocated_bytes:
        return
    if any(backward.creates_graph for backward in capture.backwards):
        why = "a backward pass is differentiated again, which the loss in chunks cannot be"
        yield FIX.not_applied(why)
        return
    yield FIX.candidate("loss")


FIX = FixKind(
    slug="chunked-cross-entropy",
    title="cross entropy in chunks",
    effect=Effect.ROUNDING,
    text=(
        "The loss of logits over a large vocabulary keeps their log-probabilities for the backward pass, which makes "
        "two gradients of the same size. In chunks of the rows only the logits and one gradient of theirs are there; "
        "probabilities are computed again. The same formula, summed in another order. It works for "
        "`torch.nn.functional.cross_entropy` and what calls it, with indices of classes as targets, without weights or "
        "label smoothing."
    ),
    propose=_propose,
)
