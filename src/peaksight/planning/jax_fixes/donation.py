"""Arguments that a call replaces, donated to it."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.jax_program import Change, argument_of


def _propose(situation: Situation) -> Iterator[Proposal]:
    for program in situation.capture.programs:
        for what_if in program.with_change(Change.DONATE):
            names = list(dict.fromkeys(map(argument_of, what_if.about)))
            title = f"{program.name} donates {', '.join(names)}"
            yield FIX.candidate(f"donate {program.name}", title=title, program=program.name, arguments=names)


FIX = FixKind(
    slug="jax-donate",
    title="arguments that a call replaces, donated",
    effect=Effect.BITWISE,
    text=(
        "`jax.jit(step, donate_argnames=...)`: the next state is written into the memory of the last one, where else "
        "both are there. The same numbers. An array that was donated is gone: where the script reads it after the "
        "call, the simulation fails as the run would, and it is no plan."
    ),
    propose=_propose,
)
