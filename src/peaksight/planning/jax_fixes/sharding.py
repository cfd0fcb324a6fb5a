"""A batch, or batch and state, over several cards: simulated for 2, 4 and 8, never chosen."""

from collections.abc import Iterator
from dataclasses import replace

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.jax_program import JaxProgram

_CARDS = (2, 4, 8)
# As the capture names the tier where the CUDA plugin is missing.
LIVENESS = "liveness"


def _propose(situation: Situation) -> Iterator[Proposal]:
    steps = [program for program in situation.capture.programs if program.trains]
    if not steps or any(program.mesh_size > 1 for program in steps):
        return
    if situation.capture.versions.device_rules == LIVENESS:
        yield FIX.not_applied(
            "without XLA's compiler nothing says how values are divided",
            "install jax-cuda13-plugin and jax-cuda13-pjrt",
        )
        return
    if any(program.mesh_size for program in steps):
        for number in _CARDS:
            yield replace(FIX.candidate("cards", title=f"its own mesh over {number} cards"), changes=(), ranks=number)
        return
    for number in _CARDS:
        divides = all(_divides(program, number) for program in steps)
        for title, state in ((f"batch over {number} cards", False), (f"batch and state over {number} cards", True)):
            if divides:
                candidate = FIX.candidate("cards", title=title, num_devices=number, state=state)
                yield replace(candidate, ranks=number)
    if not all(_divides(program, _CARDS[0]) for program in steps):
        yield FIX.not_applied(f"{_CARDS[0]} does not divide the first axis of what a step takes in beside its state")


def _divides(program: JaxProgram, number: int) -> bool:
    """Whether some input of the step can be divided."""
    inputs = (each for each in program.arguments if not each.is_changed and not each.is_returned)
    return any(each.axes and each.axes[0] % number == 0 for each in inputs)


FIX = FixKind(
    slug="jax-sharding",
    title="sharded over cards (NamedSharding)",
    effect=Effect.ROUNDING,
    text=(
        "A `NamedSharding` on a mesh of N cards gives each an Nth of the batch, by its first axis, and with *state* "
        "an Nth of every array of the state, by the longest axis that N divides. XLA's compiler plans the program of "
        "one of N cards and what they send each other; the state comes sharded out of the function that makes it. The "
        "same training: sums over cards are rounded in another order. It is simulated for 2, 4 and 8 cards, and shown "
        "beside the plans for one. A script that has a mesh of all its devices is run on as many as it is."
    ),
    propose=_propose,
)
