"""What all rules find in a jitted program of JAX."""

from peaksight.diagnosis.catalog import jax_rules
from peaksight.records.findings import Examined, Finding
from peaksight.records.jax_program import JaxProgram

# A finding of which a more exact one explains this part is not shown beside it.
REFINED_SHARE = 0.8


def examine_program(program: JaxProgram) -> tuple[tuple[Finding, ...], tuple[Examined, ...]]:
    """What the rules find in `program`, by the bytes that would go, and the causes that they refute."""
    answers = [rule.look(program) for rule in jax_rules().values()]
    found = [finding for answer in answers if isinstance(answer, tuple) for finding in answer]
    examined = [answer for answer in answers if not isinstance(answer, tuple)]
    shown = [finding for finding in found if not any(_says_more(other, finding) for other in found)]
    ranked = sorted(shown, key=lambda finding: (finding.without_effect, -finding.bytes, finding.rule))
    return tuple(ranked), tuple(examined)


def _says_more(other: Finding, finding: Finding) -> bool:
    refines = jax_rules()[other.rule].refines
    return finding.rule in refines and other.bytes >= REFINED_SHARE * finding.bytes > 0
