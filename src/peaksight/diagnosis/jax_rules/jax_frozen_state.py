"""# Optimizer state or averages of parameters that never change

## What it finds
Arguments that are, by their paths and shapes, moments of an optimizer or an average (EMA) of
parameters that the program returns unchanged.

## Why it costs memory
Adam keeps two tensors for each parameter that it was initialised with, an average one, often in
float32. Of a frozen parameter both are zeros, or copies.

## Example
```python
tx = optax.chain(optax.adamw(1e-4), optax.masked(optax.set_to_zero(), frozen_mask))
opt_state = tx.init(params)  # moments of all of them
```

## Fixes
- Initialise the optimizer with the trainable parameters, or wrap it: `optax.multi_transform({"train":
  optax.adamw(1e-4), "freeze": optax.set_to_zero()}, labels)` keeps no moments of what is frozen.
- Average the trainable parameters only; the average of the others is what they are.

## Known misses
State whose paths do not end as those of the parameters do, and moments of parameters that are frozen by
gradients of zero: with weight decay these do change.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """The program against itself without this state."""
    what_if = next(iter(program.with_change(Change.NO_FROZEN_STATE)), None)
    if what_if is None:
        return Refuted("no argument is state of a parameter that is returned unchanged")
    num_bytes = saved(program, what_if)
    if not is_notable(program, num_bytes):
        return Refuted(f"state of frozen parameters is {format_bytes(what_if.bytes)}")
    return [
        Finding(
            rule=RULE.slug,
            title=f"{format_bytes(what_if.bytes)} of optimizer state or averages belong to frozen parameters",
            bytes=num_bytes,
            evidence=(
                f"{share(program, num_bytes)} for parameters that come out as they went in",
                f"state of them: {listed(what_if.about)}",
            ),
            fixes=(
                Fix(
                    kind="state-of-trainable",
                    text="Initialise the optimizer and the average with the trainable parameters only; "
                    f"{simulated(program, what_if)}.",
                    effect=Effect.BITWISE,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
        )
    ]


RULE = JaxRule("jax-frozen-state", examine)
