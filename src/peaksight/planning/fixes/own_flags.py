"""The script's own flags at other values, as `--vary` gives them: usually a smaller batch with accumulation."""

from collections.abc import Iterator

from peaksight.planning.decomposition import hazards_of, worst_hazard
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate

_SLUG = "own-flags"


def _propose(situation: Situation) -> Iterator[Proposal]:
    hazards = hazards_of(situation)
    for variant in situation.variants:
        yield Candidate(
            kinds=(_SLUG,),
            title=variant.words,
            slots=("batch",),
            effect=worst_hazard(hazards),
            arguments=variant.arguments,
            cautions=tuple(hazard.why for hazard in hazards),
        )


FIX = FixKind(
    slug=_SLUG,
    title="the script's own flags",
    effect=Effect.MODEL,
    text=(
        "Flags of the script at the values that `--vary` gives, those of one `--vary` changed together. A step has to "
        "see as many samples as before, or it is no plan."
    ),
    propose=_propose,
)
