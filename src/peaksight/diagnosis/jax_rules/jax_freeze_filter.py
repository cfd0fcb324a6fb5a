"""# A freeze that freezes nothing

## What it finds
The file of the training step speaks of freezing, in a filter, a mask or a partition, and yet the step
returns every parameter changed.

## Why it costs memory
A filter that matches no path trains everything: each parameter has a gradient, moments of the
optimizer, and activations that are kept for it, where the owner expects a fraction.

## Example
```python
freeze_filter = nnx_utils.PathRegex(".*llm.*")  # the path is a tuple: no part of it is called so
trainable = nnx.All(nnx.Param, nnx.Not(freeze_filter))  # everything
```

## Fixes
- Count what is frozen, and fail where it is nothing:
  `assert jax.tree.leaves(params.filter(freeze_filter))`.

## Known misses
Freezing that another file decides, and one that matches some parameters but not those that were meant.
What is frozen by gradients of zero comes back changed by weight decay, or unchanged but not recognisably.
"""

from peaksight.diagnosis.jax_rule import JaxRule, share
from peaksight.diagnosis.rule import Answer, NotDecidable, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import JaxProgram
from peaksight.units import format_bytes

NUM_LINES = 2


def examine(program: JaxProgram) -> Answer:
    """What the code says of freezing, against what comes back unchanged."""
    if not program.freezes:
        return Refuted("no line of the step's file speaks of freezing")
    frozen = sum(each.bytes for each in program.arguments if each.is_returned)
    if frozen:
        return Refuted(f"{format_bytes(frozen)} of arguments come back unchanged")
    changed = sum(each.bytes for each in program.arguments if each.is_changed)
    if not changed:
        return NotDecidable("the function returns no state: the step that does is another one")
    return [
        Finding(
            rule=RULE.slug,
            title="The code speaks of freezing, and every parameter is trained",
            bytes=0,
            evidence=(
                *(f"{each.at}: {each.text}" for each in program.freezes[:NUM_LINES]),
                f"no argument comes back as it went in; {share(program, changed)} come back changed",
            ),
            fixes=(
                Fix(
                    kind="check-freeze-filter",
                    text="Look at what the filter matches: jax.tree.leaves of the frozen part is empty.",
                    effect=Effect.MODEL,
                ),
            ),
            basis=Basis.PATTERN,
            at=program.freezes[0].at,
        )
    ]


RULE = JaxRule("jax-freeze-filter", examine)
