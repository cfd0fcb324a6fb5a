"""# jax.checkpoint without effect

## What it finds
Calls of `jax.checkpoint` with which the peak is no lower than without them: their policy saves
everything, they cover too little, or the peak is elsewhere.

## Why it costs memory
It costs time rather than memory: the forward is computed twice for nothing. And what was meant to go
is still there.

## Example
```python
policy = jax.checkpoint_policies.everything_saveable
block = jax.checkpoint(block, policy=policy)  # nothing is computed again
```

## Fixes
- Another policy (`nothing_saveable`, `dots_with_no_batch_dims_saveable`), around each layer.
- None at all, where the peak is elsewhere.

## Known misses
Inside of a loop only policies that save everything are seen.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, saved
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """The calls that compute nothing again, and all of them against the program without."""
    if not program.remats:
        return Refuted("the backward pass has no jax.checkpoint")
    idle = [each for each in program.remats if not each.recomputes]
    if idle:
        why = f"{len(idle)} of {len(program.remats)} save all that they need: nothing is computed again"
        return [_finding(why, idle[0].at)]
    what_if = next(iter(program.with_change(Change.WITHOUT_REMAT)), None)
    if what_if is None:
        return Refuted("each jax.checkpoint computes something again, in a loop")
    num_bytes = -saved(program, what_if)
    if is_notable(program, num_bytes):
        return Refuted(f"without jax.checkpoint the peak would be {format_bytes(what_if.peak_bytes)}")
    apart = next((each for each in program.remats if each.prevents_cse and not each.in_loop), program.remats[0])
    return [_finding(f"without it the peak is {format_bytes(what_if.peak_bytes)}, with it as much", apart.at)]


def _finding(why: str, at: str) -> Finding:
    return Finding(
        rule=RULE.slug,
        title="jax.checkpoint does not lower the peak",
        bytes=0,
        evidence=(why,),
        fixes=(
            Fix(
                kind="remat-policy",
                text="Save less by its policy, around each layer (`peaksight fix` simulates each policy); or leave it "
                "out, which saves the time.",
                effect=Effect.ROUNDING,
            ),
        ),
        basis=Basis.COUNTERFACTUAL,
        at=at,
        without_effect=True,
    )


RULE = JaxRule("jax-remat-without-effect", examine)
