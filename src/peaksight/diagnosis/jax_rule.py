"""What a rule on a jitted program of JAX is, and the sentences that they share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, NotDecidable, Refuted
from peaksight.records.findings import Examined, Finding, Outcome
from peaksight.records.jax_program import JaxProgram, WhatIf
from peaksight.units import format_bytes

NUM_PATHS = 3


@dataclass(frozen=True, slots=True)
class JaxRule:
    """One cause: `slug` as `peaksight explain` knows it, and the `examine` of its file.

    What it `refines` are the slugs of rules whose finding says no more where this one explains most of it.
    """

    slug: str
    examine: Callable[[JaxProgram], Answer]
    refines: tuple[str, ...] = ()

    def look(self, program: JaxProgram) -> tuple[Finding, ...] | Examined:
        """The findings in `program`, or why there is none."""
        answer = self.examine(program)
        if isinstance(answer, Refuted):
            return Examined(rule=self.slug, outcome=Outcome.REFUTED, why=answer.why)
        if isinstance(answer, NotDecidable):
            return Examined(rule=self.slug, outcome=Outcome.NOT_DECIDABLE, why=answer.why)
        return tuple(answer)


def saved(program: JaxProgram, what_if: WhatIf) -> int:
    """By how many bytes the peak falls: as XLA plans both where it did, else as liveness says."""
    before, after, _ = _peaks(program, what_if)
    return before - after


def _peaks(program: JaxProgram, what_if: WhatIf) -> tuple[int, int, str]:
    if program.compiled_bytes is not None and what_if.compiled_bytes is not None:
        return program.compiled_bytes, what_if.compiled_bytes, "compiled again by XLA"
    return program.peak_bytes, what_if.peak_bytes, "simulated again by liveness"


def is_notable(program: JaxProgram, num_bytes: int) -> bool:
    """Whether this is enough of the peak to be a cause of it."""
    return num_bytes > 0 and num_bytes >= NOTABLE_SHARE * program.peak_bytes


def listed(paths: Sequence[str], num_paths: int = NUM_PATHS) -> str:
    """`a, b, c and 12 more`."""
    rest = len(paths) - num_paths
    return ", ".join(paths[:num_paths]) + (f" and {rest} more" if rest > 0 else "")


def simulated(program: JaxProgram, what_if: WhatIf) -> str:
    """The sentence that says what was simulated, and by which tier."""
    before, after, how = _peaks(program, what_if)
    return f"{how} with this change, its peak is {format_bytes(after)} instead of {format_bytes(before)}"


def share(program: JaxProgram, num_bytes: int) -> str:
    """`1.20 GiB (30 % of the peak)`."""
    return f"{format_bytes(num_bytes)} ({100 * num_bytes / max(program.peak_bytes, 1):.0f} % of the peak)"
