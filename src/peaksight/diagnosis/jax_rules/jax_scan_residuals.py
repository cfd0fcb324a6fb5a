"""# A scan keeps what each step needs for its backward pass

## What it finds
Stacks that a `jax.lax.scan` without `jax.checkpoint` writes in the forward and reads in the backward:
for each layer or time step every activation that its derivative needs.

## Why it costs memory
A scan saves the residuals of all its steps, each stacked along the first axis, as one allocation a kind.
They are alive together when its backward pass begins.

## Example
```python
x, _ = jax.lax.scan(block, x, layers)  # attention weights and hidden states of every layer
x, _ = jax.lax.scan(jax.checkpoint(block, prevent_cse=False), x, layers)  # the carry of every layer
```

## Fixes
- `jax.checkpoint` around the body (`prevent_cse=False` is right inside of a scan); a policy such as
  `dots_with_no_batch_dims_saveable` keeps the products of matrices and computes the rest again.

## Known misses
Of a body that is checkpointed with a policy that saves much, only the stacks are listed.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram, ScanFact, WhatIf
from peaksight.units import format_bytes

NUM_STACKS = 2


def examine(program: JaxProgram) -> Answer:
    """Each scan against itself with its body computed again."""
    scans = {(scan.at, scan.scope): scan for scan in program.scans if not scan.is_checkpointed}
    found = [
        _finding(program, scans[each.at, each.about[0]], each)
        for each in program.with_change(Change.CHECKPOINT_SCAN)
        if is_notable(program, saved(program, each))
    ]
    if found:
        return found
    kept = sum(scan.residual_bytes for scan in program.scans)
    again = sum(scan.is_checkpointed for scan in program.scans)
    return Refuted(
        f"{len(program.scans)} scans keep {format_bytes(kept)} for the backward pass, {again} are checkpointed"
    )


def _finding(program: JaxProgram, scan: ScanFact, what_if: WhatIf) -> Finding:
    num_bytes = saved(program, what_if)
    largest = ", ".join(f"{tensor} ({format_bytes(size)})" for tensor, size in scan.residuals[:NUM_STACKS])
    return Finding(
        rule=RULE.slug,
        title=f"A scan of {scan.length} steps keeps {format_bytes(scan.residual_bytes)} for its backward pass",
        bytes=num_bytes,
        evidence=(
            f"{len(scan.residuals)} stacks, the largest are {largest}",
            f"beside the carry they are {share(program, num_bytes)}",
        ),
        fixes=(
            Fix(
                kind="checkpoint-scan-body",
                text=f"jax.checkpoint(body, prevent_cse=False) around its body; {simulated(program, what_if)}.",
                effect=Effect.ROUNDING,
                saves_bytes=num_bytes,
            ),
        ),
        basis=Basis.COUNTERFACTUAL,
        at=scan.at,
    )


RULE = JaxRule("jax-scan-residuals", examine)
