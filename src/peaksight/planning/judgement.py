"""Whether a simulated candidate is a plan, and else why not."""

from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, Outcome, Tried
from peaksight.units import format_bytes

# With so many the cache has settled: a run that gives memory back now and then in its first steps loses no time.
HARMLESS_RETRIES = 2


def judged(candidate: Candidate, outcome: Outcome, original: Outcome, limit_bytes: int) -> Tried:
    """`candidate` with its verdict: it fits where its reserved peak is no more than `limit_bytes`.

    One that sees other samples in a step than the `original` is no plan, unless it says that it changes the training.
    """
    verdict = objection(candidate, outcome, original) or _too_large(outcome, original, limit_bytes)
    return Tried(candidate=candidate, outcome=outcome, fits=not verdict, verdict=verdict)


def objection(candidate: Candidate, outcome: Outcome, original: Outcome) -> str:
    """Why it is no plan however small it is, empty where nothing but its size can speak against it."""
    if outcome.error:
        return outcome.error
    if outcome.without_effect:
        return f"{', '.join(outcome.without_effect)} changed nothing"
    samples = candidate.ranks * outcome.samples
    if samples != original.samples and candidate.effect is not Effect.MODEL:
        return f"a step would see {samples} samples in place of {original.samples}"
    return ""


def is_within(outcome: Outcome, limit_bytes: int) -> bool:
    """Whether the run comes by with `limit_bytes` and its extra ones, maybe by giving memory back a few times."""
    retries = outcome.retries_at_limit
    few = retries is not None and retries <= HARMLESS_RETRIES
    return few or outcome.reserved_bytes <= limit_bytes + outcome.extra_bytes


def _too_large(outcome: Outcome, original: Outcome, limit_bytes: int) -> str:
    retries = outcome.retries_at_limit
    if is_within(outcome, limit_bytes):
        return ""
    if retries is not None:
        return f"fits only by giving cached memory back {retries} times"
    saved = original.reserved_bytes - outcome.reserved_bytes
    missing = outcome.reserved_bytes - outcome.extra_bytes - limit_bytes
    if outcome.extra_bytes:
        return f"gives {format_bytes(outcome.extra_bytes)} more, {format_bytes(missing)} too little"
    if outcome.allocated_bytes >= original.allocated_bytes and saved <= 0:
        return f"saves nothing: the peak is in the {outcome.phase.value} of step {outcome.step}, at {outcome.at}"
    if saved <= 0:
        less = format_bytes(original.allocated_bytes - outcome.allocated_bytes)
        return f"{less} less are allocated, and as much is reserved as before"
    return f"saves {format_bytes(saved)}, {format_bytes(missing)} too little"
