"""# A freeze that freezes nothing

## What it finds
A mask over the paths of the parameters that is False for every one of them, where `any` in place of `all` in
the function that makes it would select some: the script is simulated again with that mask. Without such a
mask: the file of the training step speaks of freezing, in a filter, a mask or a partition, and yet the step
returns every parameter changed.

## Why it costs memory
A filter that matches no path trains everything: each parameter has a gradient, moments of the
optimizer, and activations that are kept for it, where the owner expects a fraction.

## Example
```python
FROZEN = ("^llm/", "^img/")
frozen = jax.tree_util.tree_map_with_path(
    # no path matches both: any() was meant
    lambda path, _: all(re.search(each, name(path)) for each in FROZEN),
    params,
)
```

## Fixes
- `any` for "matches one of these patterns"; in Flax `nnx.Any`, for `nnx.All` is an AND.
- Count what is frozen, and fail where it is nothing: `assert any(jax.tree.leaves(frozen))`.

## Known misses
Masks that are made without `jax.tree_util.tree_map_with_path` are seen by their names only, as is freezing
that the file of the step mentions; freezing that another file decides is not seen, nor a filter that matches
some parameters but not those that were meant.
"""

from peaksight.diagnosis.jax_rule import JaxRule, share
from peaksight.diagnosis.rule import Answer, NotDecidable, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import JaxProgram, MaskFact
from peaksight.units import format_bytes

NUM_LINES = 2


def examine(program: JaxProgram) -> Answer:
    """Masks that select nothing; without one what the code says of freezing, against what comes back unchanged."""
    if masks := [each for each in program.masks if each.num_selected_by_any]:
        return [_of_mask(program, each) for each in masks]
    return _by_name(program)


def _of_mask(program: JaxProgram, mask: MaskFact) -> Finding:
    was, again = mask.was, mask.again
    num_bytes = was.peak_bytes - again.peak_bytes if was and again else 0
    evidence = [f"all of its {mask.num_leaves} leaves are False: nothing is selected"]
    text = f"Use any() for all() in the function that makes the mask: it then selects {mask.num_selected_by_any} leaves"
    if was and again:
        state = f"{format_bytes(again.state_bytes)} instead of {format_bytes(was.state_bytes)}"
        evidence.append(f"what each step takes in, the state and a batch, would be {state}")
        peak = f"{format_bytes(again.peak_bytes)} instead of {format_bytes(was.peak_bytes)}"
        text += f"; the script simulated again with that mask peaks at {peak}"
    return Finding(
        rule=RULE.slug,
        title=f"A mask over {mask.num_leaves} parameters selects none of them: {share(program, num_bytes)}",
        bytes=max(num_bytes, 0),
        evidence=tuple(evidence),
        fixes=(
            Fix(
                kind="any-for-all",
                text=f"{text}. What it selects is no longer trained.",
                effect=Effect.MODEL,
                saves_bytes=max(num_bytes, 0),
            ),
        ),
        basis=Basis.COUNTERFACTUAL if was and again else Basis.PATTERN,
        at=mask.at,
    )


def _by_name(program: JaxProgram) -> Answer:
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
