"""What the rules of diagnosis found: causes with their bytes, and what was looked at and is no cause."""

from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """How a finding was established."""

    LIFETIME = "lifetime"
    PATTERN = "pattern"
    COUNTERFACTUAL = "counterfactual"


class Effect(StrEnum):
    """What a fix does to the training."""

    BITWISE = "bitwise"
    ROUNDING = "rounding"
    NOISE = "noise"
    MODEL = "model"


class Outcome(StrEnum):
    """What an examination came to, where it is not a finding."""

    REFUTED = "refuted"
    NOT_DECIDABLE = "not decidable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A change that removes a cause: `kind` is a slug (`detach`, `no-grad`), `text` what to write.

    `saves_bytes` is by how much the peak would fall, estimated from lifetimes and not simulated again; None: unknown.
    """

    kind: str
    text: str
    effect: Effect
    saves_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A named cause, or with `without_effect` a mechanism that does nothing for the peak.

    `bytes` is by how much the peak of the run would fall without it, 0 for what has no effect. `evidence` are sentences
    with figures and lines. `at` is the line that it is about, empty where there is none.
    """

    rule: str
    title: str
    bytes: int
    evidence: tuple[str, ...]
    fixes: tuple[Fix, ...]
    basis: Basis
    at: str = ""
    without_effect: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A rule that found nothing, and `why`: the figures that refute it, or what the record lacks."""

    rule: str
    outcome: Outcome
    why: str
