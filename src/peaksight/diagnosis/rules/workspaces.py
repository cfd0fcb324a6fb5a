"""# The workspace of one operator is at the peak

## What it finds
Memory that a kernel takes for itself while it runs, by operator and line: workspaces of cuDNN and
cuBLAS, of eigen- and singular value decompositions, of sorts, top-k and reductions.

## Why it costs memory
Some algorithms trade memory for speed. cuDNN with `benchmark=True` tries every algorithm and takes
the fastest one whatever its workspace; a batched `eigh` or a sort copies its whole input. It lasts
for one call, but comes on top of all that is alive then.

## Example
```python
torch.backends.cudnn.benchmark = True  # a convolution may then take GiB for its workspace
scores.flatten().sort()  # keys and indices of 8 bytes each, twice
```

## Fixes
- `torch.backends.cudnn.benchmark = False`: the same up to rounding, other algorithms.
- Call the operator on slices of the batch: the same, one slice's workspace at a time.

## Known misses
That of cuBLAS stays for the whole run, 8 to 64 MiB a card: it is left out. Workspaces
follow the releases of the libraries; what is not known of one is listed under Not simulated.
"""

from collections import defaultdict

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, Refuted, Rule
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Role
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """The operator whose workspaces make the peak highest."""
    by_op: dict[str, list[Allocation]] = defaultdict(list)
    for allocation in evidence.capture.allocations:
        if allocation.role is Role.WORKSPACE and allocation.died is not None:
            by_op[allocation.op].append(allocation)
    falls = {op: evidence.saved_without(blocks) for op, blocks in by_op.items()}
    largest = max(falls, key=lambda op: (falls[op], op), default="")
    if falls.get(largest, 0) < NOTABLE_SHARE * max(evidence.peak_bytes, 1):
        return Refuted(
            f"without the workspace of any one operator the peak falls by {format_bytes(falls.get(largest, 0))}"
        )
    held = [a for a in evidence.live if a in frozenset(by_op[largest])]
    return [
        Finding(
            rule=RULE.slug,
            title=f"The workspace of {largest} holds {format_bytes(total_bytes(held))} at the peak",
            bytes=falls[largest],
            evidence=largest_lines(held),
            fixes=(_fix(largest, falls[largest]),),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _fix(op: str, falls: int) -> Fix:
    if "convolution" in op:
        text = "torch.backends.cudnn.benchmark = False, if it is on; else a smaller batch at this layer."
        return Fix(kind="cudnn-benchmark-off", text=text, effect=Effect.ROUNDING)
    text = "Call the operator on slices of its input."
    return Fix(kind="slices", text=text, effect=Effect.ROUNDING, saves_bytes=falls)


RULE = Rule("workspaces", examine)
