"""# Autocast keeps its casts of weights

## What it finds
Copies of parameters in a lower precision that a forward under `torch.autocast` made, and that stay when
the layer is done and no backward pass needs them: its cache holds them until the context ends.

## Why it costs memory
Autocast casts a float32 weight for every operator that wants float16 or bfloat16. So that a weight which
is used again is not cast again, it keeps the casts of leaves that need a gradient, under `no_grad` too. A
teacher, a generation or an evaluation in one context thus has a second, half as large copy of its weights,
and in a context around the whole loop that copy is there in every backward pass and optimizer step as well.

## Example
```python
with torch.autocast("cuda", dtype=torch.float16):
    summaries = generate(teacher, documents)  # the teacher in float16, beside the one in float32
    loss = criterion(student(summaries))  # and there still

with torch.autocast("cuda", dtype=torch.float16, cache_enabled=False):  # each cast goes with its layer
    summaries = generate(teacher, documents)
```

## Fixes
- A context of its own for what is not trained, and `cache_enabled=False` in it: bitwise the same, with a
  cast for each call.
- `teacher.requires_grad_(False)`: what needs no gradient is not kept. Bitwise the same.
- `teacher.to(torch.bfloat16)`: half of its parameters, and no casts. Other numbers.

## Known misses
A cast that a graph saves counts from the end of a backward pass to the next call only: without the cache
a weight that is used several times in a forward would be saved as often.
"""

from bisect import bisect_right
from collections.abc import Iterator

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.diagnosis.shapes import shape_of
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Phase, Role
from peaksight.units import format_bytes

_OF_A_FORWARD = {Phase.FORWARD, Phase.EVALUATION}
_LOW = {"float16", "bfloat16"}


def examine(evidence: Evidence) -> Answer:
    """What casts of weights hold beyond their use."""
    casts = tuple(_casts(evidence))
    if not casts:
        return Refuted("no forward casts weights to a lower precision")
    kept = _kept_together(evidence, casts)
    saved = evidence.peak_bytes - evidence.lifetimes.with_gaps(kept)
    peak = evidence.capture.peak_tick
    held = [a for a in evidence.live if any(first <= peak < end for first, end in kept.get(a, ()))]
    if not is_notable(evidence, saved):
        return Refuted(f"casts of weights hold {format_bytes(total_bytes(held))} beyond their use at the peak")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Autocast keeps {format_bytes(total_bytes(held))} of casts of weights that nothing needs any more",
            bytes=saved,
            evidence=(*largest_lines(held), *_modules(held)),
            fixes=(
                Fix(
                    kind="autocast-without-cache",
                    text="torch.autocast(..., cache_enabled=False) ; requires_grad_(False) on what is not trained.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _casts(evidence: Evidence) -> Iterator[Allocation]:
    """Copies of parameters in a lower precision that forwards made, and that no variable holds."""
    named = {hold.born for hold in evidence.capture.holds if not hold.by_graph}
    born = evidence.by_birth
    for allocation in evidence.capture.allocations:
        is_nameless = allocation.role is Role.UNMARKED and allocation.born not in named
        if is_nameless and allocation.phase in _OF_A_FORWARD and _is_cast(allocation, born.get(allocation.copy_of)):
            yield allocation


def _is_cast(allocation: Allocation, original: Allocation | None) -> bool:
    if original is None or original.role is not Role.PARAMETER:
        return False
    return shape_of(original).dtype == "float32" and shape_of(allocation).dtype in _LOW


def _kept_together(evidence: Evidence, casts: tuple[Allocation, ...]) -> dict[Allocation, tuple[tuple[int, int], ...]]:
    """Of `casts` those that outlive their use, with when nothing needs them.

    The cache lets go of all at once: one alone is held by something else.
    """
    gaps = {cast: tuple(_gaps(evidence, cast)) for cast in casts}
    kept = {cast: spans for cast, spans in gaps.items() if spans}
    deaths = {cast.died for cast in kept if cast.died is not None}
    return {cast: spans for cast, spans in kept.items() if cast.died is None or deaths & {cast.died - 1, cast.died + 1}}


def _gaps(evidence: Evidence, cast: Allocation) -> Iterator[tuple[int, int]]:
    """From where nothing needs `cast` to its end; of one that a graph saves, from each backward pass to the next call.

    Later calls use the same cast, and their backward passes need it as the first one did.
    """
    end = evidence.capture.allocations[-1].born + 1 if cast.died is None else cast.died
    if not cast.backward:
        following = bisect_right(evidence.births, cast.born) + 1  # the operator that wants it allocates its result
        if following < len(evidence.births) and evidence.births[following] < end:
            yield evidence.births[following], end
        return
    for over in evidence.pass_ends.values():
        if cast.born < over < end:
            calls = (call.first_tick for call in evidence.capture.passes if call.first_tick > over)
            yield over, min(end, next(calls, end))


def _modules(held: list[Allocation]) -> tuple[str, ...]:
    roots = sorted({allocation.module.partition(".")[0] for allocation in held if allocation.module})
    return (
        (f"they are {len(held)} casts of weights of {', '.join(roots)}, let go of together or never",) if roots else ()
    )


RULE = Rule("autocast-cache", examine, needs=(Need.OBSERVED, Need.STEPS))
