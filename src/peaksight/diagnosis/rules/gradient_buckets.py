"""# Gradient buckets are a second copy of the gradients

## What it finds
Buffers of a process group or of DistributedDataParallel at the peak, beside the gradients themselves; or
a flat vector that the script joins its gradients to.

## Why it costs memory
DDP reduces gradients in buckets: flat buffers, together as large as the gradients, that are made with
the model and live as long as it does. By default each gradient is copied into its bucket and back, so
that both are there. As views the gradients need no memory of their own; the buckets stay, also while
there are no gradients: a peak at the start of the backward pass is no lower. A script that reduces one
flat vector instead has the same copy for a moment.

## Example
```python
model = DistributedDataParallel(model)
model = DistributedDataParallel(model, gradient_as_bucket_view=True)  # gradients are views of the buckets
```

## Fixes
- `gradient_as_bucket_view=True`: bitwise the same.
- A call for each gradient, or for lists of a few MiB (`torch._foreach_norm` for a norm): bitwise the same
  sums, up to rounding for a norm.

## Known misses
Each rank is simulated alone: what others send to its card does not show.
"""

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Category, Effect, Finding, Fix, Role
from peaksight.units import format_bytes

# Less of the gradients than this part of the buckets beside them: they are views of the buckets.
BESIDE = 0.5


def examine(evidence: Evidence) -> Answer:
    """Blocks for communication, with gradients of their own beside them."""
    held = [a for a in evidence.live if evidence.category(a) is Category.COMMUNICATION]
    if not held and (flat := _flattened(evidence)):
        return _of_flat_copies(evidence, flat)
    if not held:
        return Refuted("no buffer of a process group is there at the peak")
    gradients = [a for a in evidence.capture.allocations if a.role is Role.GRADIENT and a.step == evidence.peak_step]
    if total_bytes(gradients) < BESIDE * total_bytes(held):
        return Refuted(f"gradients are views of the {format_bytes(total_bytes(held))} of buckets")
    saved = evidence.saved_by_freeing({a: a.born + 1 for a in evidence.capture.allocations if a.role is Role.GRADIENT})
    if not is_notable(evidence, saved):
        return Refuted(f"with gradients in the {format_bytes(total_bytes(held))} of buckets the peak falls by little")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Buckets of gradients hold {format_bytes(total_bytes(held))} beside the gradients",
            bytes=saved,
            evidence=(
                *largest_lines(held),
                f"gradients of {format_bytes(total_bytes(gradients))} have blocks of their own in step "
                f"{evidence.peak_step}",
            ),
            fixes=(
                Fix(
                    kind="gradient-as-bucket-view",
                    text="DistributedDataParallel(..., gradient_as_bucket_view=True)",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _flattened(evidence: Evidence) -> list[Allocation]:
    """Vectors that gradients are joined to, as large as most of them together."""
    born = evidence.by_birth
    gradients = [a for a in evidence.live if a.role is Role.GRADIENT]
    least = BESIDE * total_bytes(gradients)
    joined = (a for a in evidence.capture.allocations if a.op == "aten::cat" and a.copy_of in born)
    return [
        a
        for a in joined
        if born[a.copy_of].role is Role.GRADIENT and a.role is Role.UNMARKED and a.allocated_bytes >= least
    ]


def _of_flat_copies(evidence: Evidence, flat: list[Allocation]) -> Answer:
    saved = evidence.saved_without(flat)
    if not is_notable(evidence, saved):
        return Refuted(f"without the flat copies of gradients the peak falls by {format_bytes(saved)} only")
    held = evidence.live_of(flat)
    return [
        Finding(
            rule=RULE.slug,
            title=f"Gradients are joined to one vector: {format_bytes(total_bytes(held))} beside the gradients",
            bytes=saved,
            evidence=largest_lines(held),
            fixes=(
                Fix(
                    kind="gradients-one-by-one",
                    text="A call for each gradient, or for lists of a few MiB.",
                    effect=Effect.ROUNDING,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


RULE = Rule("gradient-buckets", examine)
