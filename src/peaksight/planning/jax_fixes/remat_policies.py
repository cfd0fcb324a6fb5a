"""Other policies of `jax.checkpoint`, where the program has one or a loop that could have one."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.jax_program import JaxProgram

# Of `jax.checkpoint_policies`, from the one that computes nothing again to the one that keeps nothing.
POLICIES = ("everything_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable", "nothing_saveable")


def can_recompute(program: JaxProgram) -> bool:
    """Whether a policy would change the program: it has a checkpoint, or a scan that saves stacks."""
    return bool(program.remats) or any(scan.residuals for scan in program.scans)


def _propose(situation: Situation) -> Iterator[Proposal]:
    programs = [program for program in situation.capture.programs if can_recompute(program)]
    if not programs:
        return
    policies = POLICIES if any(program.remats for program in programs) else POLICIES[1:]
    for policy in policies:
        yield FIX.candidate("remat", title=f"jax.checkpoint with {policy}", policy=policy)


FIX = FixKind(
    slug="jax-remat-policy",
    title="another policy of jax.checkpoint",
    effect=Effect.ROUNDING,
    text=(
        "What a policy of `jax.checkpoint_policies` does not save is computed again in the backward pass. Each of four "
        "takes the place of that of every `jax.checkpoint`, and goes around the body of every `jax.lax.scan` that has "
        "none. The same formulas; XLA may round what it fuses otherwise in another order. What a policy costs is told "
        "in operations: those of products and convolutions, counted in the program."
    ),
    propose=_propose,
)
