"""# The optimizer keeps state for frozen parameters

## What it finds
Parameters that need no gradient are in an optimizer that has state for them: they were frozen after
it had stepped, or it makes state for whatever it is given.

## Why it costs memory
Adam's state is twice the size of the parameter, in its dtype. Freezing a parameter later gives its
gradient back at the next `zero_grad()`, but not its state.

## Example
```python
optimizer.step()  # makes state for all
model.backbone.requires_grad_(False)  # whose state stays in the optimizer
```

## Fixes
- Freeze before the first step, and give the optimizer what is trained:
  `[p for p in model.parameters() if p.requires_grad]`. Bitwise the same where frozen is meant.

## Known misses
A parameter that needs a gradient and gets none is not taken for frozen.
"""

from peaksight.diagnosis.evidence import Evidence, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.diagnosis.rules.frozen_saves_activations import frozen_subtrees, is_in_frozen
from peaksight.records import Basis, Effect, Finding, Fix, Role
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """State of parameters in modules that are frozen."""
    rows = [row for row in evidence.capture.optimizers if row.frozen]
    if not sum(row.state_bytes for row in rows):
        given = format_bytes(sum(row.parameter_bytes for row in rows))
        return Refuted(f"{given} of frozen parameters are in an optimizer, and none has state")
    frozen = frozen_subtrees(evidence.capture)
    state = [a for a in evidence.capture.allocations if a.role is Role.OPTIMIZER_STATE]
    kept = [a for a in state if is_in_frozen(a.module, frozen)]
    saved = evidence.saved_without(kept)
    if not is_notable(evidence, saved):
        return Refuted(f"without the state of frozen parameters the peak falls by {format_bytes(saved)} only")
    return [
        Finding(
            rule=RULE.slug,
            title=f"The optimizer keeps {format_bytes(total_bytes(kept))} of state for frozen parameters",
            bytes=saved,
            evidence=tuple(
                f"{row.kind} has {row.count} frozen parameters of {format_bytes(row.parameter_bytes)} in {row.dtype}, "
                f"with {format_bytes(row.state_bytes)} of state"
                for row in rows
                if row.state_bytes
            ),
            fixes=(
                Fix(
                    kind="trained-parameters-only",
                    text="Freeze before the first step, and give the optimizer only what needs a gradient.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(kept),
        )
    ]


RULE = Rule("frozen-optimizer-state", examine, needs=(Need.OBSERVED, Need.STEPS))
