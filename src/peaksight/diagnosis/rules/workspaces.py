"""# The workspace or the result of one operator is at the peak

## What it finds
Memory that a kernel takes for itself while it runs, by operator and line: workspaces of cuDNN and
cuBLAS, of eigen- and singular value decompositions, of sorts, top-k and reductions. Of decompositions
and sorts also what they give, where no backward pass needs it: it may be larger than what goes in.

## Why it costs memory
Some algorithms trade memory for speed. cuDNN with `benchmark=True` tries every algorithm and takes
the fastest one whatever its workspace; a batched `eigh` or a sort copies its whole input. It lasts
for one call, but comes on top of all that is alive then.

## Example
```python
torch.backends.cudnn.benchmark = True  # a convolution may then take GiB for its workspace
scores.flatten().sort()  # keys and indices of 8 bytes each, twice
torch.linalg.svd(grad)  # of [256, 32768]: 32768 x 32768 right singular vectors, 4 GiB
```

## Fixes
- `torch.backends.cudnn.benchmark = False`: the same up to rounding, other algorithms.
- `full_matrices=False` where the part is enough: the same numbers, less of them.
- Call the operator on slices of the batch: the same, one slice's workspace at a time.

## Known misses
That of cuBLAS stays for the whole run, 8 to 64 MiB a card: it is left out. Workspaces
follow the releases of the libraries; what is not known of one is listed under Not simulated.
"""

from collections import defaultdict
from collections.abc import Mapping

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, Refuted, Rule
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Role
from peaksight.units import format_bytes

# Operators that give more than goes in, or indices of eight bytes beside it: decompositions, sorts.
WRITE_MORE = (
    "aten::_linalg_",
    "aten::linalg_",
    "aten::sort",
    "aten::topk",
    "aten::unique",
    "aten::_unique",
    "aten::mode",
)


def examine(evidence: Evidence) -> Answer:
    """The operator whose workspaces, and results where they are larger than what goes in, make the peak highest."""
    by_op: dict[str, list[Allocation]] = defaultdict(list)
    for allocation in evidence.capture.allocations:
        if allocation.died is not None and _is_of_call(evidence, allocation):
            by_op[allocation.op].append(allocation)
    falls = {op: evidence.saved_without(blocks) for op, blocks in by_op.items()}
    largest = max(falls, key=lambda op: (falls[op], op), default="")
    if falls.get(largest, 0) < NOTABLE_SHARE * max(evidence.peak_bytes, 1):
        return Refuted(
            f"without the workspace of any one operator the peak falls by {format_bytes(falls.get(largest, 0))}"
            + _largest_elsewhere(by_op)
        )
    held = evidence.live_of(by_op[largest])
    return [
        Finding(
            rule=RULE.slug,
            title=f"{_what(held)} of {largest} hold {format_bytes(total_bytes(held))} at the peak",
            bytes=falls[largest],
            evidence=(*largest_lines(held), *_of_release(held, evidence)),
            fixes=(_fix(largest, falls[largest]),),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _of_release(held: list[Allocation], evidence: Evidence) -> tuple[str, ...]:
    """The release decides which kernel runs: `eigh` of 7680 matrices took MB in one, and GiB in a later one."""
    if all(each.role is not Role.WORKSPACE for each in held) or not evidence.capture.versions.device_rules:
        return ()
    return (f"so it is with torch {evidence.capture.versions.device_rules}; another release may take another kernel",)


def _largest_elsewhere(by_op: Mapping[str, list[Allocation]]) -> str:
    """The largest workspace of the run: one that is blamed is named, with what it is, where it decides nothing."""
    workspaces = (each for blocks in by_op.values() for each in blocks if each.role is Role.WORKSPACE)
    largest = max(workspaces, key=lambda each: each.allocated_bytes, default=None)
    if largest is None or not largest.source:
        return ""
    size = format_bytes(largest.allocated_bytes)
    return f"; the largest, {size} of {largest.op}, lasts for one call at {largest.source}"


def _is_of_call(evidence: Evidence, allocation: Allocation) -> bool:
    """Whether it is a kernel's own memory, or what one of `WRITE_MORE` gives and no later step needs."""
    is_result = allocation.role is Role.UNMARKED and not allocation.backward and allocation.op.startswith(WRITE_MORE)
    return allocation.role is Role.WORKSPACE or (is_result and not evidence.step_ends_outlived(allocation))


def _what(held: list[Allocation]) -> str:
    roles = {allocation.role for allocation in held}
    return "Workspaces" if roles == {Role.WORKSPACE} else "Workspaces and results" if len(roles) > 1 else "Results"


def _fix(op: str, falls: int) -> Fix:
    if "convolution" in op:
        text = "torch.backends.cudnn.benchmark = False, if it is on; else a smaller batch at this layer."
        return Fix(kind="cudnn-benchmark-off", text=text, effect=Effect.ROUNDING)
    if "svd" in op or "qr" in op:
        text = "full_matrices=False (mode='reduced'), or the operator on slices of its input."
        return Fix(kind="reduced-decomposition", text=text, effect=Effect.ROUNDING, saves_bytes=falls)
    text = "Call the operator on slices of its input."
    return Fix(kind="slices", text=text, effect=Effect.ROUNDING, saves_bytes=falls)


RULE = Rule("workspaces", examine, refines=("optimizer-temporaries", "one-large-tensor"))
