"""Gradients as views of the buckets of DistributedDataParallel."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect


def _propose(situation: Situation) -> Iterator[Proposal]:
    if any(finding.rule == "gradient-buckets" for finding in situation.report.findings or ()):
        caution = "gradients cannot be detached in place (`detach_()`)"
        yield FIX.candidate("buckets", title="gradient_as_bucket_view=True", cautions=(caution,))


FIX = FixKind(
    slug="bucket-views",
    title="gradients in the buckets of DistributedDataParallel",
    effect=Effect.BITWISE,
    text=(
        "DistributedDataParallel reduces gradients in buckets, to which each gradient is copied. As views of the "
        "buckets the gradients take no memory of their own. The same numbers, without the copies."
    ),
    propose=_propose,
)
