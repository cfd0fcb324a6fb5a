"""Fused attention in a model of transformers: the weights of attention are never all there."""

from collections.abc import Iterator

from peaksight.diagnosis.shapes import parsed
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect


def _propose(situation: Situation) -> Iterator[Proposal]:
    if not any(finding.rule == "materialised-attention" for finding in situation.report.findings or ()):
        return
    drops = any("Dropout" in a.saved_by and len(parsed(a.tensor).sizes) == 4 for a in situation.saved)
    yield FIX.candidate(
        "attention",
        title="scaled_dot_product_attention in place of eager attention",
        effect=Effect.NOISE if drops else Effect.ROUNDING,
        cautions=("dropout draws other masks inside of fused attention",) if drops else (),
        implementation="sdpa",
    )


FIX = FixKind(
    slug="fused-attention",
    title="fused attention",
    effect=Effect.NOISE,
    text=(
        "A model of transformers is switched to torch's scaled_dot_product_attention, whose fused kernels save nothing "
        "that grows with the square of the length. The same formula, rounded in another order; with dropout on the "
        "weights of attention other masks are drawn. Attention that a script writes out itself has to be replaced by "
        "hand. No weights of attention are returned then."
    ),
    propose=_propose,
)
