"""# Optimizer state in float32 for parameters of low precision

## What it finds
Parameters in float16 or bfloat16, of which the optimizer keeps moments in float32, or of which
there are float32 copies (master weights) with gradients of their own.

## Why it costs memory
A float32 moment is twice the size of such a parameter: two of them and a master copy are 12 bytes
beside the 2 of the parameter. It is the price of an exact update, and often the largest part of the
memory of a model in low precision.

## Example
```python
masters = [p.detach().clone().float() for p in model.parameters()]  # 4 bytes a parameter
optimizer = torch.optim.AdamW(masters)  # and 8 of state
```

## Fixes
- Moments in the dtype of the parameter, or in 8 bits: another training, often nearly as good.
- bfloat16 parameters without masters need stochastic rounding or a larger learning rate.

## Known misses
Copies are told by module and size. State that is quantised by a library's own kernels is not seen.
"""

from collections.abc import Iterator

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.diagnosis.shapes import shape_of
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Role
from peaksight.units import format_bytes

LOW = {"float16", "bfloat16"}
_KEPT = {Role.OPTIMIZER_STATE, Role.PARAMETER, Role.GRADIENT}


def examine(evidence: Evidence) -> Answer:
    """Float32 state and copies, at half of their size."""
    wide = tuple(_wide(evidence))
    falls = evidence.lifetimes.peak_bytes - evidence.lifetimes.with_sizes({a: a.allocated_bytes // 2 for a in wide})
    if not is_notable(evidence, falls):
        return Refuted(
            f"in the dtype of low-precision parameters their state would lower the peak by {format_bytes(falls)}"
        )
    of_run = frozenset(wide)
    held = [a for a in evidence.live if a in of_run]
    return [
        Finding(
            rule=RULE.slug,
            title=f"Float32 state, copies and gradients of low-precision parameters: {format_bytes(total_bytes(held))}",
            bytes=falls,
            evidence=largest_lines(held),
            fixes=(
                Fix(
                    kind="low-precision-state",
                    text="State in the dtype of the parameters.",
                    effect=Effect.MODEL,
                    saves_bytes=falls,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _wide(evidence: Evidence) -> Iterator[Allocation]:
    """State, copies and their gradients in float32, of the size of a low-precision parameter of the same module.

    What belongs to copies in a list has no module: there the size decides.
    """
    parameters = [a for a in evidence.capture.allocations if a.role is Role.PARAMETER and shape_of(a).dtype in LOW]
    low = {(a.module, shape_of(a).numel) for a in parameters} | {("", shape_of(a).numel) for a in parameters}
    for allocation in evidence.capture.allocations:
        shape = shape_of(allocation)
        if allocation.role in _KEPT and shape.dtype == "float32" and (allocation.module, shape.numel) in low:
            yield allocation


RULE = Rule("optimizer-state-precision", examine, needs=(Need.STEPS,), refines=("ema-copies",))
