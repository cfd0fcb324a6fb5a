"""Frozen parameters in the type that the function casts them to."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.jax_program import Change


def _propose(situation: Situation) -> Iterator[Proposal]:
    for program in situation.capture.programs:
        for what_if in program.with_change(Change.CAST_BEFORE):
            which = what_if.about[0] if len(what_if.about) == 1 else f"{len(what_if.about)} arguments"
            title = f"{which} of {program.name} cast before it"
            yield FIX.candidate(f"cast before {program.name}", title=title, program=program.name)


FIX = FixKind(
    slug="jax-cast-before",
    title="arguments in the type that the function casts them to",
    effect=Effect.BITWISE,
    text=(
        "Parameters that nothing trains are often kept in float32 and cast to bfloat16 in every step: both are there "
        "at the same time. Cast when they are made or loaded, on the host, only the smaller ones are. The same "
        "numbers, for nothing reads the larger ones. Until the first call they are simulated as the script makes them."
    ),
    propose=_propose,
)
