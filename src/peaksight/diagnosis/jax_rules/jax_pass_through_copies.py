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

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """The program against itself without returning what it does not change."""
    what_if = next(iter(program.with_change(Change.NOT_RETURNED)), None)
    if what_if is None:
        return Refuted("no argument that is not donated is returned unchanged")
    num_bytes = saved(program, what_if)
    copied = format_bytes(what_if.bytes)
    if not is_notable(program, num_bytes):
        return Refuted(f"{copied} are returned unchanged; without that the peak is {format_bytes(what_if.peak_bytes)}")
    return [
        Finding(
            rule=RULE.slug,
            title=f"{copied} of arguments come out as they went in, as copies",
            bytes=num_bytes,
            evidence=(
                f"{len(what_if.about)} arguments, {share(program, what_if.bytes)}",
                f"returned unchanged: {listed(what_if.about)}",
            ),
            fixes=(
                Fix(
                    kind="do-not-return",
                    text="Pass what does not change beside the state and do not return it, or donate it; "
                    f"{simulated(program, what_if)}.",
                    effect=Effect.BITWISE,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
        )
    ]


RULE = JaxRule("jax-pass-through-copies", examine)
