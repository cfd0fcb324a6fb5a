"""One checkpoint around the whole loss, where the program has none."""

from collections.abc import Iterator

from peaksight.planning.jax_fixes.remat_policies import can_recompute
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

# With one around everything, saving nothing would save nothing: all of it would be computed again at once.
POLICIES = ("dots_saveable", "dots_with_no_batch_dims_saveable")


def _propose(situation: Situation) -> Iterator[Proposal]:
    programs = situation.capture.programs
    if any(program.trains for program in programs) and not any(map(can_recompute, programs)):
        for policy in POLICIES:
            yield FIX.candidate("remat", title=f"the loss under jax.checkpoint with {policy}", policy=policy)


FIX = FixKind(
    slug="jax-checkpoint-loss",
    title="the loss under jax.checkpoint",
    effect=Effect.ROUNDING,
    text=(
        "Where a function has no checkpoint and no scan, `jax.checkpoint(loss, policy=...)` keeps the results of "
        "products for the backward pass and computes what is between them again. The same formulas; XLA may round "
        "what it fuses otherwise in another order. It is put around what `jax.grad` and `jax.value_and_grad` "
        "differentiate. Where layers are written out, a checkpoint around each saves more: that takes an edit of the "
        "model (`flax.linen.remat`, `jax.checkpoint`), which is not simulated."
    ),
    propose=_propose,
)
