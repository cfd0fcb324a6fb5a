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

## Known misses
A card that is nearly full gives its cached segments back and tries again; here the card has no
limit, so that the replay reserves what the job would like to have.
"""

from dataclasses import replace

from peaksight.attribution import replay_capture
from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rule import Answer, Refuted, Rule
from peaksight.records import Action, AllocatorCall, Basis, Capture, Effect, Finding, Fix
from peaksight.units import format_bytes

SETTING = "expandable_segments:True"
# What the allocator always has beside what is allocated is below this part.
USUAL_SHARE = 0.15


def examine(evidence: Evidence) -> Answer:
    """The difference of the two peaks, and a second replay."""
    capture = evidence.capture
    unused = capture.peak_reserved_bytes - capture.peak_allocated_bytes
    told = (
        f"{format_bytes(unused)} of {format_bytes(capture.peak_reserved_bytes)} reserved were never allocated at once"
    )
    if unused < USUAL_SHARE * capture.peak_reserved_bytes:
        return Refuted(told)
    falls = capture.peak_reserved_bytes - _peak_with_setting(capture)
    if falls < USUAL_SHARE / 2 * capture.peak_reserved_bytes:
        return Refuted(f"{told}, and expandable segments would need {format_bytes(max(falls, 0))} less")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Reserved memory is in pieces: {told}",
            bytes=falls,
            evidence=(f"with expandable segments the same calls reserve {format_bytes(falls)} less at most",),
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


def _peak_with_setting(capture: Capture) -> int:
    """What the calls of `capture` reserve with expandable segments, on a card without a limit."""
    setting = AllocatorCall(tick=-1, action=Action.SETTINGS, what=SETTING)
    others = tuple(call for call in capture.calls if call.action is not Action.SETTINGS)
    return replay_capture(replace(capture, calls=(setting, *others)), limit_bytes=None).peak_reserved_bytes


RULE = Rule("fragmentation", examine, is_general=True)
