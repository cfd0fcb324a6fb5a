"""# Arguments that come out as they went in are copied

## What it finds
Arguments that a jitted function returns unchanged, as frozen parameters in a state, and that are not
donated.

## Why it costs memory
XLA does not forward an argument to an output: what is returned is a copy, made in every call.

## Example
```python
@jax.jit
def step(state, batch):
    trainable = update(state.trainable, batch)
    return state.replace(trainable=trainable), loss  # state.frozen is copied
```

## Fixes
- Donate the state: then the same memory goes through.
- Or keep what does not change out of it: pass it beside the state, and do not return it.

## Known misses
Copies inside of a loop's carry.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, share
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """What is returned as it came, without being donated."""
    copied = sorted(
        (each for each in program.arguments if each.is_returned and not each.is_written), key=lambda each: -each.bytes
    )
    num_bytes = sum(each.bytes for each in copied)
    if not is_notable(program, num_bytes):
        return Refuted(f"{format_bytes(num_bytes)} of arguments are returned unchanged in memory of their own")
    return [
        Finding(
            rule=RULE.slug,
            title=f"{format_bytes(num_bytes)} of arguments come out as they went in, as copies",
            bytes=num_bytes,
            evidence=(
                f"{share(program, num_bytes)} in {len(copied)} arguments, the largest {copied[0].tensor}",
                f"returned unchanged: {listed([each.path for each in copied])}",
            ),
            fixes=(
                Fix(
                    kind="do-not-return",
                    text="Donate the state, or pass what does not change beside it and do not return it.",
                    effect=Effect.BITWISE,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.PATTERN,
        )
    ]


RULE = JaxRule("jax-pass-through-copies", examine)
