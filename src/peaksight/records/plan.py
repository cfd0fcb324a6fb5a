"""A plan: changes to a training run that are applied from outside, and what to expect of the run then."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from peaksight.records.findings import Effect

PLAN_SCHEMA = "peaksight.plan/1"

# How much each effect changes the training, the least first.
STRICTNESS = (Effect.BITWISE, Effect.ROUNDING, Effect.NOISE, Effect.MODEL)


def is_as_strict(effect: Effect, allowed: Effect) -> bool:
    """Whether a change with `effect` may be made where `allowed` is the most that may be changed."""
    return STRICTNESS.index(effect) <= STRICTNESS.index(allowed)


def worst_effect(effects: tuple[Effect, ...]) -> Effect:
    """That of several changes together: the one that changes the training most, bitwise of none."""
    return max(effects, key=STRICTNESS.index, default=Effect.BITWISE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that a plan changes: `kind` names the overlay that makes it, `parameters` are what it takes (JSON)."""

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a run under the plan should show; predicted, in bytes and seconds.

    `peak_allocated_bytes` and `peak_reserved_bytes` are the lowest and the highest peak of a steady step. `seconds` is
    the time of one optimizer step, `slow_down` its ratio to that of the run without the plan, both None where no time
    was predicted. `samples` is how many an optimizer step sees and `micro_batches` in how many passes, 0 where it is
    not known; `steps_per_epoch` are its full steps in one reading of the data, 0 too where that is not known.
    `parameters` counts the numbers in the model's parameters, `trainable` those that an optimizer trains. `retries` is
    how often the allocator has to give memory back to go on. `absent_warnings` are texts of which none may be in a
    warning: each would say that a change does not do what it is meant to.
    """

    peak_allocated_bytes: tuple[int, int]
    peak_reserved_bytes: tuple[int, int]
    seconds: float | None = None
    slow_down: float | None = None
    samples: int = 0
    micro_batches: int = 0
    steps_per_epoch: int = 0
    parameters: int = 0
    trainable: int = 0
    retries: int = 0
    absent_warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What `fix --apply` writes and `run --plan` reads.

    It is for the script `argv` whose files have the digest `sources`, made with these releases of peaksight and
    torch for the card `gpu`. `arguments` are the script's in place of those in `argv`. `effect` is what all
    changes together do to the training.
    """

    schema: str = PLAN_SCHEMA
    argv: tuple[str, ...]
    sources: str
    peaksight: str
    torch: str
    gpu: str
    changes: tuple[Change, ...] = ()
    arguments: tuple[str, ...] | None = None
    effect: Effect = Effect.BITWISE
    expected: Expectation | None = None
