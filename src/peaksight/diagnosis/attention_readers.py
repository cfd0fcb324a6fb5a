"""Which streams of attention nobody reads the weights of: those can use a fused kernel, which makes none."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from peaksight.diagnosis.attention import AttentionCall, blocks_of, place_of
from peaksight.diagnosis.evidence import Evidence
from peaksight.records import Allocation, Phase, WeightsFact
from peaksight.units import format_bytes

NUM_STREAMS = 4
_CALLER = " < "


@dataclass(frozen=True)
class Stream:
    """The calls that one way through the script makes, in all steps; `at` is the line that tells it from others."""

    at: str
    calls: tuple[AttentionCall, ...]
    facts: tuple[WeightsFact, ...]

    @property
    def read_share(self) -> float:
        """Which part of the weights something reads, in the call that has most read."""
        return max(fact.read_share for fact in self.facts)

    @cached_property
    def blocks(self) -> tuple[Allocation, ...]:
        """Scores, probabilities and dropout masks, without gradients."""
        return tuple(block for call in self.calls for block in call.scores)


def streams(evidence: Evidence, calls: Sequence[AttentionCall]) -> tuple[Stream, ...]:
    """`calls` by the lines that made them; none where the record does not tell who reads."""
    facts = {fact.born: fact for fact in evidence.capture.weights}
    groups: dict[str, list[AttentionCall]] = defaultdict(list)
    for call in calls:
        if call.probabilities.born in facts:
            groups[facts[call.probabilities.born].callers].append(call)
    lines = _telling_lines(list(groups))
    found = (
        Stream(lines[callers], tuple(members), tuple(facts[call.probabilities.born] for call in members))
        for callers, members in groups.items()
    )
    return tuple(sorted(found, key=lambda stream: stream.read_share))


def unread_blocks(evidence: Evidence, calls: Sequence[AttentionCall], found: Sequence[Stream]) -> set[Allocation]:
    """What is not made without the weights that nobody reads, of recomputed calls those that are of no other stream."""
    unread = [call for stream in found if not stream.read_share for call in stream.calls]
    read = {place_of(call.probabilities) for stream in found if stream.read_share for call in stream.calls}
    places = {place_of(call.probabilities) for call in unread} - read
    again = [c for c in calls if c.probabilities.phase is Phase.BACKWARD and place_of(c.probabilities) in places]
    gradients = blocks_of(evidence, [c for c in unread if place_of(c.probabilities) in places] + again)
    return gradients.union(*(call.scores for call in unread)) if unread else set()


def in_words(found: Sequence[Stream]) -> Iterator[str]:
    """A sentence for each stream: nobody reads its weights, some of them, or all; those of two models may be one."""
    yield from dict.fromkeys(map(_sentence, found[:NUM_STREAMS]))


def _sentence(stream: Stream) -> str:
    first = stream.calls[0].probabilities
    what = f"the weights ({first.tensor}) of the calls from {stream.at}"
    if not stream.read_share:
        return f"nobody reads {what}: a fused kernel could make none"
    reader = next(fact.reader for fact in stream.facts if fact.read_share)
    part = "all" if stream.read_share > 0.99 else f"{100 * stream.read_share:.0f} %"
    return f"{part} of {what} are read, at {reader or 'a line of a library'}"


def fix_text(found: Sequence[Stream], saved: int) -> str:
    """What to do for the streams that nobody reads the weights of."""
    places = ", ".join(dict.fromkeys(stream.at for stream in found if not stream.read_share))
    return (
        "torch.nn.functional.scaled_dot_product_attention only where nobody reads the weights: the calls from "
        f"{places} ({format_bytes(saved)})."
    )


def _telling_lines(callers: Sequence[str]) -> Mapping[str, str]:
    """Of each way its innermost line that no other way has, else its innermost one."""
    split = {each: each.split(_CALLER) for each in callers}
    shared = [set(lines) for lines in split.values()]
    return {
        each: next((line for line in lines if sum(line in other for other in shared) == 1), lines[0])
        for each, lines in split.items()
    }
