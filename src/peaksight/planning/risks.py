"""What could still break a plan: what the simulation did not see, with its bytes where they are known."""

from collections.abc import Iterator

from peaksight.planning.situation import Situation
from peaksight.records.proposals import Outcome, Risk


def risks_of(situation: Situation, outcome: Outcome) -> tuple[Risk, ...]:
    """For a plan with `outcome`."""
    return tuple(_risks(situation, outcome))


def _risks(situation: Situation, outcome: Outcome) -> Iterator[Risk]:
    if situation.is_under_jax:
        for each in situation.capture.not_simulated:
            if each.at_most_bytes:
                yield Risk(title=each.what, bytes=each.at_most_bytes)
        return
    unused = outcome.reserved_bytes - outcome.allocated_bytes
    yield Risk(title="fragmentation: reserved and not allocated at the peak", bytes=unused)
    if len({batch.shapes for batch in situation.capture.batches}) > 1:
        yield Risk(title="batches differ in size: run with --worst-batch for the longest")
    for place in situation.report.not_reached or ():
        yield Risk(title=f"not reached, and may use the card: {place}")
