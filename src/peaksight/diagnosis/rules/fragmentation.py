"""# Reserved memory is much larger than what is allocated

## What it finds
The allocator has reserved much more than was ever allocated at once, and expandable segments would
need less: the same calls, repeated through the simulated allocator with that setting, show how
much.

## Why it costs memory
The allocator takes segments from the card and cuts blocks out of them. A segment goes back, or
serves another size, only as a whole: a small block that lives on keeps all of it. Batches of ever
other lengths leave segments that fit none of the next.

## Example
```python
for batch in loader:  # lengths 310, 498, 512, 377: each new maximum needs new segments
    model(batch).loss.backward()
```

## Fixes
- `PYTORCH_ALLOC_CONF=expandable_segments:True` (`PYTORCH_CUDA_ALLOC_CONF` before 2.9): bitwise the
  same.
- Pad to a few lengths, the longest first.
- Make what keeps a segment (its lines are in the evidence) before the loop, or let go of it earlier.

## Known misses
A card that is nearly full gives its cached segments back and tries again; here the card has no
limit, so that the replay reserves what the job would like to have. These bytes are no tensor's: the
finding comes behind those on tensors, unless the run would fit but for it.
"""

from collections.abc import Iterator

from peaksight.attribution.fragmentation import named
from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.reserved import SETTING, Reserved
from peaksight.diagnosis.rule import Answer, Refuted, Rule
from peaksight.records import Basis, Effect, Finding, Fix
from peaksight.units import MIB, format_bytes

# What the allocator always has beside what is allocated is below this part, or a few of its segments of 20 MiB.
USUAL_SHARE = 0.15
USUAL_BYTES = 100 * MIB
NUM_PINS = 3


def examine(evidence: Evidence) -> Answer:
    """The difference of the two peaks, and further replays."""
    reserved = evidence.reserved
    told = (
        f"{format_bytes(reserved.unused_bytes)} of {format_bytes(reserved.peak_bytes)} reserved were never allocated "
        "at once"
    )
    if reserved.unused_bytes < max(USUAL_SHARE * reserved.peak_bytes, USUAL_BYTES):
        return Refuted(told)
    falls = reserved.expandable_saves_bytes
    if falls < USUAL_SHARE / 2 * reserved.peak_bytes:
        return Refuted(f"{told}, and expandable segments would need {format_bytes(max(falls, 0))} less")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Reserved memory is in pieces: {told}",
            bytes=falls,
            evidence=(
                f"with expandable segments the same calls reserve {format_bytes(falls)} less at most",
                *_left_by_steps(reserved),
                *_pinned(reserved),
            ),
            fixes=(
                Fix(
                    kind="expandable-segments",
                    text=f"PYTORCH_ALLOC_CONF={SETTING}",
                    effect=Effect.BITWISE,
                    saves_bytes=falls,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
        )
    ]


def _left_by_steps(reserved: Reserved) -> Iterator[str]:
    """How much is in segments that no later step can use."""
    left = reserved.left_by_steps_bytes
    if left >= USUAL_SHARE / 2 * reserved.peak_bytes:
        yield f"{format_bytes(left)} are segments of earlier steps: an empty cache before each step would spare them"


def _pinned(reserved: Reserved) -> Iterator[str]:
    """The lines that keep segments which are partly free."""
    for pin in reserved.pins[:NUM_PINS]:
        if pin.kept_bytes >= USUAL_BYTES / 5:
            alone = f", {format_bytes(pin.alone_bytes)} of it alone" if pin.alone_bytes else ""
            yield (
                f"{format_bytes(pin.held_bytes)} of {named(pin)} keep {format_bytes(pin.kept_bytes)} free "
                f"in their segments{alone}"
            )


RULE = Rule("fragmentation", examine, is_general=True, of_reserved=True)
