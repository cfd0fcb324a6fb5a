"""# Arrays are baked into the program

## What it finds
Arrays that a jitted function closes over instead of taking them as arguments: tables, masks, whole
parameters of a frozen model.

## Why it costs memory
What is closed over is a constant of the executable: it is on the device a second time beside the array
itself, for each compilation that closes over it, for as long as that is cached.

## Example
```python
teacher = load_teacher()
step = jax.jit(lambda state, batch: distill(state, teacher, batch))  # teacher is in the executable
```

## Fixes
- Pass it as an argument: `jax.jit(distill)(state, teacher, batch)`. The same numbers.

## Known misses
Constants that are computed in the function: XLA may fold them.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, share
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """All constants together."""
    if not is_notable(program, program.constant_bytes):
        return Refuted(f"{format_bytes(program.constant_bytes)} of constants are in the program")
    largest = program.constants[0]
    where = f", first read at {largest.at}" if largest.at else ""
    return [
        Finding(
            rule=RULE.slug,
            title=f"{format_bytes(program.constant_bytes)} of arrays are closed over, and so part of the program",
            bytes=program.constant_bytes,
            evidence=(
                f"{share(program, program.constant_bytes)} in {len(program.constants)} arrays",
                f"the largest is {largest.tensor}{where}",
            ),
            fixes=(
                Fix(
                    kind="pass-as-argument",
                    text="Pass them as arguments: the executable then reads the arrays that exist already.",
                    effect=Effect.BITWISE,
                    saves_bytes=program.constant_bytes,
                ),
            ),
            basis=Basis.PATTERN,
            at=largest.at,
        )
    ]


RULE = JaxRule("jax-baked-constants", examine)
