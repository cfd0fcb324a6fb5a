"""# Emptying the cache does not lower the peak

## What it finds
Calls of `torch.cuda.empty_cache()`. The run is repeated on the same card without them: where as much
is reserved at most, they did nothing for the peak.

## Why it costs memory
It costs none, and saves none of what tensors hold: it gives back to the driver what the caching
allocator keeps and no tensor uses. The allocator does the same by itself before it raises an
out-of-memory error. What it costs is time: every call waits for the card, and the memory is asked for
again in the next step.

## Example
```python
for batch in loader:
    step(batch)
    torch.cuda.empty_cache()  # the next step reserves it all again
```

## Fixes
- Remove the calls: bitwise the same, and faster. Where several processes share a card, they matter.

## Known misses
Between two stages with blocks of very different sizes a call can lower what is reserved: then it is
told as refuted, with the bytes.
"""

from collections import Counter

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, Refuted, Rule
from peaksight.records import Action, Basis, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """The same run with and without the calls."""
    capture = evidence.capture
    calls = [call for call in capture.calls if call.action is Action.EMPTY_CACHE and call.what]
    if not calls:
        return Refuted("torch.cuda.empty_cache() is never called")
    reserved, without = evidence.reserved.by_emptying()
    if without > reserved:
        saved = format_bytes(without - reserved)
        return Refuted(f"without its calls {saved} more would be reserved at the peak; allocated is the same")
    (at, _), *_ = Counter(call.what for call in calls).most_common()
    return [
        Finding(
            rule=RULE.slug,
            title=f"torch.cuda.empty_cache(), called {_times(len(calls))}, {_does(reserved - without, reserved)}",
            bytes=0,
            evidence=(
                f"{format_bytes(reserved)} are reserved at most with its calls, {format_bytes(without)} without them",
                f"{format_bytes(evidence.peak_bytes)} are allocated either way: it frees what no tensor holds",
            ),
            fixes=(Fix(kind="remove-empty-cache", text="Remove the calls.", effect=Effect.BITWISE, saves_bytes=0),),
            basis=Basis.COUNTERFACTUAL,
            at=at,
            without_effect=True,
        )
    ]


def _does(more: int, reserved: int) -> str:
    if more < NOTABLE_SHARE * reserved:
        return "does not lower the peak"
    return f"does not lower the peak: {format_bytes(more)} more are reserved with it than without"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


RULE = Rule("empty-cache-no-effect", examine)
