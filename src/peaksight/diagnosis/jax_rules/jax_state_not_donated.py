"""# The old state is alive beside the new one

## What it finds
Arguments of a jitted function for which it returns a value of the same shape and type, as parameters
and the state of the optimizer are, that are not donated.

## Why it costs memory
XLA may not write into an argument that the caller could still read. So the whole new state is made
beside the old one, and even what comes out as it went in is copied.

## Example
```python
step = jax.jit(train_step)  # twice the state: jax.jit(train_step, donate_argnums=0)
state, loss = step(state, batch)
```

## Fixes
- `jax.jit(train_step, donate_argnums=0)`, or `donate_argnames="state"` (`eqx.filter_jit(donate="all")`,
  `nnx.jit(donate_argnums=...)`): bitwise the same. The old state must not be used after the call.

## Known misses
Donation that XLA declines on the device, as where an argument has another sharding than the output.
Arguments that are given away in a call around this one.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram, WhatIf, argument_of
from peaksight.units import format_bytes

# Of what comes back changed: arguments of smaller leaves alone are not named.
NOTABLE_LEAF = 1e-3


def examine(program: JaxProgram) -> Answer:
    """The program against itself with these arguments donated."""
    what_if = next(iter(program.with_change(Change.DONATE)), None)
    if what_if is None:
        return Refuted(f"{format_bytes(program.aliased_bytes)} of outputs are in the memory of donated arguments")
    num_bytes = saved(program, what_if)
    if not is_notable(program, num_bytes):
        return Refuted(f"donating {listed(what_if.about)} would save {format_bytes(max(num_bytes, 0))}")
    return [
        Finding(
            rule=RULE.slug,
            title=f"{format_bytes(what_if.bytes)} of arguments come back changed and are not donated",
            bytes=num_bytes,
            evidence=(
                f"the new values take {share(program, num_bytes)} beside the old ones",
                f"not donated: {listed(what_if.about)}",
            ),
            fixes=(
                Fix(
                    kind="donate",
                    text=f"Donate them: donate_argnums for {_named(program, what_if)}; {simulated(program, what_if)}.",
                    effect=Effect.BITWISE,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
        )
    ]


def _named(program: JaxProgram, what_if: WhatIf) -> str:
    """The arguments that its leaves are part of, the one with the largest first; a step counter is worth no word."""
    sizes = {each.path: each.bytes for each in program.arguments}
    worth = [path for path in what_if.about if sizes.get(path, what_if.bytes) >= NOTABLE_LEAF * what_if.bytes]
    names = dict.fromkeys(argument_of(path) for path in worth or what_if.about)
    return ", ".join(f"`{name}`" for name in names)


RULE = JaxRule("jax-state-not-donated", examine, refines=("jax-pass-through-copies",))
