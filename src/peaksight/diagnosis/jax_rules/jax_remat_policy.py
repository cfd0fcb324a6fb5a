"""# Another policy of jax.checkpoint would need less

## What it finds
With another of `jax.checkpoint_policies`, in place of those of the function and around the bodies of
its scans, the peak is lower.

## Why it costs memory
A policy says what a checkpointed function keeps for its backward pass: everything, the products of
matrices, those without a batch dimension, or its inputs alone. What is not kept is computed again.

## Example
```python
policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
block = jax.checkpoint(block, policy=policy)
```

## Fixes
- Take the first policy that fits, from the one that computes least again: each is listed with what
  it needs and what it adds to the arithmetic of a step.

## Known misses
Policies by name (`save_only_these_names`) and those that put activations into the host's memory. One
policy is tried for all checkpoints of the program together.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable
from peaksight.diagnosis.rule import Answer, NotDecidable, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import JaxProgram, RematPolicy
from peaksight.units import format_bytes

AS_WRITTEN = "as written"


def examine(program: JaxProgram) -> Answer:
    """The program against itself with each policy."""
    if not program.policies:
        return NotDecidable("the function was not traced with other policies")
    written = next(each for each in program.policies if each.policy == AS_WRITTEN)
    better = [each for each in program.policies if is_notable(program, written.peak_bytes - each.peak_bytes)]
    if not better:
        tried = len(program.policies) - 1
        return Refuted(f"none of {tried} other policies needs notably less" if tried else "it has no policy to choose")
    lowest = min(better, key=lambda each: (each.peak_bytes, each.flops))
    return [
        Finding(
            rule=RULE.slug,
            title=f"With jax.checkpoint_policies.{lowest.policy} the peak is {format_bytes(lowest.peak_bytes)}",
            bytes=written.peak_bytes - lowest.peak_bytes,
            evidence=(f"as written it is {format_bytes(written.peak_bytes)}",),
            fixes=tuple(_fix(each, written) for each in sorted(better, key=lambda each: (each.flops, each.peak_bytes))),
            basis=Basis.COUNTERFACTUAL,
        )
    ]


def _fix(policy: RematPolicy, written: RematPolicy) -> Fix:
    return Fix(
        kind=f"policy-{policy.policy.replace('_', '-')}",
        text=f"policy=jax.checkpoint_policies.{policy.policy}: {format_bytes(policy.peak_bytes)}, "
        f"{_cost(policy, written)}.",
        effect=Effect.ROUNDING,
        saves_bytes=written.peak_bytes - policy.peak_bytes,
    )


def _cost(policy: RematPolicy, written: RematPolicy) -> str:
    percent = round(100 * (policy.flops / written.flops - 1)) if written.flops else 0
    if not percent:
        return "no more arithmetic"
    return f"{abs(percent)} % {'more' if percent > 0 else 'less'} arithmetic"


RULE = JaxRule("jax-remat-policy", examine)
