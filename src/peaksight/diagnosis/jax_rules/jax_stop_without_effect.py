"""# A stop_gradient that another one makes superfluous

## What it finds
`jax.lax.stop_gradient` on values of which everything that goes on is stopped again further on.

## Why it costs memory
It costs none, and saves none: gradients that are stopped later never come back to here, so that nothing was
kept for them. Where memory is short, this line is not why, and moving it up frees nothing.

## Example
```python
prefix = jax.lax.stop_gradient(prefix)  # nothing comes back to here
cache = jax.lax.stop_gradient(language_model(prefix))  # for it is stopped here
```

## Fixes
- Leave one of them out: the same program.

## Known misses
One in a function that is called in a loop or under a checkpoint, and one before which nothing is trained.
"""

from peaksight.diagnosis.jax_rule import JaxRule, listed
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import JaxProgram


def examine(program: JaxProgram) -> Answer:
    """Each line that stops what is stopped again."""
    if not program.stops:
        return Refuted("the program stops no gradients")
    idle = [each for each in program.stops if each.again_at]
    if not idle:
        return Refuted(f"what stop_gradient stops at {listed([each.at for each in program.stops])} would go on")
    return [
        Finding(
            rule=RULE.slug,
            title=f"stop_gradient at {each.at} saves nothing: all that comes of it is stopped again",
            bytes=0,
            evidence=(f"every way from it to what the program returns is stopped at {listed(each.again_at)}",),
            fixes=(Fix(kind="leave-out-stop", text="Leave it out: the program is the same.", effect=Effect.BITWISE),),
            basis=Basis.COUNTERFACTUAL,
            at=each.at,
            without_effect=True,
        )
        for each in idle
    ]


RULE = JaxRule("jax-stop-without-effect", examine)
