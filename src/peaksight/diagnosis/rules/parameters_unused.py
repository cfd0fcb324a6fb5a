"""# Parameters that no step uses

## What it finds
Parameters that an optimizer was given, and that had no gradient at any of its steps: no forward uses them,
or nothing of it reaches the loss. It is said where they are a tenth of the model, or count at the peak.

## Why it costs memory
A module that is made in `__init__` is on the card for the whole run, whether `forward` calls it or not.
Its parameters are moved, saved and loaded with the model; gradients and states of the optimizer they have
none. In distributed training they stop the reducer, or take their place in its buckets.

## Example
```python
self.old_encoder = Encoder(width)  # left over: forward calls self.encoder only
self.encoder = StateSpaceEncoder(width)
```

## Fixes
- Do not make the module, or make it only where a setting asks for it: bitwise the same training, if
  random weights are drawn after it in the same order. Checkpoints lose its entries.

## Known misses
Parameters whose gradient is zero rather than `None`. Where a part is used from a later step on, the steps
that were simulated do not show it.
"""

from collections import Counter

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, Need, Refuted, Rule
from peaksight.records import Basis, Effect, Finding, Fix
from peaksight.units import format_bytes

# Less of the peak is worth a word where it is this part of the model.
NOTABLE_SHARE_OF_MODEL = 0.1
NUM_MODULES = 3


def examine(evidence: Evidence) -> Answer:
    """What is idle of the parameters of all modules that were called, and in which of them."""
    modules = evidence.capture.modules
    idle, of_all = sum(each.idle_bytes for each in modules), sum(each.parameter_bytes for each in modules)
    is_notable = idle >= min(NOTABLE_SHARE * evidence.peak_bytes, NOTABLE_SHARE_OF_MODEL * of_all)
    if not idle or not is_notable:
        return Refuted(f"{format_bytes(idle)} of {format_bytes(of_all)} of parameters never had a gradient")
    steps = sum(step.complete for step in evidence.capture.steps)
    return [
        Finding(
            rule=RULE.slug,
            title=f"{format_bytes(idle)} of {format_bytes(of_all)} of parameters are never used",
            bytes=idle,
            evidence=(
                f"An optimizer has them, and in none of {steps} steps had they a gradient: {_parts(evidence)}.",
                f"They hold {evidence.share(idle)} for the whole run; gradients and states of theirs there are none.",
            ),
            fixes=(
                Fix(
                    kind="unused-module",
                    text="Do not make what no forward uses.",
                    effect=Effect.BITWISE,
                    saves_bytes=idle,
                ),
            ),
            basis=Basis.LIFETIME,
        )
    ]


def _parts(evidence: Evidence) -> str:
    """`Net.old (85.45 MiB)`: the parts of the root that have most of it."""
    sizes: Counter[str] = Counter()
    for fact in evidence.capture.modules:
        sizes[".".join(fact.module.split(".")[:2]) or "modules that are never called"] += fact.idle_bytes
    return ", ".join(f"{name} ({format_bytes(size)})" for name, size in sizes.most_common(NUM_MODULES) if size)


RULE = Rule("parameters-unused", examine, needs=(Need.OBSERVED, Need.STEPS))
