"""# Parameters come in a wide type and are cast inside

## What it finds
Arguments that everything in a jitted function casts to a smaller type before using them, as a float32
checkpoint whose frozen parameters become bfloat16 inside of `init`, or frozen float32 parameters of
which each step uses bfloat16 copies.

## Why it costs memory
The wide argument stays for the whole call, with the narrow copy beside it. A donated argument does
not help: the copy has another size, so that it cannot be written there.

## Example
```python
@jax.jit
def init(checkpoint):  # all of it in float32
    frozen = jax.tree.map(lambda x: x.astype(jnp.bfloat16), checkpoint["backbone"])
    return TrainState(frozen=frozen, opt_state=tx.init(checkpoint["head"]))
```

## Fixes
- Cast on the host, before the call: the program computes the same numbers of the same narrow values.
- Or make the state of the optimizer in the jitted function, of the trainable parameters alone, and
  put the frozen ones on the device beside it.

## Known misses
Values that one place uses as they are: then they are needed.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """The program against itself with narrow arguments."""
    what_if = next(iter(program.with_change(Change.CAST_BEFORE)), None)
    if what_if is None:
        return Refuted("no argument is read only through a cast to a smaller type")
    num_bytes = saved(program, what_if)
    if not is_notable(program, num_bytes):
        return Refuted(f"casting {listed(what_if.about)} before the call would save {format_bytes(max(num_bytes, 0))}")
    cast = [each for each in program.arguments if each.cast_to]
    width = max(cast, key=lambda each: each.bytes)
    return [
        Finding(
            rule=RULE.slug,
            title=f"{format_bytes(sum(each.bytes for each in cast))} of arguments are only used as {width.cast_to}",
            bytes=num_bytes,
            evidence=(
                f"cast inside of the program at {what_if.at}, the largest is {width.path} ({width.tensor})",
                f"the wide values and what they keep from being reused are {share(program, num_bytes)}",
                f"only cast: {listed(what_if.about)}",
            ),
            fixes=(
                Fix(
                    kind="cast-before-call",
                    text=f"Cast them to {width.cast_to} on the host before the call; {simulated(program, what_if)}.",
                    effect=Effect.BITWISE,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
            at=what_if.at,
        )
    ]


RULE = JaxRule("jax-cast-inside-jit", examine)
