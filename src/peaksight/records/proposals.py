"""What `fix` found: plans with what they came to in simulation, and fixes that do not help."""

from dataclasses import dataclass

from peaksight.records.certificate import Certificate
from peaksight.records.findings import Effect
from peaksight.records.phases import Phase
from peaksight.records.plan import Change, Plan

FIX_SCHEMA = "peaksight.fix/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something to try, by itself or joined of several: `kinds` are the fixes that it consists of.

    Of each of `slots` a plan has one candidate at most: there is one batch size, one implementation of the optimizer.
    `cautions` are sentences on what has to hold for `effect` to be true. `arguments` are the script's in place of its
    own, None where they stay. It takes `ranks` processes, each with a card.
    """

    kinds: tuple[str, ...]
    title: str
    slots: tuple[str, ...]
    effect: Effect
    changes: tuple[Change, ...] = ()
    arguments: tuple[str, ...] | None = None
    cautions: tuple[str, ...] = ()
    ranks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplied:
    """A fix that is not tried by itself: `why`, and `advice` on what to write where that is known (text or a diff)."""

    kind: str
    title: str
    effect: Effect
    why: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePeak:
    """The most that was allocated in one phase."""

    phase: Phase
    allocated_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the simulation of a candidate came to, on a card without a limit.

    `at`, `phase` and `step` are those of the peak. `seconds` is the predicted time of one optimizer step, None where
    none was complete. An optimizer step sees `samples` in `passes` calls of the model, and there are `steps_per_epoch`
    full ones in a reading of the data, 0 where that is not known. `parameters` counts the numbers of the model's
    parameters, and those that are trained. `steady_bytes` are the lowest
    and the highest allocated, then reserved, peak of the complete steps after the first. `retries_at_limit` is how
    often the allocator had to give memory back to stay below the limit that was asked for, None where it failed or
    was not tried. `without_effect` are the kinds of changes that did nothing; `error` says why there is no answer.

    Under JAX no time is predicted, and `operations` are the floating-point operations of a step's products and
    convolutions, on all cards. `extra_bytes` is by how much its pool is larger than that of the run as it is, and
    `tier` whose plan of the memory it is: XLA's, or that of liveness on the jaxpr.
    """

    allocated_bytes: int = 0
    reserved_bytes: int = 0
    phases: tuple[PhasePeak, ...] = ()
    at: str = ""
    phase: Phase = Phase.OTHER
    step: int = 0
    seconds: float | None = None
    samples: int = 0
    passes: int = 0
    steps_per_epoch: int = 0
    steady_bytes: tuple[int, int, int, int] = (0, 0, 0, 0)
    parameters: tuple[int, int] = (0, 0)
    retries_at_limit: int | None = None
    without_effect: tuple[str, ...] = ()
    error: str = ""
    operations: int = 0
    extra_bytes: int = 0
    tier: str = ""

    @property
    def cost(self) -> float:
        """What a step takes, for comparison with another of the same search: seconds, else operations."""
        return self.seconds if self.seconds is not None else float(self.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate with its outcome; `fits` is below the limit of the search, `verdict` a sentence on why it is no plan,
    empty for one that is.
    """

    candidate: Candidate
    outcome: Outcome
    fits: bool
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one fix of the plan does in bytes of the reserved peak: `alone`, and `left_out` of the plan.

    Each is the outcome of a simulation: the peak with this fix only, and that of the plan without it.
    """

    title: str
    alone: Outcome
    left_out: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What could still break the plan, with its bytes where they are known."""

    title: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How a person makes a change in the script: in `words`, and `at` which lines (`train.py:27`) if they are known.

    `in_diff` says that the diff of the answer makes it.
    """

    kind: str
    words: str
    at: str = ""
    in_diff: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FixReport:
    """The answer of `fix`.

    `limit_bytes` is what the reserved memory of a plan may come to: `usable_bytes` less the head room. `original` is
    the run as it is. `best` is None where no plan fits; `smallest` is then the plan that came nearest. `runners_up`
    fit too, the fastest first; `next_plans` are for when the head room proves too small. `tried` has all that was
    simulated, `not_applied` what was not tried. `allowed` is the most that a plan may change. `written` is how a person
    makes the changes of the best plan, `diff` the unified diff of those that are arguments of a call in the script.
    `on_more_cards` is what takes several of the card, which no plan does.
    `certificate` is what running it with and without the plan came to, None where that was not asked for.
    """

    schema: str = FIX_SCHEMA
    argv: tuple[str, ...]
    gpu: str
    torch: str
    usable_bytes: int
    limit_bytes: int
    allowed: Effect
    original: Tried
    best: Tried | None
    smallest: Tried
    runners_up: tuple[Tried, ...]
    next_plans: tuple[Tried, ...]
    parts: tuple[Part, ...]
    tried: tuple[Tried, ...]
    not_applied: tuple[NotApplied, ...]
    risks: tuple[Risk, ...]
    plan: Plan | None
    seconds: float
    written: tuple[Written, ...] = ()
    on_more_cards: tuple[Tried, ...] = ()
    diff: str = ""
    certificate: Certificate | None = None
