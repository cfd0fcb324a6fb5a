"""# One tensor is a large part of the peak

## What it finds
A single block that is no parameter, gradient or state, or a few of one shape of which each is a seventh of
the peak, hold a quarter of it or more.

## Why it costs memory
Most runs divide their memory among many tensors. One that stands out was made with a dimension that
multiplies: all pairs of something, all positions times all classes, a whole image through a layer for
pixels, a batch that was not cut. Such a block must also lie in one piece.

## Example
```python
distance = (x[:, None] - x[None, :]).square().sum(-1)  # n x n x width, before the sum
distance = torch.cdist(x, x)  # n x n
```

## Fixes
- Work in pieces along the dimension that multiplies: the same up to rounding.
- An operator that does not write the intermediate out.

## Known misses
It tells what is large, not whether it is needed. Attention scores and logits have rules of their own.
"""

from collections import defaultdict

from peaksight.diagnosis.evidence import Evidence, total_bytes
from peaksight.diagnosis.input_dependent import saved_in_own_step
from peaksight.diagnosis.rule import Answer, Refuted, Rule
from peaksight.diagnosis.rules.activations import DOMINATING_SHARE
from peaksight.records import Allocation, Basis, Category, Effect, Finding, Fix
from peaksight.units import format_bytes

LARGE_PART = 0.25
# One of several that are as large together is at least that.
LARGE_BLOCK = 0.15
_OF_TRAINING = {Category.ACTIVATION, Category.TEMPORARY, Category.INPUT, Category.OTHER}


def examine(evidence: Evidence) -> Answer:
    """The blocks at the peak of one line and shape that hold most."""
    largest = _largest(evidence)
    if total_bytes(largest) < LARGE_PART * evidence.peak_bytes:
        return Refuted(
            f"large blocks of one shape that are no state of the model have {format_bytes(total_bytes(largest))}"
        )
    if (saved := _saved_at_peak(evidence)) >= DOMINATING_SHARE * evidence.peak_bytes and not _stands_out(
        evidence, largest
    ):
        return Refuted(f"activations hold {evidence.share(saved)}, and no block stands out among them")
    same = [a for a in evidence.capture.allocations if a.tensor == largest[0].tensor and _is_of_training(evidence, a)]
    saved = evidence.saved_without(same)
    return [
        Finding(
            rule=RULE.slug,
            title=f"{_count(largest)} {largest[0].tensor or 'block'} is {evidence.share(total_bytes(largest))}",
            bytes=saved,
            evidence=(f"made by {largest[0].op} at {largest[0].source or 'no line of the script'}",),
            fixes=(
                Fix(
                    kind="in-pieces",
                    text="Work in pieces along the dimension that multiplies.",
                    effect=Effect.ROUNDING,
                ),
            ),
            basis=Basis.PATTERN,
            at=largest[0].source,
        )
    ]


def _largest(evidence: Evidence) -> list[Allocation]:
    """Of the live blocks that training makes the large ones of one shape, that hold most."""
    groups: dict[str, list[Allocation]] = defaultdict(list)
    for allocation in evidence.live:
        is_large = allocation.allocated_bytes >= LARGE_BLOCK * evidence.peak_bytes
        if is_large and _is_of_training(evidence, allocation):
            groups[allocation.tensor].append(allocation)
    return max(groups.values(), key=total_bytes, default=[])


def _saved_at_peak(evidence: Evidence) -> int:
    step = evidence.peak_step
    return total_bytes(a for a in evidence.live if a.step == step and saved_in_own_step(evidence, a))


def _stands_out(evidence: Evidence, blocks: list[Allocation]) -> bool:
    return max(allocation.allocated_bytes for allocation in blocks) >= LARGE_PART * evidence.peak_bytes


def _is_of_training(evidence: Evidence, allocation: Allocation) -> bool:
    return evidence.category(allocation) in _OF_TRAINING


def _count(blocks: list[Allocation]) -> str:
    return "One" if len(blocks) == 1 else f"{len(blocks)} times"


RULE = Rule("one-large-tensor", examine, is_general=True)
