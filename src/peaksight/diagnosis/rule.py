"""What a rule is: a cause with a name, what it needs to know, and an examination that finds or refutes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from peaksight.diagnosis.evidence import Evidence
from peaksight.records import Capture, Examined, Finding, Outcome

# A cause that holds less than this part of the peak is no cause of it.
NOTABLE_SHARE = 0.02
# A special cause with this part of the peak comes before the general ones.
LARGE_SHARE = 0.1
# What every model has, as scores and logits, comes before them only if it is most of what the peak is about.
NATURAL_SHARE = 0.3


class Need(StrEnum):
    """What a record must have for a rule to decide, in the words of the answer when it lacks it."""

    OBSERVED = "what the script's objects hold: only a simulated run shows it"
    STEPS = "a finished training step"
    TWO_STEPS = "two finished training steps"
    BACKWARD = "a backward pass"
    BACKWARD_OR_END = "a backward pass, or the end of the script"


@dataclass(frozen=True, slots=True)
class Refuted:
    """The cause is not there: `why` with figures, in one sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class NotDecidable:
    """The record does not tell: `why` names what is missing."""

    why: str


Answer = Sequence[Finding] | Refuted | NotDecidable


@dataclass(frozen=True, slots=True)
class Rule:
    """One cause: `slug` as `peaksight explain` knows it, the `examine` of its file, and what that `needs`.

    A rule that `is_general` says what every run has some of, as activations: it is the cause where no other one is, or
    none that has its `large_share` of the peak. What it `refines` are the slugs of rules whose finding says no more
    where this one explains most of it. The bytes of one `of_reserved` are no tensor's: they come behind those of the
    others, unless the run fits but for them.
    """

    slug: str
    examine: Callable[[Evidence], Answer]
    needs: tuple[Need, ...] = ()
    is_general: bool = False
    large_share: float = LARGE_SHARE
    of_reserved: bool = False
    refines: tuple[str, ...] = ()

    def look(self, evidence: Evidence) -> tuple[Finding, ...] | Examined:
        """The findings in `evidence`, or why there is none."""
        missing = next((need for need in self.needs if not _HAS[need](evidence.capture)), None)
        answer = NotDecidable(f"the record lacks {missing}") if missing else self.examine(evidence)
        if isinstance(answer, Refuted):
            return Examined(rule=self.slug, outcome=Outcome.REFUTED, why=answer.why)
        if isinstance(answer, NotDecidable):
            return Examined(rule=self.slug, outcome=Outcome.NOT_DECIDABLE, why=answer.why)
        return tuple(answer)


def is_notable(evidence: Evidence, num_bytes: int) -> bool:
    """Whether `num_bytes` less at the peak are enough for a cause of it."""
    return num_bytes >= NOTABLE_SHARE * evidence.peak_bytes


def _num_steps(capture: Capture) -> int:
    return sum(step.complete for step in capture.steps)


def _has_backward(capture: Capture) -> bool:
    return any(step.backward_began for step in capture.steps)


_HAS: dict[Need, Callable[[Capture], bool]] = {
    Need.OBSERVED: lambda capture: capture.observed,
    Need.STEPS: lambda capture: _num_steps(capture) >= 1,
    Need.TWO_STEPS: lambda capture: _num_steps(capture) >= 2,
    Need.BACKWARD: _has_backward,
    Need.BACKWARD_OR_END: lambda capture: _has_backward(capture) or capture.finished == "script",
}
