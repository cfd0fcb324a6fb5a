"""Checkpoints that XLA undoes, kept."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.jax_program import Change


def _propose(situation: Situation) -> Iterator[Proposal]:
    for program in situation.capture.programs:
        if program.with_change(Change.KEEP_APART):
            title = f"prevent_cse=True for the checkpoints of {program.name}"
            yield FIX.candidate(f"apart {program.name}", title=title, program=program.name)


FIX = FixKind(
    slug="jax-prevent-cse",
    title="checkpoints kept apart from what they repeat",
    effect=Effect.ROUNDING,
    text=(
        "With `prevent_cse=False` outside of a loop XLA finds that what a checkpoint computes again is there already, "
        "merges the two, and everything is saved. `prevent_cse=True`, which is the default of `jax.checkpoint`, keeps "
        "them apart. The same formulas; XLA may round what it fuses otherwise in another order."
    ),
    propose=_propose,
)
