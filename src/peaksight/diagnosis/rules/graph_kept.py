"""# A graph is kept from one step to the next

## What it finds
Activations that an earlier step saved for its backward are still alive at the peak of a later one,
those of one step only: something holds on to an output, an attention map, a hidden state or a loss
with its graph until it is overwritten.

## Why it costs memory
A tensor with a `grad_fn` keeps its whole graph, and the graph keeps every activation that it saved.
A backward pass frees them; without one, or with `retain_graph=True`, they stay for as long as the
tensor does. Two steps are then in memory at the same time: the last one, and the one that runs.

## Example
```python
for batch in loader:
    output = model(batch)  # while it runs, `output` is still that of the last step
    loss = criterion(output)
    loss.backward(retain_graph=True)
```

## Fixes
- Delete the name before the next forward (`del output, loss`), or detach what is kept
  (`hidden.detach()`): bitwise the same, unless gradients were meant to flow through it.
- No `retain_graph=True` where a single backward pass is made.

## Known misses
What C++ holds, or an object that no running function reaches, has no name in the evidence.
"""

from peaksight.diagnosis.earlier_steps import kept_from_earlier_steps, names_of, outliving_their_step
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, Need, Refuted, Rule
from peaksight.records import Basis, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """What one earlier step saved and left."""
    kept = kept_from_earlier_steps(evidence)
    steps = {allocation.step for allocation in kept}
    if len(steps) > 1:
        return Refuted(f"not of one step but of {len(steps)} are graphs alive: see accumulated-graph")
    saved = evidence.saved_by_freeing(outliving_their_step(evidence))
    if saved < NOTABLE_SHARE * evidence.peak_bytes:
        return Refuted(f"what earlier steps saved holds {format_bytes(total_bytes(kept))} at the peak")
    (step,) = steps
    return [
        Finding(
            rule=RULE.slug,
            title=f"What step {step} saved for its backward is alive in step {evidence.peak_step}",
            bytes=saved,
            evidence=(*largest_lines(kept), *names_of(evidence, kept)),
            fixes=(
                Fix(
                    kind="release-outputs",
                    text="Delete the name before the next forward, or detach what is kept.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(kept),
        )
    ]


RULE = Rule("graph-kept", examine, needs=(Need.TWO_STEPS,))
