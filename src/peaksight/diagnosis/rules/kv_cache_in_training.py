"""# A key/value cache is kept in training

## What it finds
The model returned a cache of keys and values from a forward that is trained, and the script holds it
with the output. The finding says what the peak would be without it, which is often the same: then it
is listed as without effect.

## Why it costs memory
Generation reuses the keys and values of earlier tokens; training has no use for them. Attention saves
them for its backward anyway, so during the forward the cache is one more name for the same blocks and
costs nothing. It costs where they would be gone by then: with activation checkpointing, which keeps
none of them; where the cache copies them and the originals are saved too, as with one projection for
queries, keys and values; and after the backward pass, for as long as the output object lives, which
usually is until the next forward is through.

## Example
```python
for batch in loader:
    outputs = model(**batch)  # while it runs, `outputs` still has the last step's cache
    outputs.loss.backward()
```

## Fixes
- `model(..., use_cache=False)`, or `model.config.use_cache = False` before it is called, where the
  configuration is the one that the layers read.
- `del outputs` behind the backward pass.

## Known misses
A cache that the script does not hold when a backward pass begins or a step ends is not seen. Caches
are known by the names of transformers: `past_key_values`, `past_key_value`, `key_cache`, `value_cache`.
"""

from peaksight.diagnosis.evidence import Evidence, main_line, total_bytes
from peaksight.diagnosis.named_outputs import CACHE_NAMES, held_as, without_copies
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """Blocks with the name of a cache, of forwards that autograd records."""
    cached = [allocation for allocation in held_as(evidence, CACHE_NAMES) if allocation.grad_enabled]
    if not cached:
        return Refuted("no cache of keys and values is held when a backward pass begins or a step ends")
    saved = evidence.saved_by_freeing(without_copies(evidence, cached))
    has_effect = is_notable(evidence, saved)
    return [
        Finding(
            rule=RULE.slug,
            title=_title(cached, saved if has_effect else 0),
            bytes=saved if has_effect else 0,
            evidence=_sentences(evidence, cached),
            fixes=(_fix(saved),) if has_effect else (),
            basis=Basis.LIFETIME,
            at=main_line(cached),
            without_effect=not has_effect,
        )
    ]


def _title(cached: list[Allocation], saved: int) -> str:
    step = max(allocation.step for allocation in cached)
    size = format_bytes(total_bytes(a for a in cached if a.step == step))
    if saved:
        return f"The cache of keys and values, {size} a step, is kept in training"
    return f"The cache of keys and values, {size} a step, adds nothing to the peak: turning it off would not lower it"


def _sentences(evidence: Evidence, cached: list[Allocation]) -> tuple[str, ...]:
    hold = next(hold for hold in evidence.holds_of(cached) if not hold.by_graph)
    live = evidence.live_of(cached)
    needed = [allocation for allocation in live if allocation.saved_by and allocation.step == evidence.peak_step]
    copies = sum(end == copy.born for copy, end in without_copies(evidence, cached).items())
    copied = f", {copies} of them copies of what is saved anyway" if copies else ""
    return (
        f"`{hold.name}` in {hold.where} is one of {len(cached)} tensors of caches{copied}",
        f"{format_bytes(total_bytes(live))} of them are alive at the peak, of which autograd has saved "
        f"{format_bytes(total_bytes(needed))} for the backward of that step",
    )


def _fix(saved: int) -> Fix:
    return Fix(
        kind="no-kv-cache",
        text="use_cache=False in training, or delete the outputs behind the backward pass.",
        effect=Effect.BITWISE,
        saves_bytes=saved,
    )


RULE = Rule("kv-cache-in-training", examine, needs=(Need.OBSERVED, Need.BACKWARD), refines=("graph-kept",))
