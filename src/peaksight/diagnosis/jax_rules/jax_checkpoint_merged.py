"""# jax.checkpoint is undone: prevent_cse=False outside of a loop

## What it finds
`jax.checkpoint(..., prevent_cse=False)` on a function that runs outside of `jax.lax.scan`, or in a scan
that is unrolled completely.

## Why it costs memory
XLA merges equal expressions. What a backward pass computes again equals what the forward computed, so
that the one is replaced by the other, which is kept until then. Only inside of a loop are both apart by
themselves; everywhere else `prevent_cse=True`, the default, keeps them apart.

## Example
```python
for block in blocks:
    x = jax.checkpoint(block, prevent_cse=False)(x)  # as if it were not there
```

## Fixes
- Leave `prevent_cse` at its default outside of loops: the same numbers.
- Or put the layers into a `jax.lax.scan`, where `prevent_cse=False` is right.

## Known misses
How much of it XLA merges differs between its releases: the estimate takes all.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """The program against itself with `prevent_cse=True` everywhere."""
    what_if = next(iter(program.with_change(Change.KEEP_APART)), None)
    if what_if is None:
        return Refuted("no jax.checkpoint outside of a loop has prevent_cse=False")
    merged = [each for each in program.remats if not each.prevents_cse and not each.in_loop]
    num_bytes = saved(program, what_if)
    if not is_notable(program, num_bytes):
        return Refuted(f"with prevent_cse=True outside of loops the peak is {format_bytes(what_if.peak_bytes)}")
    lines = sorted({each.at for each in merged if each.at})
    return [
        Finding(
            rule=RULE.slug,
            title=f"{len(merged)} calls of jax.checkpoint save nothing: prevent_cse=False outside of a loop",
            bytes=num_bytes,
            evidence=(
                f"what they should free is {share(program, num_bytes)}",
                f"what they compute again is at {listed(lines)}",
            ),
            fixes=(
                Fix(
                    kind="prevent-cse",
                    text=f"Leave prevent_cse at its default of True there; {simulated(program, what_if)}.",
                    effect=Effect.ROUNDING,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
            at=lines[0] if lines else "",
        )
    ]


RULE = JaxRule("jax-checkpoint-merged", examine)
