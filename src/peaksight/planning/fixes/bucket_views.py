"""Gradients as views of the buckets of DistributedDataParallel."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

_SLUG = "bucket-views"
_TITLE = "gradient_as_bucket_view=True"


def _propose(situation: Situation) -> Iterator[Proposal]:
    if any(finding.rule == "gradient-buckets" for finding in situation.report.findings or ()):
        yield Candidate(
            kinds=(_SLUG,),
            title=_TITLE,
            slots=("buckets",),
            effect=Effect.BITWISE,
            changes=(Change(kind=_SLUG),),
            cautions=("gradients cannot be detached in place (`detach_()`)",),
        )


FIX = FixKind(
    slug=_SLUG,
    title="gradients in the buckets of DistributedDataParallel",
    effect=Effect.BITWISE,
    text=(
        "DistributedDataParallel reduces gradients in buckets, to which each gradient is copied. As views of the "
        "buckets the gradients take no memory of their own. The same numbers, without the copies."
    ),
    propose=_propose,
)
