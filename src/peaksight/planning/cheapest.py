"""The smallest card on which a run fits, as it is or under a plan that was found for another card."""

from collections.abc import Callable, Iterator, Sequence

from peaksight.gpus import Room
from peaksight.planning.judgement import judged
from peaksight.planning.sweeping import judged_alone
from peaksight.records.proposals import Candidate, FixReport, Outcome, Tried
from peaksight.records.sweep import SweptValue

# Simulates a candidate on another card, of which it may reserve so many bytes.
SimulateOn = Callable[[Candidate, Room, int], Outcome]


def cheapest(found: FixReport, rooms: Sequence[Room], share: float, simulate: SimulateOn) -> Iterator[SweptValue]:
    """What was tried on `rooms`, the smallest first, to the first that fits, which is the last.

    `found` has plans for another card: where the fastest of those that should fit does not, as kernels of this card
    need more, the smallest is tried. A plan may reserve `share` of what is usable.
    """
    for room in sorted(rooms, key=lambda room: (room.usable_bytes, room.card.bandwidth_bytes_per_second)):
        limit_bytes = round(room.usable_bytes * share)
        for candidate in _likely(found, limit_bytes):
            tried = judged_alone(candidate, simulate(candidate, room, limit_bytes), limit_bytes)
            yield SweptValue(value=room.card.name, gpu=room.card.name, limit_bytes=limit_bytes, tried=tried)
            if tried.fits:
                return


def _likely(found: FixReport, limit_bytes: int) -> list[Candidate]:
    """The fastest plan that should fit, and the smallest."""
    original = found.original.outcome
    everything = (found.original, *found.tried)
    plans: list[Tried] = [judged(each.candidate, each.outcome, original, limit_bytes) for each in everything]
    fitting = [each for each in plans if each.fits]
    if not fitting:
        return []
    fastest = min(fitting, key=lambda each: each.outcome.cost)
    smallest = min(fitting, key=lambda each: each.outcome.reserved_bytes)
    return [fastest.candidate] if fastest is smallest else [fastest.candidate, smallest.candidate]
