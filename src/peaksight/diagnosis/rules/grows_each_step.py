"""# Memory grows from step to step

## What it finds
Blocks that steps leave behind: made in one step, of no parameter, gradient or state of an optimizer,
and alive when later steps are over. Their line, and how many bytes a step adds, say what collects
them: outputs, also detached ones, in a list on the card, a metric, a cache, a reference cycle.

## Why it costs memory
What every step leaves adds up until the card is full, so that a run that fits at its first steps
fails hours later, at whatever line then asks for memory.

## Example
```python
self.outputs.append({"loss": loss.detach(), "x": x})  # the batch of every step

self.outputs.append(loss.detach().cpu())
```

## Fixes
- Keep numbers (`.item()`) or tensors on the host (`.cpu()`): bitwise the same training.
- Empty lists and reset metrics where an epoch ends, and before it for long ones.
- For what no variable leads to: break the cycle between objects that hold tensors, or do not switch
  Python's garbage collection off.

## Known misses
A run is followed for a few steps only: what grows once an epoch, or every hundred steps, shows where
that comes in these steps. Batches of different sizes are no growth, for they die.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from peaksight.diagnosis.earlier_steps import names_of
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, Need, NotDecidable, Refuted, Rule, is_notable
from peaksight.gpus import known_cards
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Phase, Role
from peaksight.units import format_bytes

MIN_STEPS = 4
# Of the peak, what each step leaves: ten thousand steps would add a tenth of it.
GROWTH_SHARE = 1e-5
_OF_THE_MODEL = {Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER_STATE, Role.BUFFER, Role.WORKSPACE, Role.COMMUNICATION}


def examine(evidence: Evidence) -> Answer:
    """What at least two steps left behind that is there at the peak, with a whole step between."""
    ends = {peaks.step: peaks.last_tick for peaks in evidence.capture.steps if peaks.complete}
    if len(ends) < MIN_STEPS:
        return NotDecidable(f"growth shows in {MIN_STEPS} finished steps, and the record has {len(ends)}")
    left = _left_behind(evidence)
    kept = [allocation for allocations in left.values() for allocation in allocations]
    if len(left) < MIN_STEPS - 2:
        return Refuted(f"of steps before the last one, {format_bytes(total_bytes(kept))} are alive at the peak")
    saved = evidence.saved_by_freeing(_outliving(evidence, kept, ends))
    each = sorted(map(total_bytes, left.values()))[(len(left) - 1) // 2]
    if not is_notable(evidence, saved) and each < GROWTH_SHARE * evidence.peak_bytes:
        return Refuted(f"what steps leave behind is {format_bytes(total_bytes(kept))} in {len(left)} steps")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Every step leaves {format_bytes(each)} behind: {format_bytes(saved)} of the peak of this run",
            bytes=saved,
            evidence=(*largest_lines(kept), *names_of(evidence, kept), *_when_full(evidence, each)),
            fixes=(
                Fix(
                    kind="keep-on-host",
                    text="Keep loss.item() or output.detach().cpu() instead of the tensor, or empty what collects it.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(kept),
        )
    ]


def _left_behind(evidence: Evidence) -> dict[int, list[Allocation]]:
    """What is alive at the peak a whole step after its own, by the step that made it."""
    left: dict[int, list[Allocation]] = defaultdict(list)
    for allocation in evidence.live:
        if allocation.step < evidence.peak_step - 1 and _may_be_left(allocation):
            left[allocation.step].append(allocation)
    return left


def _outliving(evidence: Evidence, kept: Sequence[Allocation], ends: Mapping[int, int]) -> dict[Allocation, int]:
    """Of the lines of `kept`, all that any step leaves to the next, with the end of that step."""
    lines = {allocation.source for allocation in kept}
    made = (a for a in evidence.capture.allocations if a.source in lines and a.step in ends and _may_be_left(a))
    return {a: ends[a.step] for a in made if a.died is None or a.died > ends[a.step]}


def _may_be_left(allocation: Allocation) -> bool:
    return allocation.role not in _OF_THE_MODEL and allocation.phase is not Phase.INIT


def _when_full(evidence: Evidence, each: int) -> tuple[str, ...]:
    """The step at which a card like that of the run has no room for more."""
    total = next((card.total_bytes for card in known_cards() if card.name == evidence.capture.gpu), None)
    if total is None or not each:
        return ()
    step = evidence.peak_step + max(0, total - evidence.peak_bytes) // each
    return (f"at this rate the card is full at about step {step:,}",)


# What grows is large in the end, however little it is in the steps that were seen.
RULE = Rule("grows-each-step", examine, needs=(Need.STEPS,), large_share=NOTABLE_SHARE)
