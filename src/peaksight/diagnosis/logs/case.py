"""What a rule is handed, and what it may answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from peaksight.diagnosis.logs.accounts import Account, account_of
from peaksight.diagnosis.logs.shapes import fits
from peaksight.records import Cause, Clue, Confidence, Fit, LogEvidence, Memory, OomMessage, Phase


@dataclass(frozen=True)
class Case:
    """A log, and the message that ended the run: what every rule looks at. `message` is None if none did."""

    evidence: LogEvidence
    message: OomMessage | None

    @cached_property
    def account(self) -> Account | None:
        """Who holds the card."""
        return account_of(self.message) if self.message else None

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        """Tensors of the requested size."""
        return fits(self.evidence, self.message) if self.message else ()

    @property
    def failures(self) -> list[OomMessage]:
        """The messages that ended something."""
        return [message for message in self.evidence.messages if not message.is_warning]

    def clue(self, *slugs: str) -> Clue | None:
        """The first clue of one of these kinds."""
        return next((clue for slug in slugs for clue in self.evidence.clues if clue.slug == slug), None)

    def of_dialect(self, *names: str) -> list[OomMessage]:
        """The messages in one of these dialects."""
        return [message for message in self.evidence.messages if message.dialect.startswith(names)]

    @property
    def phase(self) -> Phase | None:
        """The phase in which it failed."""
        return self.message.phase if self.message else None

    @property
    def is_prose(self) -> bool:
        """Whether the text is somebody's explanation, and not a log."""
        return bool(self.evidence.claim_checks)

    @property
    def is_device(self) -> bool:
        """Whether it is the memory of a device that ran out, or nobody says which."""
        return self.message is None or self.message.memory in {Memory.DEVICE, Memory.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause and how specific it is: of two with the same confidence, the more specific comes first."""

    cause: Cause
    weight: int = 0


Rule = Callable[[Case], Iterator[Finding]]

_ORDER = {Confidence.CERTAIN: 0, Confidence.LIKELY: 1, Confidence.POSSIBLE: 2}


def ranked(findings: list[Finding]) -> tuple[Cause, ...]:
    """The causes, likeliest first, each kind once."""
    ordered = sorted(findings, key=lambda finding: (_ORDER[finding.cause.confidence], -finding.weight))
    kinds: dict[str, Cause] = {}
    for finding in ordered:
        kinds.setdefault(finding.cause.kind, finding.cause)
    return tuple(kinds.values())


def quoted(clue: Clue) -> str:
    """The line of a clue as evidence."""
    return f"line {clue.line}: {clue.quote}"
